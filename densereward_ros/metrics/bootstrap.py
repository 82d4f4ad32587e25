"""How sure a figure is: the bootstrap, which resamples whole episodes."""

from __future__ import annotations

import math
from typing import Callable, Sequence, TypeVar

import numpy as np

Episode = TypeVar('Episode')


def interval(
    episodes: Sequence[Episode],
    figure: Callable[[Sequence[Episode]], float],
    level: float = 0.95,
    samples: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile interval of `figure` over resampled episodes.

    Episodes are drawn with replacement, never single frames: the frames of one episode depend on one another.
    level: in (0, 1). Resamples in which the figure is NaN (undefined) are left out; with no episodes,
    or where all are NaN, both ends are NaN. The same seed gives the same interval.
    """
    if not episodes:
        return math.nan, math.nan
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(samples):
        value = figure([episodes[i] for i in rng.integers(len(episodes), size=len(episodes))])
        if not math.isnan(value):
            values.append(value)
    if not values:
        return math.nan, math.nan
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def with_intervals(parts: Sequence[Episode], kinds: dict[str, Callable[[Sequence[Episode]], float]]) -> dict:
    """Several figures of the same episodes by name, and under `intervals` those of each, ready for JSON."""
    results: dict = {name: rounded(figure(parts)) for name, figure in kinds.items()}
    results['intervals'] = {
        name: [rounded(end) for end in interval(parts, figure)] for name, figure in kinds.items()}
    return results


def rounded(value: float) -> float | None:
    """To four digits for JSON, which has no NaN."""
    return None if math.isnan(value) else round(value, 4)
