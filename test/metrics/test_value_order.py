"""Value-order correlation on cases worked out by hand."""

from __future__ import annotations

import math

import pytest

from densereward_ros.metrics.value_order import value_order


def test_rising_and_falling_rewards():
    """However they rise, in whatever range."""
    assert value_order([0.1, 0.2, 0.9]) == pytest.approx(1.0)
    assert value_order([7.0, -3.0, -3000.0]) == pytest.approx(-1.0)


def test_one_step_back():
    """Ranks (1, 3, 2, 4) against (1, 2, 3, 4): 1 - 6 * 2 / (4 * 15)."""
    assert value_order([0.1, 0.5, 0.3, 0.9]) == pytest.approx(0.8)


def test_equal_rewards_share_their_rank():
    """Ranks (1, 2.5, 2.5) against (1, 2, 3): r = 1.5 / sqrt(1.5 * 2)."""
    assert value_order([0.0, 0.5, 0.5]) == pytest.approx(1.5 / math.sqrt(3.0))


@pytest.mark.parametrize('rewards', [[], [0.5], [0.5, 0.5, 0.5], [0.1, math.nan, 0.3]])
def test_undefined_is_not_zero(rewards):
    """No frame, a single one, constant predictions, a NaN."""
    assert math.isnan(value_order(rewards))
