"""How far predictions are from a target."""

from __future__ import annotations

from typing import Sequence

import numpy as np


def mae(predictions: Sequence[float], targets: Sequence[float]) -> float:
    """Mean absolute error, in the unit of the values; NaN for no values or a NaN among them.

    Raises ValueError for two lists of different lengths.
    """
    x, y = np.asarray(predictions, float), np.asarray(targets, float)
    if x.shape != y.shape:
        raise ValueError(f'{x.size} predictions and {y.size} targets (as many of each are needed)')
    return float(np.mean(np.abs(x - y))) if x.size else float('nan')
