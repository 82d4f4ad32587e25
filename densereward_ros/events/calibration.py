"""Thresholds from successful episodes, for a false-alarm rate that the user chooses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Sequence

from densereward_ros.events.conformal import CalibrationError, conformal_threshold, scores_needed
from densereward_ros.events.detector import FailureDetector
from densereward_ros.events.evidence import DropEvidence, WordEvidence
from densereward_ros.events.settings import DEFAULTS, RANGES, DetectorSettings
from densereward_ros.types import FAILURES, FailureEvent, Verdict, Window

RULES = ('words', 'drop')
# What a calibration starts from: 2 of 3 let one verdict flicker, and the floor keeps the false alarms.
START = replace(DEFAULTS, confirmation_window=3)
_STEPS = 10_000  # thresholds are rounded up to a ten-thousandth


@dataclass(frozen=True)
class JudgedEpisode:
    """What a model said of one episode.

    verdicts: with their windows, in the order of their stamps; of the windows only stamps and segment count.
    failed_ns: the stamp at which it was labelled to fail; None for a successful episode.
    """

    name: str
    verdicts: tuple[tuple[Window, Verdict], ...]
    failed_ns: int | None = None


def rules_of(episodes: Sequence[JudgedEpisode]) -> tuple[str, ...]:
    """The rule that fits the model: its words where it has any, drops of the reward otherwise."""
    worded = any(verdict.reason for episode in episodes for _, verdict in episode.verdicts)
    return ('words',) if worded else ('drop',)


def score(episode: JudgedEpisode, rule: str, settings: DetectorSettings) -> float:
    """The highest threshold at which the rule has an event in the episode; 0 where no threshold gives one.

    It is the detector's own evidence, so the detector has an event exactly where a threshold above 0 is
    at most this.
    """
    best, segment, before = 0.0, None, None
    for window, verdict in episode.verdicts:
        if window.segment != segment:
            segment, before = window.segment, None
            words = WordEvidence(settings.confirmations, settings.among)
            drops = DropEvidence(settings.drop_window)
        if rule == 'words':
            evidence = words.update(verdict, before) or 0.0
        else:
            evidence = drops.update(window.newest.stamp_ns, verdict.reward)
        best, before = max(best, evidence), verdict.reward
    return best


def calibrate(
    successes: Sequence[JudgedEpisode],
    false_alarms: float,
    settings: DetectorSettings,
    rules: Sequence[str] = ('words',),
) -> DetectorSettings:
    """The settings with thresholds for which at most that share of successful episodes has an event.

    false_alarms: in (0, 1), for all rules together. The episode is what is drawn at random, so its score is
    the highest of its verdicts, of whichever word: one floor for all words needs no correction for their
    number. Several rules share the rate equally (a union bound): that holds however they depend on one
    another, where a common score for words and drops would need a scale between them, and more episodes to
    find it. Raises CalibrationError, also for a model with words where they are not among the rules: the
    detector always heeds a word.
    """
    check_promise(len(successes), false_alarms, len(rules))
    share = false_alarms / len(rules)
    if 'words' not in rules and 'words' in rules_of(successes):
        raise CalibrationError(
            'the rules are drop alone, and the model names failures; allowed: words, or both')
    found = {rule: _above(conformal_threshold(
        [score(episode, rule, settings) for episode in successes], share)) for rule in rules}
    if found.get('words', 0.0) > 1.0:
        raise CalibrationError(
            f'the model names failures with certainty in more than {share:g} of these successful episodes: '
            'no floor keeps the promise; ask for more confirmations')
    if found.get('drop', 0.0) > RANGES['reward_drop'][1]:
        raise CalibrationError('rewards fall too far in these successful episodes: no drop keeps the promise')
    # A floor of 0 asks for the name alone, which is right where no successful episode counts against it;
    # but a drop of 0 is none, and one that rewards of 0 to 1 cannot reach never fires.
    return replace(
        settings,
        probability_floors=(found.get('words', 0.0),) * len(FAILURES),
        reward_drop=max(found['drop'], 1 / _STEPS) if 'drop' in found else 0.0)


def check_promise(successes: int, false_alarms: float, rules: int) -> None:
    """Raise CalibrationError for a false-alarm rate that so many successful episodes cannot promise."""
    if not 0.0 < false_alarms < 1.0:
        raise CalibrationError(f'false alarms are {false_alarms}, allowed: a rate above 0 and below 1')
    needed = scores_needed(false_alarms / rules)
    if successes < needed:
        shared = f', shared by {rules} rules' if rules > 1 else ''
        best = math.ceil(1000 * rules / (successes + 1)) / 1000
        raise CalibrationError(
            f'{successes} successful episodes cannot promise an event in at most {false_alarms:g} of '
            f'episodes{shared}: that needs at least {needed}'
            + (f'; these promise {best:g} at best' if best < 1 else ''))


def _above(threshold: float) -> float:
    """The next ten-thousandth above: a score that only equals the threshold must not reach it; 0 for 0."""
    return (math.floor(threshold * _STEPS + 1e-6) + 1) / _STEPS if threshold > 0 else 0.0


def events(episode: JudgedEpisode, settings: DetectorSettings) -> list[FailureEvent]:
    """Every event of an episode, in order."""
    detector = FailureDetector(settings)
    found = [detector.update(window, verdict) for window, verdict in episode.verdicts]
    return [event for event in found if event is not None]
