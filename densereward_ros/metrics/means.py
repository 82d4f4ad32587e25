"""Means and shares over episodes, honest about what is undefined."""

from __future__ import annotations

import math
import statistics
from typing import Iterable


def mean_of_defined(values: Iterable[float]) -> float:
    """The mean of the values that are no NaN; NaN for none. Who calls it counts and shows the others."""
    known = [value for value in values if not math.isnan(value)]
    return statistics.fmean(known) if known else math.nan


def share(parts: Iterable[tuple[float, float]]) -> float:
    """The sum of the first numbers over the sum of the second; NaN where that is 0."""
    part, whole = (math.fsum(numbers) for numbers in zip(*parts, (0.0, 0.0)))
    return part / whole if whole else math.nan
