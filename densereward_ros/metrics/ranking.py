"""Whether better episodes score higher: rank correlation over episodes of one task."""

from __future__ import annotations

import math
import statistics
from typing import Hashable, Sequence

import numpy as np


def kendall_tau_b(scores: Sequence[float], outcomes: Sequence[float]) -> float:
    """Kendall's tau-b, in [-1, 1]: concordant less discordant pairs, corrected for ties on both sides.

    outcomes: of few different values, such as success or not; each pair of them takes a search. NaN where it
    is undefined: fewer than two values, a NaN among them, or either side constant. Raises ValueError for two
    lists of different lengths.
    """
    x, y = np.asarray(scores, float), np.asarray(outcomes, float)
    if x.shape != y.shape:
        raise ValueError(f'{x.size} scores and {y.size} outcomes (as many of each are needed)')
    if np.isnan(x).any() or np.isnan(y).any():
        return math.nan
    pairs = x.size * (x.size - 1) // 2
    untied = [pairs - _tied(values) for values in (x, y)]
    if 0 in untied:
        return math.nan
    levels = [np.sort(x[y == value]) for value in np.unique(y)]
    surplus = 0
    for number, worse in enumerate(levels):
        for better in levels[number + 1:]:
            below = np.searchsorted(worse, better, 'left').sum()
            above = (worse.size - np.searchsorted(worse, better, 'right')).sum()
            surplus += int(below) - int(above)
    return surplus / math.sqrt(untied[0] * untied[1])


def mean_tau_over_tasks(episodes: Sequence[tuple[Hashable, float, float]]) -> float:
    """Kendall's tau-b within each task, its mean over the tasks where it is defined; NaN for none.

    episodes: task, score and outcome of each.
    """
    tasks: dict[Hashable, list[tuple[float, float]]] = {}
    for task, score, outcome in episodes:
        tasks.setdefault(task, []).append((score, outcome))
    taus = [kendall_tau_b(*zip(*pairs)) for pairs in tasks.values()]
    known = [tau for tau in taus if not math.isnan(tau)]
    return statistics.fmean(known) if known else math.nan


def _tied(values: np.ndarray) -> int:
    """How many pairs have equal values."""
    _, counts = np.unique(values, return_counts=True)
    return int((counts * (counts - 1) // 2).sum())
