"""Whether the preferred one of two scores higher. A margin is its score less that of the other."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Sequence

from densereward_ros.metrics.bootstrap import interval


def pairwise_accuracy(margins: Sequence[float]) -> float:
    """The share of pairs whose preferred one scores higher, in [0, 1]; a tie earns a half. NaN for none."""
    return statistics.fmean(0.5 if margin == 0 else float(margin > 0) for margin in margins) if margins else (
        math.nan)


@dataclass(frozen=True)
class Preference:
    """The figures of some pairs.

    pairs: how many; ties and undefined: how many of them tie, and lack a score. accuracy: of those that have
    both, with its 95% interval, resampled by pair. margins: the least, the median and the greatest. NaN
    where there is no pair to tell.
    """

    pairs: int
    ties: int
    undefined: int
    accuracy: float
    interval: tuple[float, float]
    margins: tuple[float, float, float]


def preference(margins: Sequence[float]) -> Preference:
    """The figures of pairs with these margins, NaN where one of the two has no score."""
    known = [margin for margin in margins if not math.isnan(margin)]
    return Preference(
        pairs=len(margins),
        ties=known.count(0.0),
        undefined=len(margins) - len(known),
        accuracy=pairwise_accuracy(known),
        interval=interval(known, pairwise_accuracy),
        margins=(min(known), statistics.median(known), max(known)) if known else (math.nan,) * 3,
    )
