"""Conformal thresholds: hand-counted ranks, how many scores a promise needs, and that it is kept."""

from __future__ import annotations

import numpy as np
import pytest

from densereward_ros.events.conformal import conformal_threshold, scores_needed


@pytest.mark.parametrize(
    ('chance', 'needed'), [(0.05, 19), (0.1, 9), (0.01, 99), (0.5, 1), (0.9, 1), (0.3, 3)])
def test_scores_needed(chance, needed):
    """ceil(1 / chance) - 1; with one fewer there is no threshold, with that many it is the largest score."""
    assert scores_needed(chance) == needed
    assert conformal_threshold(list(range(needed)), chance) == needed - 1
    if needed > 1:
        with pytest.raises(ValueError, match=f'{needed - 1} scores, and at least {needed} are needed'):
            conformal_threshold([0.0] * (needed - 1), chance)


def test_ranks_counted_by_hand():
    """ceil(101 * 0.95) = 96; ceil(40 * 0.9) = 36; the order of the scores does not matter."""
    assert conformal_threshold(list(range(1, 101))[::-1], 0.05) == 96
    assert conformal_threshold(list(range(1, 40)), 0.1) == 36


@pytest.mark.parametrize('chance', [0.05, 0.2])
def test_a_new_score_exceeds_it_at_most_that_often(chance):
    """Over 4000 draws of 39 scores and a new one, and not much more rarely either."""
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((4000, 40))
    exceeded = np.mean([row[0] > conformal_threshold(row[1:], chance) for row in draws])
    assert chance - 0.03 < exceeded <= chance + 3 * np.sqrt(chance * (1 - chance) / 4000)
