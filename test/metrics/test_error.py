"""Errors on cases worked out by hand."""

from __future__ import annotations

import math

import pytest

from densereward_ros.metrics.error import mae


def test_mean_of_absolute_differences():
    """(0.1 + 0.3 + 0) / 3, whatever the signs."""
    assert mae([0.5, 0.2, 1.0], [0.4, 0.5, 1.0]) == pytest.approx(0.4 / 3)


def test_one_value():
    """A single value has an error too."""
    assert mae([0.25], [1.0]) == pytest.approx(0.75)


@pytest.mark.parametrize('predictions, targets', [([], []), ([math.nan, 1.0], [1.0, 1.0])])
def test_nothing_to_measure_is_nan(predictions, targets):
    """No values, or a NaN, is never a perfect score."""
    assert math.isnan(mae(predictions, targets))


def test_lengths_must_agree():
    """The error names both lengths."""
    with pytest.raises(ValueError, match='1 predictions and 0 targets'):
        mae([1.0], [])
