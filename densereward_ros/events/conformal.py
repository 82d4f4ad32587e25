"""Split conformal prediction: a threshold that a new score exceeds with at most a given chance."""

from __future__ import annotations

import math
from typing import Sequence

# 1 / 0.05 is 20.000000000000004 - or not, depending on how it is written; it is meant to be 20.
_ROUNDING = 1e-9


class CalibrationError(ValueError):
    """A promise that cannot be kept; the text is one line for the user."""


def scores_needed(chance: float) -> int:
    """The fewest scores that can promise it: ceil(1 / chance) - 1. chance: in (0, 1)."""
    return max(1, math.ceil(1 / chance - _ROUNDING) - 1)


def conformal_threshold(scores: Sequence[float], chance: float) -> float:
    """The k-th smallest score, k = ceil((n + 1)(1 - chance)).

    Where the n scores and a new one are exchangeable, the new one exceeds it with a probability of at most
    `chance`, over the draw of all of them; ties only make it rarer. chance: in (0, 1).
    Raises ValueError for fewer scores than `scores_needed`: no threshold could promise it.
    """
    needed = scores_needed(chance)
    if len(scores) < needed:
        raise ValueError(f'{len(scores)} scores, and at least {needed} are needed')
    rank = math.ceil((len(scores) + 1) * (1 - chance) - _ROUNDING)
    return sorted(scores)[rank - 1]
