"""Precision, recall, F1 and delay, by hand."""

from __future__ import annotations

import math

import pytest

from densereward_ros.metrics.detection import (
    Detection,
    delay_of_found,
    delay_with_misses,
    f1,
    match,
    precision,
    recall,
    total,
)
from densereward_ros.types import Reason


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


MISSES = ((2.0, Reason.MISS), (6.0, Reason.FALL), (9.0, Reason.MISS))
EVENTS = ((1.8, Reason.MISS), (6.5, Reason.MISS), (20.0, Reason.FALL))


def test_one_episode_by_hand():
    """An early event, one of the wrong word, a missed failure, an event without one; in both conventions."""
    detection = Detection.of(MISSES, EVENTS, early=0.5, late=2.0, end=12.0)
    assert detection.found == (0, 1, None)
    assert detection.counts() == (2, 3, 3)
    assert detection.delays() == [0, 0.5, None]
    assert detection.remaining() == [10.0, 6.0, 3.0]
    assert detection.words() == [
        ('miss', 'miss'), ('fall', 'miss'), ('miss', 'missed'), ('no failure', 'fall')]


def test_one_word_by_hand():
    """The second miss told was a fall: of the misses one in two is found, and of the falls none."""
    detection = Detection.of(MISSES, EVENTS, early=0.5, late=2.0, end=12.0)
    assert detection.counts(Reason.MISS) == (1, 2, 2)
    assert detection.counts(Reason.FALL) == (0, 1, 1)
    assert detection.counts(Reason.SMOOTH) == (0, 0, 0)


def test_a_failure_after_the_end_leaves_nothing():
    """A label made by hand may lie after the last frame: the rest is then 0, not less."""
    assert Detection.of([(3.0, Reason.NONE)], [], 0.5, 2.0, end=2.0).remaining() == [0]


def test_counts_add_up_and_of_nothing_are_none():
    """Three numbers each."""
    assert total([(1, 2, 3), (0, 1, 1)]) == (1, 3, 4)
    assert total([]) == (0, 0, 0)
