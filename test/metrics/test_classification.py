"""Rates of alarms and the confusion matrix, by hand."""

from __future__ import annotations

import math

import pytest

from densereward_ros.metrics.classification import (
    balanced_accuracy,
    confusion,
    true_negative_rate,
    true_positive_rate,
)

# Failed, alarmed: three failures of which two were told, and four others of which one had a false alarm.
EPISODES = [(True, True), (True, True), (True, False), (False, True), *[(False, False)] * 3]


def test_rates_by_hand():
    """2 of 3, 3 of 4, and the mean of the two."""
    assert true_positive_rate(EPISODES) == pytest.approx(2 / 3)
    assert true_negative_rate(EPISODES) == pytest.approx(3 / 4)
    assert balanced_accuracy(EPISODES) == pytest.approx((2 / 3 + 3 / 4) / 2)


def test_whoever_always_or_never_alarms_has_one_half():
    """However few failures there are."""
    for always in (True, False):
        assert balanced_accuracy([(failed, always) for failed, _ in EPISODES]) == 0.5


def test_undefined_is_nan():
    """No episodes, and episodes of one kind only."""
    assert math.isnan(true_positive_rate([])) and math.isnan(true_negative_rate([]))
    assert math.isnan(balanced_accuracy([]))
    assert true_negative_rate([(False, False)]) == 1.0 and math.isnan(balanced_accuracy([(False, False)]))


def test_the_confusion_matrix_counts_pairs():
    """Rows are what it was."""
    pairs = [('miss', 'miss'), ('miss', 'fall'), ('miss', 'miss'), ('fall', 'missed')]
    assert confusion(pairs) == {'miss': {'miss': 2, 'fall': 1}, 'fall': {'missed': 1}}
    assert confusion([]) == {}
