"""How well predictions follow a target: Pearson and Spearman correlation."""

from __future__ import annotations

from typing import Sequence

import numpy as np


def pearson(predictions: Sequence[float], targets: Sequence[float]) -> float:
    """Pearson's r, in [-1, 1].

    NaN where it is undefined: fewer than two values, a NaN among them, or either side constant.
    Raises ValueError for two lists of different lengths.
    """
    x, y = _pair(predictions, targets)
    if len(x) < 2 or np.isnan(x).any() or np.isnan(y).any() or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float('nan')
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip(np.sum(x * y) / np.sqrt(np.sum(x * x) * np.sum(y * y)), -1.0, 1.0))


def spearman(predictions: Sequence[float], targets: Sequence[float]) -> float:
    """Spearman's rho, in [-1, 1]: Pearson's r of the ranks, equal values sharing their mean rank.

    NaN and errors as for `pearson`.
    """
    x, y = _pair(predictions, targets)
    if np.isnan(x).any() or np.isnan(y).any():
        return float('nan')
    return pearson(_ranks(x), _ranks(y))


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2.0)[inverse]


def _pair(predictions: Sequence[float], targets: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(predictions, float), np.asarray(targets, float)
    if x.shape != y.shape:
        raise ValueError(f'{x.size} predictions and {y.size} targets (as many of each are needed)')
    return x, y
