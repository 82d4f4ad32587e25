"""How well events find the failures of the tabletop: the episodes, and the verdicts on them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Callable

import numpy as np

from densereward_ros import __version__
from densereward_ros.events.calibration import JudgedEpisode
from densereward_ros.recordings.judging import judge
from densereward_ros.tabletop.episode import Episode, record
from densereward_ros.tabletop.evaluation import hashes, held_out_episode, versions, windows
from densereward_ros.tabletop.judge import SPACING_TICKS, SPAN
from densereward_ros.tabletop.picture import Look, Painter
from densereward_ros.tabletop.workers import work_through
from densereward_ros.types import Reason

CALIBRATION, CHECK = 120, 300  # successful episodes of their own, to calibrate on and to check the promise on
FUSED, CAMERAS = 80, 3  # so many of the episodes are seen by so many cameras
_SEED = 5  # of the successful episodes; training and the held-out episodes draw from other seeds


@dataclass(frozen=True)
class Watched:
    """One episode as one or more cameras saw it.

    cameras: the first one's verdicts are those of every figure but the fusions'. failures: (tick, word) of
    each onset. ticks: how long it lasted. reply_s: seconds that a verdict took, on average.
    """

    cameras: tuple[JudgedEpisode, ...]
    failures: tuple[tuple[int, Reason], ...]
    clean: bool
    ticks: int
    reply_s: float


def watch(model, item: tuple[str, int]) -> tuple[tuple[str, int], Watched]:
    """Score one episode with an opened RewardModel. item: 'held out' or 'successful', and its number."""
    kind, number = item
    if kind == 'held out':
        episode, cameras = held_out_episode(number), CAMERAS if number < FUSED else 1
    else:
        episode, cameras = record([_SEED, number], (), held_out=number % 4 == 0), 1
    started, judged = time.monotonic(), []
    for camera in range(cameras):
        seen = windows(_seen_by(camera, episode, number), SPAN + number % SPACING_TICKS)
        verdicts, _ = judge(model, [replace(window, camera=str(camera)) for _, window in seen])
        judged.append(JudgedEpisode(f'{kind} {number}', verdicts))
    reply_s = (time.monotonic() - started) / sum(len(one.verdicts) for one in judged)
    failures = tuple(episode.onsets())
    return item, Watched(tuple(judged), failures, not episode.mishaps, len(episode.views), reply_s)


def _seen_by(camera: int, episode: Episode, number: int) -> Episode:
    """The same events before another camera: other light, colours and noise."""
    if camera == 0:
        return episode
    rng = np.random.default_rng([_SEED, camera, number])
    return replace(episode, painter=Painter(Look.random(rng, episode.held_out), rng))


def evaluate(
    model: str, episodes: int, processes: int, report: Callable[[str], None]
) -> tuple[dict, list[JudgedEpisode]]:
    """The figures, ready for JSON, and the successful episodes they were calibrated and checked on.

    Raises ModelError.
    """
    from densereward_ros.models.checkpoint import find
    from densereward_ros.tabletop.event_figures import figures

    folder = find(model, 'main', report).folder
    items = [('held out', number) for number in range(episodes)]
    items += [('successful', number) for number in range(CALIBRATION + CHECK)]
    start = time.monotonic()
    watched = dict(work_through(watch, items, str(folder), 'fast', processes, report))
    held_out = [watched[item] for item in items if item[0] == 'held out']
    successes = [watched[item].cameras[0] for item in items if item[0] == 'successful']
    results = figures(held_out, successes[:CALIBRATION], successes[CALIBRATION:])
    results['seconds'] = round(time.monotonic() - start, 1)
    results['model'] = {'name': model, 'sha256': hashes(folder)}
    results['package_version'] = __version__
    results['versions'] = versions()
    return results, successes
