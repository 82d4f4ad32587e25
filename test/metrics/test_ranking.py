"""Kendall's tau-b on cases worked out by hand, and against scipy's."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from densereward_ros.metrics.bootstrap import interval
from densereward_ros.metrics.ranking import kendall_tau_b, tau_b_within_tasks


def test_every_pair_in_order_and_none():
    """Without ties tau-b is tau."""
    assert kendall_tau_b([1, 2, 3], [10, 20, 30]) == pytest.approx(1.0)
    assert kendall_tau_b([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)
    assert kendall_tau_b([1, 3, 2, 4], [1, 2, 3, 4]) == pytest.approx(4 / 6)


def test_ties_of_success_are_corrected_for():
    """Two failures below two successes: 4 concordant of 6 pairs, 2 tied in success: 4 / sqrt(6 * 4)."""
    assert kendall_tau_b([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]) == pytest.approx(4 / math.sqrt(24))


def test_ties_of_both_sides():
    """Scores (1, 1, 2), outcomes (0, 1, 1): one pair in order, two untied on each side: 1 / 2."""
    assert kendall_tau_b([1, 1, 2], [0, 1, 1]) == pytest.approx(0.5)


@pytest.mark.parametrize(('scores', 'outcomes'), [
    ([], []), ([1.0], [1.0]), ([1, 1, 1], [0, 1, 1]), ([1, 2, 3], [1, 1, 1]), ([1, math.nan], [0, 1])])
def test_undefined_is_nan(scores, outcomes):
    """No episode, a single one, equal scores, nothing but successes, a NaN."""
    assert math.isnan(kendall_tau_b(scores, outcomes))


def test_lengths_must_agree():
    """The error names both."""
    with pytest.raises(ValueError, match='2 scores and 1 outcomes'):
        kendall_tau_b([1, 2], [1])


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=2, max_size=20))
def test_it_is_what_scipy_calls_tau_b(pairs):
    """Whatever ties there are."""
    from scipy.stats import kendalltau

    scores, outcomes = zip(*pairs)
    expected = kendalltau(scores, outcomes, variant='b').statistic
    assert kendall_tau_b(scores, outcomes) == pytest.approx(expected, nan_ok=True)


def test_only_episodes_of_one_task_are_compared():
    """One pair in order, one against it, and one episode without another of its task: (1 - 1) / 2."""
    stacked = [('stack', 0.8, 0), ('stack', 0.9, 1)]
    opened = [('open', 0.2, 0), ('open', 0.1, 1)]
    assert tau_b_within_tasks([*stacked, *opened, ('push', 0.5, 1)]) == 0.0
    assert tau_b_within_tasks([*stacked, ('push', 0.5, 1)]) == 1.0
    assert math.isnan(tau_b_within_tasks([('push', 0.5, 1), ('pull', 0.4, 0)]))
    assert math.isnan(tau_b_within_tasks([]))


def test_a_task_of_one_outcome_counts_as_ties():
    """A pair in order, and a pair that only the scores tell apart: 1 / sqrt(2 * 1)."""
    episodes = [('stack', 0.1, 0), ('stack', 0.9, 1), ('open', 0.2, 1), ('open', 0.3, 1)]
    assert tau_b_within_tasks(episodes) == pytest.approx(1 / math.sqrt(2))


def test_its_interval_holds_it():
    """Of many small tasks, some with one outcome in a resample; the mean over tasks does not do this."""
    dice = random.Random(3)
    episodes = [
        (task, dice.random() + 0.3 * success, success) for task in range(40)
        for success in [dice.random() < 0.7 for _ in range(6)]]
    low, high = interval(episodes, tau_b_within_tasks, samples=300)
    assert low < tau_b_within_tasks(episodes) < high
    assert abs((low + high) / 2 - tau_b_within_tasks(episodes)) < (high - low) / 8
