"""How well events find failures, and how late: precision, recall, F1 and delay."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Sequence

from densereward_ros.types import Reason

EARLY_S = 0.5  # an event this much before the labelled moment is of that failure: labels are made by hand
MISSED, NO_FAILURE = 'missed', 'no failure'

Told = tuple[float, Reason]  # when, and which word; NONE where a label has no word


@dataclass(frozen=True)
class Detection:
    """The failures and the events of one episode, each in time order, and which event found which failure.

    found: for each failure the index of its event, None where it was missed. end: when the episode ended.
    All times are in one unit.
    """

    failures: tuple[Told, ...]
    events: tuple[Told, ...]
    found: tuple[int | None, ...]
    end: float

    @classmethod
    def of(
        cls, failures: Sequence[Told], events: Sequence[Told], early: float, late: float, end: float
    ) -> Detection:
        """Match them, as `match` does; words do not matter."""
        found = match([at for at, _ in failures], [at for at, _ in events], early, late)
        return cls(tuple(failures), tuple(events), tuple(found), end)

    def counts(self, word: Reason | None = None) -> tuple[int, int, int]:
        """Failures found, events, failures.

        word: of this word alone; an event of another one neither finds its failures nor counts against it.
        """
        told = {index for index, (_, said) in enumerate(self.events) if word in (None, said)}
        own = [hit for hit, (_, named) in zip(self.found, self.failures) if word in (None, named)]
        return sum(hit in told for hit in own), len(told), len(own)

    def delays(self) -> list[float | None]:
        """From each failure to its event, 0 where that came early; None where it was missed."""
        return [
            None if hit is None else max(0, self.events[hit][0] - at)
            for hit, (at, _) in zip(self.found, self.failures)]

    def remaining(self) -> list[float]:
        """From each failure to the end of the episode."""
        return [max(0, self.end - at) for at, _ in self.failures]

    def words(self) -> list[tuple[str, str]]:
        """The labelled and the told word of each failure, MISSED for none told; and of each event without a
        failure, whose label is then NO_FAILURE.
        """
        of_failures = [
            (named.word, MISSED if hit is None else self.events[hit][1].word)
            for hit, (_, named) in zip(self.found, self.failures)]
        return of_failures + [
            (NO_FAILURE, said.word) for index, (_, said) in enumerate(self.events) if index not in self.found]


def total(counts: Sequence[tuple[int, int, int]]) -> tuple[int, int, int]:
    """The counts of several episodes together."""
    found, events, failures = (sum(numbers) for numbers in zip(*counts, (0, 0, 0)))
    return found, events, failures


def match(
    failures: Sequence[float], events: Sequence[float], early: float, late: float
) -> list[int | None]:
    """For each failure, in time order, the index of the first event from `early` before to `late` after it.

    An event finds one failure at most; None for a failure that no event is left for. All in the same unit.
    """
    left = sorted(range(len(events)), key=lambda index: events[index])
    found: list[int | None] = []
    for failure in failures:
        hit = next((i for i in left if failure - early <= events[i] <= failure + late), None)
        found.append(hit)
        if hit is not None:
            left.remove(hit)
    return found


def precision(right: int, events: int) -> float:
    """The share of events that found a failure; NaN without events."""
    return right / events if events else math.nan


def recall(right: int, failures: int) -> float:
    """The share of failures that were found; NaN without failures."""
    return right / failures if failures else math.nan


def f1(right: int, events: int, failures: int) -> float:
    """The harmonic mean of precision and recall; 0 where nothing was found, NaN with neither."""
    return 2 * right / (events + failures) if events + failures else math.nan


def delay_of_found(delays: Sequence[float | None]) -> float:
    """The median delay over the failures that were found; None stands for a missed one. NaN for none."""
    found = [delay for delay in delays if delay is not None]
    return statistics.median(found) if found else math.nan


def delay_with_misses(delays: Sequence[float | None], remaining: Sequence[float]) -> float:
    """The mean delay where a missed failure counts what remained of its episode. NaN for no failures.

    remaining: from each failure to the end of its episode, in the unit of the delays.
    """
    values = [left if delay is None else delay for delay, left in zip(delays, remaining, strict=True)]
    return statistics.mean(values) if values else math.nan
