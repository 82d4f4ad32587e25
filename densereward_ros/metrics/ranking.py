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
    return tau_b_within_tasks([('', *pair) for pair in zip(scores, outcomes)])


def tau_b_within_tasks(episodes: Sequence[tuple[Hashable, float, float]]) -> float:
    """Kendall's tau-b over the pairs of episodes of one task; of a single task it is kendall_tau_b.

    episodes: task, score and outcome of each. It is not the mean over tasks: tasks in which that is undefined
    would be left out, and with them the resamples of a bootstrap that tell the least; the interval of such a
    mean may miss it. NaN as for kendall_tau_b.
    """
    tasks: dict[Hashable, list[tuple[float, float]]] = {}
    for task, score, outcome in episodes:
        if math.isnan(score) or math.isnan(outcome):
            return math.nan
        tasks.setdefault(task, []).append((score, outcome))
    counts = [_pairs(some) for some in tasks.values()]
    surplus, scored, judged = (sum(numbers) for numbers in zip(*counts, (0, 0, 0)))
    return surplus / math.sqrt(scored * judged) if scored and judged else math.nan


def _pairs(episodes: Sequence[tuple[float, float]]) -> tuple[int, int, int]:
    """Of all pairs: concordant less discordant ones; those with different scores; with different outcomes."""
    levels: dict[float, list[float]] = {}
    for score, outcome in sorted(episodes, key=lambda pair: pair[::-1]):
        levels.setdefault(outcome, []).append(score)
    surplus, worse_ones = 0, []
    for better in levels.values():
        for worse in worse_ones:
            # Of each better one: those below it are concordant, those above it discordant.
            surplus += sum(bisect_left(worse, s) + bisect_right(worse, s) - len(worse) for s in better)
        worse_ones.append(better)
    return surplus, *(_untied(values) for values in zip(*episodes))


def _untied(values: Sequence[float]) -> int:
    """How many pairs have different values."""
    return math.comb(len(values), 2) - sum(math.comb(count, 2) for count in Counter(values).values())
