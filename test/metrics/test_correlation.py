"""Correlations on cases worked out by hand."""

from __future__ import annotations

import math

import pytest

from densereward_ros.metrics.correlation import pearson, spearman


def test_a_straight_line_has_pearson_one():
    """Scale and offset do not matter to Pearson."""
    assert pearson([0.0, 0.5, 1.0], [10.0, 20.0, 30.0]) == pytest.approx(1.0)
    assert pearson([0.0, 0.5, 1.0], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)


def test_pearson_of_four_points():
    """r = 4 / sqrt(5 * 5) for deviations (-1.5, -.5, .5, 1.5) and (-1.5, .5, -.5, 1.5)."""
    assert pearson([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)


def test_spearman_sees_only_order():
    """Any rising curve has Spearman one, where Pearson is lower."""
    assert spearman([1, 2, 3, 4], [1, 10, 100, 1000]) == pytest.approx(1.0)
    assert pearson([1, 2, 3, 4], [1, 10, 100, 1000]) < 0.9


def test_ties_share_their_mean_rank():
    """Ranks (1, 2.5, 2.5, 4) against (1, 2, 3, 4): r = 4.5 / sqrt(4.5 * 5)."""
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / math.sqrt(4.5 * 5))


@pytest.mark.parametrize(
    'predictions, targets',
    [([], []), ([1.0], [1.0]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [2, 2, 2]), ([1, math.nan, 3], [1, 2, 3])],
)
def test_undefined_is_nan(predictions, targets):
    """Too few values, a constant side or a NaN: not zero, but NaN."""
    assert math.isnan(pearson(predictions, targets))
    assert math.isnan(spearman(predictions, targets))


def test_nearly_constant_predictions_stay_in_range():
    """Rounding never gives a correlation above one."""
    assert -1 <= pearson([0.1, 0.1 + 1e-17, 0.2], [0.3, 0.3, 0.6]) <= 1


def test_lengths_must_agree():
    """The error names both lengths."""
    with pytest.raises(ValueError, match='2 predictions and 3 targets'):
        spearman([1, 2], [1, 2, 3])
