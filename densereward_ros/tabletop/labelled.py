"""Labelled recordings of the demo world: what `tabletop:N` stands for where recordings are scored."""

from __future__ import annotations

import functools
from typing import Iterator

import numpy as np

from densereward_ros.recordings.episode import Episode, LabelledFailure, Labels
from densereward_ros.tabletop import episode as played
from densereward_ros.tabletop.evaluation import MISHAPS_IN_TURN
from densereward_ros.tabletop.judge import progress
from densereward_ros.tabletop.world import TICK
from densereward_ros.types import Frame

_WORLD = 7  # the first part of every seed here: training, evaluate-demo and evaluate-events draw from others
_WATCHED_TICKS = 20  # for which a failure that nobody helps is recorded
_NS_OF_TICK = round(TICK * 1e9)


def episodes(count: int, seed: int = 0) -> list[Episode]:
    """So many recordings at ten frames a second, with the truth as labels; the same seed gives the same ones.

    Three in eight go well, the others suffer each failure in turn: of these, every second one gets help and
    succeeds in the end, and the recording of every other one ends two seconds after its failure began. Every
    fourth round has shades that training never showed. Pictures are painted when they are first asked for.
    """
    return [_labelled(count, seed, number) for number in range(count)]


def _labelled(count: int, seed: int, number: int) -> Episode:
    episode = _recorded(seed, number)
    done = tuple((_seconds(tick), progress(view, episode.goal)) for tick, view in enumerate(episode.views))
    failures = tuple(LabelledFailure(_seconds(tick), word) for tick, word in episode.onsets())
    return Episode(
        name=f'tabletop-{seed}-{number:04d}', source=f'tabletop:{count}@{seed}', camera='', task=episode.task,
        # Played again when it is read: a thousand episodes need no more memory than one.
        frames=functools.partial(_frames, seed, number), count=len(episode.views),
        labels=Labels(success=done[-1][1] == 1.0, failures=failures, progress=done), index=number)


def _seconds(tick: int) -> float:
    """As whoever reads the frames makes them of their stamps, to the last bit."""
    return tick * _NS_OF_TICK / 1e9


def _recorded(seed: int, number: int) -> played.Episode:
    round_, place = divmod(number, len(MISHAPS_IN_TURN))
    episode = played.record([_WORLD, seed, number], MISHAPS_IN_TURN[place], held_out=round_ % 4 == 0)
    onsets = episode.onsets()
    if not onsets or (number + round_) % 2 == 0:
        return episode
    views = episode.views[:onsets[-1][0] + _WATCHED_TICKS + 1]
    return played.Episode(
        episode.goal, episode.task, views, episode.events, episode.painter, episode.mishaps, episode.held_out)


def _frames(seed: int, number: int) -> Iterator[Frame]:
    episode = _recorded(seed, number)
    for tick in range(len(episode.views)):
        yield Frame(
            tick * _NS_OF_TICK, tick * _NS_OF_TICK, functools.partial(_picture, episode, seed, number, tick))


def _picture(episode: played.Episode, seed: int, number: int, tick: int) -> np.ndarray:
    """The same one whenever it is painted, and whatever was painted before it."""
    return episode.painter.paint(episode.views[tick], np.random.default_rng([_WORLD, seed, number, tick]))
