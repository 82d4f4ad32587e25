"""Whether rewards grow as a successful episode goes on: value-order correlation (VOC)."""

from __future__ import annotations

from typing import Sequence

from densereward_ros.metrics.correlation import spearman


def value_order(rewards: Sequence[float]) -> float:
    """Spearman's rho of an episode's rewards and the order of their frames, in [-1, 1].

    NaN where it is undefined: fewer than two rewards, all of them equal, or a NaN among them.
    """
    return spearman(rewards, range(len(rewards)))
