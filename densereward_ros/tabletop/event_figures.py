"""The figures of the failure events, with 95% intervals."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import Callable, Sequence

from densereward_ros.events.calibration import START, JudgedEpisode, calibrate, events
from densereward_ros.events.fusion import FUSIONS, FusedDetector
from densereward_ros.events.settings import DEFAULTS, DetectorSettings
from densereward_ros.metrics.bootstrap import rounded, with_intervals
from densereward_ros.metrics.detection import (
    Detection,
    delay_of_found,
    delay_with_misses,
    f1,
    precision,
    recall,
    total,
)
from densereward_ros.tabletop.event_evaluation import CAMERAS, Watched
from densereward_ros.tabletop.judge import SPACING_TICKS, SPAN
from densereward_ros.tabletop.world import TICK
from densereward_ros.types import FAILURES, Reason

FALSE_ALARMS = 0.05
SINGLE = replace(DEFAULTS, confirmations=1)
# An event is of a failure when it comes within a window's span before it (a window shows a stall before it
# is all stall) and two seconds after it.
EARLY, LATE = SPAN, round(2.0 / TICK)
_NS_OF_TICK = round(TICK * 1e9)
_GRID = [round(0.05 * step, 2) for step in range(1, 20)]

Told = tuple[int, Reason]  # an event: tick and reason


@dataclass(frozen=True)
class Outcome:
    """What one detector made of one episode, in ticks."""

    watched: Watched
    detection: Detection


def figures(
    held_out: Sequence[Watched], calibration: Sequence[JudgedEpisode], check: Sequence[JudgedEpisode]
) -> dict:
    """Every figure. calibration, check: successful episodes, apart from one another and from the held-out."""
    calibrated = calibrate(calibration, FALSE_ALARMS, START)
    before, after = (_of_detector(held_out, settings) for settings in (DEFAULTS, calibrated))
    single = _of_detector(held_out, SINGLE)
    sure = _of_detector(held_out, calibrate(calibration, FALSE_ALARMS, SINGLE))
    level = _best(held_out, lambda one, value: _crossings(one.cameras[0], value))
    fall = _best(held_out, lambda one, value: _drops(one.cameras[0], value))
    results = {
        'before_calibration': _figures(before),
        'after_calibration': _figures(after),
        'after_calibration_of_single_verdicts': _figures(sure),
        'single_verdict_words': _figures(single),
        'reward_threshold': {
            'level': level, **_figures(_outcomes(held_out, lambda one: _crossings(one.cameras[0], level)))},
        'reward_drop': {
            'drop': fall, **_figures(_outcomes(held_out, lambda one: _drops(one.cameras[0], fall)))},
        'words': {
            reason.word: {
                'failures': sum(kind is reason for one in held_out for _, kind in one.failures),
                'before_calibration': _word_figures(before, reason),
                'after_calibration': _word_figures(after, reason)}
            for reason in FAILURES},
        'fusion': _fusions([one for one in held_out if len(one.cameras) == CAMERAS]),
        'promise': _promises(calibration, check),
        'thresholds': {
            'confirmations': calibrated.confirmations,
            'confirmation_window': calibrated.confirmation_window,
            'probability_floor': calibrated.probability_floors[0]},
        'configuration': {
            'episodes': len(held_out),
            'successful_episodes': sum(one.clean for one in held_out),
            'failures': sum(len(one.failures) for one in held_out),
            'event_counts_for_a_failure': f'from {EARLY * TICK:g} s before to {LATE * TICK:g} s after it',
            'reply_s': round(statistics.median(one.reply_s for one in held_out), 4),
            'interval': '95% bootstrap, resampled by episode',
            'baselines': 'edges, with the same cool-down; level and drop are the best on these very episodes',
        },
    }
    return results


def _outcomes(watched: Sequence[Watched], tell: Callable[[Watched], Sequence[Told]]) -> list[Outcome]:
    return [
        Outcome(one, Detection.of(one.failures, tell(one), EARLY, LATE, one.ticks)) for one in watched]


def _of_detector(watched: Sequence[Watched], settings: DetectorSettings) -> list[Outcome]:
    return _outcomes(watched, lambda one: [
        (event.window.newest.stamp_ns // _NS_OF_TICK, event.reason)
        for event in events(one.cameras[0], settings)])


def _best(watched: Sequence[Watched], tell: Callable[[Watched, float], Sequence[Told]]) -> float:
    """The value that gives a baseline its highest F1 on these very episodes."""
    return max(_GRID, key=lambda value: _f1(_outcomes(watched, lambda one: tell(one, value))))


def _crossings(episode: JudgedEpisode, level: float) -> list[Told]:
    """The reward falls below a level."""
    told: list[Told] = []
    for (_, last), (window, verdict) in zip(episode.verdicts, episode.verdicts[1:]):
        tick = window.newest.stamp_ns // _NS_OF_TICK
        cooling = told and tick - told[-1][0] < DEFAULTS.cooldown / TICK
        if verdict.reward < level <= last.reward and not cooling:
            told.append((tick, Reason.FAILURE))
    return told


def _drops(episode: JudgedEpisode, fall: float) -> list[Told]:
    """The reward drops, and nobody listens to the words."""
    mute = replace(episode, verdicts=tuple(
        (window, replace(verdict, reason=Reason.CORRECT)) for window, verdict in episode.verdicts))
    return [
        (event.window.newest.stamp_ns // _NS_OF_TICK, event.reason)
        for event in events(mute, replace(DEFAULTS, reward_drop=fall))]


def _fusions(watched: Sequence[Watched]) -> dict:
    """What each fusion makes of the single verdicts of several cameras: of two in a row too few are wrong.

    Empty where no episode had several.
    """
    if not watched:
        return {}

    def tell(one: Watched, fusion: str) -> list[Told]:
        names = [str(number) for number in range(CAMERAS)]
        detector = FusedDetector(names, SINGLE, fusion, names[0])
        told = []
        for verdicts in zip(*(camera.verdicts for camera in one.cameras)):
            for window, verdict in verdicts:
                event = detector.update(window, verdict)
                if event is not None:
                    told.append((window.newest.stamp_ns // _NS_OF_TICK, event.reason))
        return told

    return {
        'episodes': len(watched), 'cameras': CAMERAS,
        **{fusion: _figures(_outcomes(watched, lambda one, fusion=fusion: tell(one, fusion)))
           for fusion in FUSIONS}}


def _promises(calibration: Sequence[JudgedEpisode], check: Sequence[JudgedEpisode]) -> dict:
    """For several detectors calibrated at the same rate, the rate on successful episodes of their own."""
    from scipy.stats import binomtest

    kept = {'promised': FALSE_ALARMS, 'calibrated_on': len(calibration), 'checked_on': len(check)}
    for name, settings, rules in (
            ('words', START, ('words',)),
            ('words_of_single_verdicts', SINGLE, ('words',)),
            ('drop_without_words', DEFAULTS, ('drop',)),
            ('words_and_drop', START, ('words', 'drop'))):
        sets = [calibration, check]
        if 'words' not in rules:
            sets = [[wordless(episode) for episode in some] for some in sets]
        found = calibrate(sets[0], FALSE_ALARMS, settings, rules)
        alarms = sum(bool(events(episode, found)) for episode in sets[1])
        low, high = binomtest(alarms, len(check)).proportion_ci(0.95, 'exact')
        kept[name] = {
            'rate': rounded(alarms / len(check)), 'interval': [rounded(low), rounded(high)],
            'thresholds': {rule: {
                'words': found.probability_floors[0], 'drop': found.reward_drop}[rule] for rule in rules}}
    return kept


def wordless(episode: JudgedEpisode) -> JudgedEpisode:
    """As a model without words would have judged it."""
    return replace(episode, verdicts=tuple(
        (window, replace(verdict, reason=Reason.NONE, reason_probabilities=None))
        for window, verdict in episode.verdicts))


def _f1(outcomes: Sequence[Outcome]) -> float:
    return f1(*_counts(outcomes))


def _counts(outcomes: Sequence[Outcome]) -> tuple[int, int, int]:
    """Failures found, events, failures."""
    return total([outcome.detection.counts() for outcome in outcomes])


def _false_alarms(outcomes: Sequence[Outcome]) -> float:
    clean = [len(outcome.detection.events) for outcome in outcomes if outcome.watched.clean]
    return statistics.mean(clean) if clean else math.nan


def _delays(outcomes: Sequence[Outcome]) -> list[float | None]:
    """In seconds, with the time that the model took."""
    return [
        None if delay is None else delay * TICK + outcome.watched.reply_s
        for outcome in outcomes for delay in outcome.detection.delays()]


def _in_verdicts(outcomes: Sequence[Outcome]) -> float:
    """Verdicts after the first one that could show it, for the failures that were found: the median."""
    return delay_of_found([
        None if delay is None else math.floor(delay / SPACING_TICKS)
        for outcome in outcomes for delay in outcome.detection.delays()])


def _remaining(outcomes: Sequence[Outcome]) -> list[float]:
    return [left * TICK for outcome in outcomes for left in outcome.detection.remaining()]


_FIGURES: dict[str, Callable[[Sequence[Outcome]], float]] = {
    'f1': _f1,
    'precision': lambda outcomes: precision(*_counts(outcomes)[:2]),
    'recall': lambda outcomes: recall(*_counts(outcomes)[::2]),
    'false_alarms_per_episode': _false_alarms,
    'median_delay_verdicts': _in_verdicts,
    'median_delay_of_found_s': lambda outcomes: delay_of_found(_delays(outcomes)),
    'mean_delay_with_misses_s': lambda outcomes: delay_with_misses(_delays(outcomes), _remaining(outcomes)),
}


def _figures(outcomes: Sequence[Outcome]) -> dict:
    return with_intervals(outcomes, _FIGURES)


def _word_figures(outcomes: Sequence[Outcome], reason: Reason) -> dict:
    """As above, of one word alone."""
    return with_intervals([outcome.detection.counts(reason) for outcome in outcomes], {
        'precision': lambda some: precision(*total(some)[:2]),
        'recall': lambda some: recall(*total(some)[::2]),
        'f1': lambda some: f1(*total(some))})
