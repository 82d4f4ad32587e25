"""Which metrics there are, and what each needs of an episode. A new one is a line in METRICS."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable, Sequence

import numpy as np

from densereward_ros.metrics.classification import (
    balanced_accuracy,
    true_negative_rate,
    true_positive_rate,
)
from densereward_ros.metrics.correlation import pearson, spearman
from densereward_ros.metrics.detection import (
    EARLY_S,
    Detection,
    delay_of_found,
    delay_with_misses,
    f1,
    precision,
    recall,
    total,
)
from densereward_ros.metrics.error import mae
from densereward_ros.metrics.means import mean_of_defined, share
from densereward_ros.metrics.ranking import tau_b_within_tasks
from densereward_ros.metrics.value_order import value_order
from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.results.rows import ScoredEpisode


@dataclass(frozen=True)
class Setting:
    """What holds for all episodes of a run.

    tolerance: seconds after a failure in which an event is of it. bounded: whether rewards are on the scale
    of progress. reply_s: seconds from a window to its verdict, None where the run does not say.
    """

    tolerance: float
    bounded: bool
    reply_s: float | None

    @classmethod
    def of(cls, run: dict[str, Any], tolerance: float) -> Setting:
        """From what run.json says."""
        seconds = run.get('seconds_per_window')
        known = isinstance(seconds, (int, float)) and math.isfinite(seconds)
        return cls(tolerance, run.get('bounded') is not False, float(seconds) if known else None)


@dataclass(frozen=True)
class Metric:
    """One metric: what it takes of an episode, and the figure of several episodes.

    part: what the figure needs of an episode, None where its labels do not allow the metric. needs: the
    reason given where no episode allows it; undefined: where some do and the figure is NaN all the same.
    refusal: why no episode of a run can have it, '' for nothing. count: how many of the episodes the figure
    is over. note: what must be told beside it.
    """

    key: str
    title: str
    part: Callable[[ScoredEpisode, Setting], Any]
    figure: Callable[[Sequence[Any]], float]
    needs: str
    undefined: str
    refusal: Callable[[Setting], str] = lambda setting: ''
    count: Callable[[Sequence[Any]], int] = len
    note: Callable[[Sequence[Any]], str] = lambda parts: ''


def failures_of(labels: Labels) -> tuple[LabelledFailure, ...] | None:
    """The failures of an episode; None where nobody knows. A success has none but those that are marked."""
    return () if labels.failures is None and labels.success else labels.failures


def malformed_of(episode: ScoredEpisode) -> tuple[int, int]:
    """How many replies were malformed, and how many there were."""
    return sum(frame.reward is None for frame in episode.frames), len(episode.frames)


def detection_of(episode: ScoredEpisode, setting: Setting) -> Detection | None:
    """The failures and events of an episode with frames; None where nobody knows its failures."""
    failures = failures_of(episode.labels)
    if failures is None:
        return None
    return Detection.of(
        [(failure.seconds, failure.reason) for failure in failures],
        [(event.seconds, event.reason) for event in episode.events],
        min(EARLY_S, setting.tolerance), setting.tolerance, episode.frames[-1].seconds)


def _rewards(episode: ScoredEpisode) -> list[float]:
    return [frame.reward for frame in episode.frames if frame.reward is not None]


def _order(episode: ScoredEpisode, setting: Setting) -> float | None:
    return value_order(_rewards(episode)) if episode.labels.success else None


def _order_count(orders: Sequence[float]) -> int:
    return sum(not math.isnan(order) for order in orders)


def _order_note(orders: Sequence[float]) -> str:
    undefined = len(orders) - _order_count(orders)
    return '' if not undefined else (
        f'undefined in {undefined} of {len(orders)} successful episodes, which are left out: their rewards '
        'are constant, or fewer than two')


def _pairs(episode: ScoredEpisode, setting: Setting) -> np.ndarray | None:
    """(2, frames): rewards and targets of the frames that have both."""
    both = [
        (frame.reward, frame.target) for frame in episode.frames
        if frame.reward is not None and frame.target is not None]
    return np.array(both).T if both else None


def _pooled(figure: Callable[[np.ndarray, np.ndarray], float]) -> Callable[[Sequence[np.ndarray]], float]:
    return lambda parts: figure(*np.concatenate(parts, axis=1))


def _outcome(score: Callable[[list[float]], float]) -> Callable[[ScoredEpisode, Setting], Any]:
    """Task, score and success of an episode that has both."""
    def part(episode: ScoredEpisode, setting: Setting) -> tuple[str, float, bool] | None:
        rewards = _rewards(episode)
        if episode.labels.success is None or not rewards:
            return None
        return episode.task, score(rewards), episode.labels.success

    return part


def _tau_count(episodes: Sequence[tuple[str, float, bool]]) -> int:
    """Those that have another one to be compared with."""
    of_task = Counter(task for task, _, _ in episodes)
    return sum(of_task[task] > 1 for task, _, _ in episodes)


def _tau_note(episodes: Sequence[tuple[str, float, bool]]) -> str:
    outcomes = {(task, success) for task, _, success in episodes}
    tasks = {task for task, _ in outcomes}
    both = len(outcomes) - len(tasks)
    return '' if both == len(tasks) else f'{both} of {len(tasks)} tasks have both successes and failures'


def _failed_alarmed(episode: ScoredEpisode, setting: Setting) -> tuple[bool, bool] | None:
    labels = episode.labels
    if labels.success is None and labels.failures is None:
        return None
    return labels.success is False or bool(labels.failures), bool(episode.events)


def _event_counts(episode: ScoredEpisode, setting: Setting) -> tuple[int, int, int] | None:
    detection = detection_of(episode, setting)
    return None if detection is None else detection.counts()


def _delays(episode: ScoredEpisode, setting: Setting) -> tuple[list[float | None], list[float]] | None:
    """Of each failure: seconds to the publication of its event, and to the end of the episode."""
    detection = detection_of(episode, setting)
    if detection is None or not detection.failures:
        return None
    delays = [None if delay is None else delay + setting.reply_s for delay in detection.delays()]
    return delays, detection.remaining()


def _joined(parts: Sequence[tuple[list, list]]) -> tuple[list, list]:
    return [x for delays, _ in parts for x in delays], [x for _, remaining in parts for x in remaining]


def _no_bounds(setting: Setting) -> str:
    return '' if setting.bounded else 'the rewards of this model are not on the scale of progress'


def _no_reply_time(setting: Setting) -> str:
    return 'run.json does not say how long a verdict took' if setting.reply_s is None else ''


_NO_SUCCESS = 'no episode is labelled a success'
_NO_PROGRESS = 'no frame with a reward has a labelled progress'
_CONSTANT = 'rewards or targets are constant'
_NO_OUTCOME = 'no episode is labelled a success or a failure'
_NO_SCORE = 'no episode with a reward is labelled a success or a failure'
_ONE_OUTCOME = 'no task has successes and failures with different scores'
_NOT_MARKED = 'no episode has its failures marked'
_NO_FAILURE = 'no failure is marked'
_NO_REPLY = 'there is no reply'

METRICS = (
    Metric('value_order', 'value order (VOC)', _order, mean_of_defined, _NO_SUCCESS,
           'no successful episode has two different rewards', count=_order_count,
           note=_order_note),
    Metric('pearson', 'alignment, Pearson', _pairs, _pooled(pearson), _NO_PROGRESS, _CONSTANT),
    Metric('spearman', 'alignment, Spearman', _pairs, _pooled(spearman), _NO_PROGRESS, _CONSTANT),
    Metric('mae', 'alignment, MAE', _pairs, _pooled(mae), _NO_PROGRESS, _CONSTANT, _no_bounds),
    Metric('tau_final', 'ranking by final reward, tau-b', _outcome(lambda rewards: rewards[-1]),
           tau_b_within_tasks, _NO_SCORE, _ONE_OUTCOME, count=_tau_count, note=_tau_note),
    Metric('tau_mean', 'ranking by mean reward, tau-b', _outcome(np.mean), tau_b_within_tasks,
           _NO_SCORE, _ONE_OUTCOME, count=_tau_count, note=_tau_note),
    Metric('precision', 'events, precision', _event_counts, lambda parts: precision(*total(parts)[:2]),
           _NOT_MARKED, 'there is no event'),
    Metric('recall', 'events, recall', _event_counts, lambda parts: recall(*total(parts)[::2]),
           _NOT_MARKED, _NO_FAILURE),
    Metric('f1', 'events, F1', _event_counts, lambda parts: f1(*total(parts)),
           _NOT_MARKED, 'there is neither an event nor a failure'),
    Metric('true_positive_rate', 'episodes, true positive rate', _failed_alarmed, true_positive_rate,
           _NO_OUTCOME, 'no episode is labelled a failure'),
    Metric('true_negative_rate', 'episodes, true negative rate', _failed_alarmed, true_negative_rate,
           _NO_OUTCOME, 'every episode had a failure'),
    Metric('balanced_accuracy', 'episodes, balanced accuracy', _failed_alarmed, balanced_accuracy,
           _NO_OUTCOME, 'the episodes with a label all had a failure, or none had'),
    Metric('delay_of_found_s', 'delay of those found, median s', _delays,
           lambda parts: delay_of_found(_joined(parts)[0]), _NO_FAILURE, 'no failure was found',
           _no_reply_time),
    Metric('delay_with_misses_s', 'delay, a miss counts the rest, mean s', _delays,
           lambda parts: delay_with_misses(*_joined(parts)), _NO_FAILURE, _NO_FAILURE, _no_reply_time),
    Metric('malformed', 'malformed replies', lambda episode, setting: malformed_of(episode), share,
           _NO_REPLY, _NO_REPLY),
)
