"""Whether better episodes score higher: rank correlation over episodes of one task."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Hashable, Sequence


def kendall_tau_b(scores: Sequence[float], outcomes: Sequence[float]) -> float:
    """Kendall's tau-b, in [-1, 1]: concordant less discordant pairs, corrected for ties on both sides.

    outcomes: of few different values, such as success or not; each pair of them takes a search. NaN where it
    is undefined: fewer than two values, a NaN among them, or either side constant. Raises ValueError for two
    lists of different lengths.
    """
    if len(scores) != len(outcomes):
        raise ValueError(f'{len(scores)} scores and {len(outcomes)} outcomes (as many of each are needed)')
    if any(map(math.isnan, (*scores, *outcomes))):
        return math.nan
    pairs = len(scores) * (len(scores) - 1) // 2
    untied = (pairs - _tied(scores)) * (pairs - _tied(outcomes))
    if not untied:
        return math.nan
    levels: dict[float, list[float]] = {outcome: [] for outcome in sorted(set(outcomes))}
    for score, outcome in sorted(zip(scores, outcomes)):
        levels[outcome].append(score)
    surplus, worse_ones = 0, []
    for better in levels.values():
        for worse in worse_ones:
            # Of each better one: those below it are concordant, those above it discordant.
            surplus += sum(bisect_left(worse, s) + bisect_right(worse, s) - len(worse) for s in better)
        worse_ones.append(better)
    return surplus / math.sqrt(untied)


def tau_of_tasks(episodes: Sequence[tuple[Hashable, float, float]]) -> dict[Hashable, float]:
    """Kendall's tau-b within each task, NaN where it is undefined. episodes: task, score, outcome of each."""
    tasks: dict[Hashable, list[tuple[float, float]]] = {}
    for task, score, outcome in episodes:
        tasks.setdefault(task, []).append((score, outcome))
    return {task: kendall_tau_b(*zip(*pairs)) for task, pairs in tasks.items()}


def _tied(values: Sequence[float]) -> int:
    """How many pairs have equal values."""
    return sum(count * (count - 1) // 2 for count in Counter(values).values())
