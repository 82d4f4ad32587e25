"""How well events find failures, and how late: precision, recall, F1 and delay."""

from __future__ import annotations

import math
import statistics
from typing import Sequence


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
