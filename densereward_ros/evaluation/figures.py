"""The figures of one folder of results: each metric on the episodes that allow it, with its interval."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import Any, Sequence

from densereward_ros.evaluation.metrics import (
    METRICS,
    Metric,
    Setting,
    detection_of,
    failures_of,
    malformed_of,
)
from densereward_ros.metrics.bootstrap import interval
from densereward_ros.metrics.classification import confusion
from densereward_ros.metrics.means import share
from densereward_ros.results.rows import Results, ScoredEpisode

LEVEL, SAMPLES, SEED = 0.95, 1000, 0  # of the bootstrap


@dataclass(frozen=True)
class Figure:
    """One metric.

    value: NaN where it is undefined, and why then tells the reason. low, high: the 95% interval, NaN for
    fewer than two episodes. episodes: how many it is over, once for each camera. malformed: the share of
    malformed replies among theirs. note: what else must be known beside it, '' for nothing.
    """

    key: str
    title: str
    value: float
    low: float
    high: float
    episodes: int
    malformed: float
    why: str = ''
    note: str = ''


@dataclass(frozen=True)
class Counts:
    """What there is to evaluate. successful, failed, unlabelled: episodes by their label of success.

    marked: episodes whose failures are known, and failures: how many these have. progress: episodes with
    labelled progress. silent: episodes too short for a single reply, which no metric sees. cameras: how many
    watched. unreadable: recordings that could not be scored.
    """

    episodes: int
    successful: int
    failed: int
    unlabelled: int
    marked: int
    failures: int
    progress: int
    silent: int
    cameras: int
    replies: int
    unreadable: int


@dataclass(frozen=True)
class Evaluation:
    """Everything about one folder of results. confusion: counts by labelled word, then by told word."""

    figures: tuple[Figure, ...]
    counts: Counts
    confusion: dict[str, dict[str, int]]


def evaluate(results: Results, tolerance: float) -> Evaluation:
    """Evaluate the episodes of one run. tolerance: seconds after a failure in which an event is of it."""
    setting = Setting.of(results.run, tolerance)
    heard = [episode for episode in results.episodes if episode.frames]
    detections = filter(None, (detection_of(episode, setting) for episode in heard))
    return Evaluation(
        tuple(_figure(metric, heard, setting) for metric in METRICS), _counts(results),
        confusion(pair for detection in detections for pair in detection.words()))


def _figure(metric: Metric, episodes: Sequence[ScoredEpisode], setting: Setting) -> Figure:
    why = metric.refusal(setting)
    if why:
        return Figure(metric.key, metric.title, math.nan, math.nan, math.nan, 0, math.nan, why)
    both = [(episode, metric.part(episode, setting)) for episode in episodes]
    allowed = [(episode, part) for episode, part in both if part is not None]
    parts: list[Any] = [part for _, part in allowed]
    value = metric.figure(parts) if parts else math.nan
    low, high = math.nan, math.nan
    if not math.isnan(value):
        low, high = _interval(metric, allowed)
    malformed = share(malformed_of(episode) for episode, _ in allowed)
    if not parts:
        why = metric.needs
    elif math.isnan(value):
        why = metric.undefined
    return Figure(
        metric.key, metric.title, value, low, high, metric.count(parts), malformed, why,
        metric.note(parts) if parts else '')


def _interval(metric: Metric, allowed: Sequence[tuple[ScoredEpisode, Any]]) -> tuple[float, float]:
    """By episode, all that its cameras saw together; NaN for a single one."""
    episodes: dict[tuple[str, int | None, int], list[Any]] = {}
    seen: Counter[tuple[str, int | None, str]] = Counter()
    for episode, part in allowed:
        view = episode.source, episode.index, episode.camera
        # What one camera saw twice of one source are two episodes, whatever the source calls them.
        episodes.setdefault((*view[:2], seen[view]), []).append(part)
        seen[view] += 1
    if len(episodes) < 2:
        return math.nan, math.nan
    return interval(
        list(episodes.values()), lambda some: metric.figure(list(chain.from_iterable(some))), LEVEL, SAMPLES,
        SEED)


def _counts(results: Results) -> Counts:
    labels = [episode.labels for episode in results.episodes]
    success = [label.success for label in labels]
    failures = [known for known in map(failures_of, labels) if known is not None]
    return Counts(
        len(labels), success.count(True), success.count(False), success.count(None), len(failures),
        sum(map(len, failures)), sum(label.progress is not None for label in labels),
        sum(not episode.frames for episode in results.episodes),
        len({episode.camera for episode in results.episodes}),
        sum(len(episode.frames) for episode in results.episodes), len(results.failed))
