"""Precision, recall, F1 and delay, by hand."""

from __future__ import annotations

import math

import pytest

from densereward_ros.metrics.detection import delay_of_found, delay_with_misses, f1, match, precision, recall


def test_an_event_finds_one_failure_and_a_failure_takes_one_event():
    """The first event in reach is its; a second one is left over; one out of reach finds nothing."""
    assert match([10.0], [9.5, 11.0], early=1.0, late=2.0) == [0]
    assert match([10.0, 10.5], [11.0, 11.2], early=1.0, late=2.0) == [0, 1]
    assert match([10.0, 11.0], [11.5], early=1.0, late=2.0) == [0, None]
    assert match([10.0], [8.9, 12.1], early=1.0, late=2.0) == [None]
    assert match([10.0], [9.0, 12.0], early=1.0, late=2.0) == [0]
    assert match([], [1.0], 1.0, 1.0) == []


def test_shares():
    """Three found of four, with five events; and what is undefined is NaN."""
    assert (precision(3, 5), recall(3, 4), f1(3, 5, 4)) == (0.6, 0.75, pytest.approx(2 / 3))
    assert f1(0, 0, 4) == 0.0
    assert math.isnan(precision(0, 0)) and math.isnan(recall(0, 0)) and math.isnan(f1(0, 0, 0))


def test_both_conventions_of_delay():
    """Of those found alone; and with a miss as the rest of its episode, which is never flattering."""
    assert delay_of_found([0.2, None, 0.6]) == pytest.approx(0.4)
    assert delay_with_misses([0.2, None, 0.6], [9.0, 4.0, 9.0]) == pytest.approx(1.6)
    assert math.isnan(delay_of_found([None])) and math.isnan(delay_with_misses([], []))
    with pytest.raises(ValueError):
        delay_with_misses([0.2], [1.0, 2.0])
