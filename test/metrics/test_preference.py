"""Pairwise accuracy and margins, on cases worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from densereward_ros.metrics.preference import pairwise_accuracy, preference

MARGINS = st.lists(st.floats(-50, 50), min_size=1, max_size=30)


@pytest.mark.parametrize(('margins', 'accuracy'), [
    ([1.0], 1.0),
    ([-1.0], 0.0),
    ([0.0], 0.5),
    ([-0.0], 0.5),
    ([2.0, -1.0], 0.5),
    ([3.0, 0.0, -1.0, 0.5], (1 + 0.5 + 0 + 1) / 4),
    ([1e-300, -17.75, 18.38], 2 / 3),
])
def test_the_share_of_pairs_in_the_right_order(margins, accuracy):
    """A tie earns a half, and the size of a margin does not count."""
    assert pairwise_accuracy(margins) == pytest.approx(accuracy)


def test_no_pair_has_no_accuracy():
    """It is undefined, not 0 and not a half."""
    assert math.isnan(pairwise_accuracy([]))
    found = preference([])
    assert (found.pairs, found.ties, found.undefined) == (0, 0, 0)
    assert all(map(math.isnan, (found.accuracy, *found.interval, *found.margins)))


def test_figures_of_a_few_pairs():
    """Two right, one wrong, one tie, one without a score: 2.5 of 4."""
    found = preference([4.0, -2.0, math.nan, 0.0, 1.0])
    assert (found.pairs, found.ties, found.undefined) == (5, 1, 1)
    assert found.accuracy == 2.5 / 4
    assert found.margins == (-2.0, 0.5, 4.0)
    low, high = found.interval
    assert 0 <= low < 2.5 / 4 < high <= 1


def test_pairs_without_a_score_are_counted_and_nothing_else():
    """They do not make an accuracy of 0."""
    found = preference([math.nan, math.nan])
    assert (found.pairs, found.ties, found.undefined) == (2, 0, 2)
    assert all(map(math.isnan, (found.accuracy, *found.interval, *found.margins)))


def test_the_interval_is_that_of_a_coin():
    """94 pairs, half of them right: the normal approximation is 0.5 +- 1.96 * sqrt(0.25 / 94) = 0.101."""
    found = preference([1.0] * 47 + [-1.0] * 47)
    assert found.accuracy == 0.5
    assert found.interval == (pytest.approx(0.399, abs=0.015), pytest.approx(0.601, abs=0.015))
    assert preference([1.0] * 94).interval == (1.0, 1.0)


@settings(max_examples=30)
@given(MARGINS)
def test_swapping_every_pair_mirrors_the_figures(margins):
    """Accuracy a becomes 1 - a, and the margins change their sign."""
    found, mirrored = preference(margins), preference([-margin for margin in margins])
    assert mirrored.accuracy == pytest.approx(1 - found.accuracy)
    assert mirrored.ties == found.ties
    assert mirrored.margins == pytest.approx([-margin for margin in reversed(found.margins)])
    assert found.interval[0] <= found.accuracy + 1e-9 and found.accuracy <= found.interval[1] + 1e-9
