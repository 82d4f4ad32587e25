"""Means that leave out what is undefined, and shares of sums."""

from __future__ import annotations

import math

import pytest

from densereward_ros.metrics.means import mean_of_defined, share


def test_the_mean_leaves_out_what_is_undefined():
    """Of 1, -0.5 and two that are undefined; and of none."""
    assert mean_of_defined([1.0, math.nan, -0.5, math.nan]) == pytest.approx(0.25)
    assert math.isnan(mean_of_defined([math.nan])) and math.isnan(mean_of_defined([]))


def test_shares_are_of_sums():
    """One of two and none of six are one of eight; of nothing there is none."""
    assert share([(1, 2), (0, 6)]) == 0.125
    assert math.isnan(share([])) and math.isnan(share([(0, 0)]))
