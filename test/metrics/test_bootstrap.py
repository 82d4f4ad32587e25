"""The bootstrap interval."""

from __future__ import annotations

import math
import random

import pytest

from densereward_ros.metrics.bootstrap import interval, rounded, with_intervals


def _mean(values):
    values = list(values)
    return sum(values) / len(values) if values else math.nan


def test_constant_episodes_leave_no_doubt():
    """Every resample of equal episodes is the same."""
    assert interval([0.3] * 20, _mean) == pytest.approx((0.3, 0.3))


def test_it_is_about_two_standard_errors_wide():
    """For the mean of 400 values of standard deviation 1, the interval is near mean plus or minus 0.098."""
    dice = random.Random(1)
    values = [dice.gauss(5.0, 1.0) for _ in range(400)]
    low, high = interval(values, _mean, samples=2000)
    assert low < _mean(values) < high
    assert high - low == pytest.approx(4 * 0.98 / 20, rel=0.15)


def test_episodes_are_drawn_whole():
    """Two frames of one episode never part: a figure over both sees them together."""
    episodes = [(i, -i) for i in range(10)]
    low, high = interval(episodes, lambda some: sum(a + b for a, b in some), samples=50)
    assert (low, high) == (0, 0)


def test_undefined_resamples_are_left_out():
    """Where the figure is undefined for some resamples, the others still give an interval."""

    def share(some):
        known = [value for value in some if value is not None]
        return _mean(known)

    low, high = interval([None, 1.0, None, 3.0], share)
    assert 1.0 <= low <= high <= 3.0


def test_nothing_to_measure_is_nan():
    """No episodes, or a figure that is never defined."""
    assert all(math.isnan(end) for end in interval([], _mean))
    assert all(math.isnan(end) for end in interval([1.0, 2.0], lambda some: math.nan, samples=5))


def test_the_same_seed_gives_the_same_interval():
    """A number in a results file can be reproduced."""
    values = [0.1, 0.7, 0.3, 0.9, 0.2]
    assert interval(values, _mean, seed=3) == interval(values, _mean, seed=3)
    assert interval(values, _mean, seed=3) != interval(values, _mean, seed=4)


def test_several_figures_ready_for_json():
    """Rounded to four digits; None where a figure is undefined, in its interval too."""
    found = with_intervals([1 / 3] * 4, {'mean': _mean, 'nothing': lambda some: math.nan})
    assert found == {
        'mean': 0.3333, 'nothing': None, 'intervals': {'mean': [0.3333, 0.3333], 'nothing': [None, None]}}
    assert rounded(2 / 3) == 0.6667 and rounded(math.nan) is None
