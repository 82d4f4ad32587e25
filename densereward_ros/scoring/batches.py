"""Which windows of an episode are scored together, and where a run that was cut can go on."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Iterator

from densereward_ros.models.base import OutOfMemory, RewardModel
from densereward_ros.recordings.windows import EpisodeWindow
from densereward_ros.types import MalformedReply, Verdict, Window

BATCHES_IN_A_LOT = 16


@dataclass(frozen=True)
class Batch:
    """Windows of one episode that are scored together.

    first: the number of the first of them, from 0. begins: whether a lot begins with it.
    """

    first: int
    windows: tuple[EpisodeWindow, ...]
    begins: bool


def lot_size(batch: int) -> int:
    """How many windows a lot has: one, and then so many batches."""
    return 1 + BATCHES_IN_A_LOT * batch


def batches_of(windows: Iterator[EpisodeWindow], batch: int, first: int = 0) -> Iterator[Batch]:
    """Yield an episode's windows from the first one on, in batches that depend on nothing but `batch`.

    An engine keeps things between replies, and how they came about shows in the last bits of what it
    computes. So an episode is scored in lots, at the beginning of which a model forgets: whatever was scored
    before, on whichever worker, and wherever a run was cut, a lot gives the same verdicts to the last bit.
    The first window of a lot stands alone, since what it reads of the prompt serves all that follow.

    first: where a lot begins, or ValueError.
    """
    size = lot_size(batch)
    if first % size:
        raise ValueError(f'no lot begins with window {first}; allowed are multiples of {size}')
    number = first
    while taken := tuple(islice(windows, 1 if number % size == 0 else batch)):
        yield Batch(number, taken, number % size == 0)
        number += len(taken)


def score_batch(model: RewardModel, batch: Batch) -> list[Verdict | MalformedReply]:
    """Ask the model; where memory runs out, for half of the windows at once. Raises as score does."""
    if batch.begins:
        forget = getattr(model, 'forget', None)  # a model that keeps nothing need not have it
        if forget:
            forget()
    return _score(model, [one.window for one in batch.windows])


def _score(model: RewardModel, windows: list[Window]) -> list[Verdict | MalformedReply]:
    try:
        return model.score(windows)
    except OutOfMemory:
        if len(windows) == 1:
            raise
    half = len(windows) // 2
    return [*_score(model, windows[:half]), *_score(model, windows[half:])]
