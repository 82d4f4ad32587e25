"""Verdicts and events as ROS messages, field by field."""

from __future__ import annotations

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time

from densereward_ros import msg
from densereward_ros.events.detector import EpisodeState
from densereward_ros.ros.messages import failure_message, reward_message, stamp_ns, to_time
from densereward_ros.types import FailureEvent, Frame, Reason, Rule, Verdict, Window

STAMPS_NS = (7_900_000_001, 8_100_000_002, 8_300_000_003)


def window() -> Window:
    """A window of three frames of a wrist camera."""
    frames = tuple(Frame(ns, 0, lambda: np.zeros((2, 2, 3), np.uint8), 'wrist') for ns in STAMPS_NS)
    return Window('/wrist/image_raw', 'stack the cup', frames)


@pytest.mark.parametrize(('kind', 'prefix', 'numbers'), [
    (msg.RewardStamped, 'REASON_', Reason),
    (msg.FailureEvent, 'REASON_', Reason),
    (msg.FailureEvent, 'RULE_', Rule),
    (msg.EpisodeState, 'STATE_', EpisodeState),
])
def test_the_constants_of_the_messages_are_the_numbers_of_the_code(kind, prefix, numbers):
    """The numbers in msg/ and in the enums are written twice and must agree, none missing on either side."""
    names = {name for name in dir(kind) if name.startswith(prefix)}
    assert names == {prefix + number.name for number in numbers}
    assert all(getattr(kind, prefix + number.name) == number for number in numbers)


@pytest.mark.parametrize('nanoseconds', [0, 1, 999_999_999, 1_000_000_000, 1_796_079_648_891_938_258, -1])
def test_times_survive_the_way_there_and_back(nanoseconds):
    """Nanoseconds are kept exactly, also those that a float would round, and nanosec stays in its range."""
    time = to_time(nanoseconds)
    assert stamp_ns(time) == nanoseconds
    assert 0 <= time.nanosec < 1_000_000_000


def test_a_reward_message_says_everything_of_a_verdict():
    """Every field of RewardStamped, with the header of the newest frame and the stamps oldest first."""
    probabilities = (0.5, 0.25, 0.125, 0.0625, 0.0625, 0.0)
    verdict = Verdict(0.25, Reason.FALL, reason_probabilities=probabilities)
    message = reward_message(window(), verdict, 1.25, 'tabletop')
    assert message.header.stamp == Time(sec=8, nanosec=300_000_003)
    assert message.header.frame_id == 'wrist'
    assert message.camera == '/wrist/image_raw'
    assert message.task == 'stack the cup'
    assert message.reward == 0.25
    assert message.bounded is True
    assert message.reason == msg.RewardStamped.REASON_FALL
    assert tuple(message.reason_probabilities) == probabilities
    assert [stamp_ns(stamp) for stamp in message.frame_stamps] == list(STAMPS_NS)
    assert message.frame_stamps[2] == message.header.stamp
    assert message.inference_time == Duration(sec=1, nanosec=250_000_000)
    assert message.model == 'tabletop'


def test_what_a_model_does_not_say_is_nan_and_an_unbounded_reward_is_marked():
    """A score head gives any number and no probabilities; a controller must be able to tell."""
    message = reward_message(window(), Verdict(-7.5, Reason.NONE, bounded=False), 0.0, 'score head')
    assert message.reward == -7.5
    assert message.reason == msg.RewardStamped.REASON_NONE == 0
    assert message.bounded is False
    assert len(message.reason_probabilities) == 6
    assert all(math.isnan(p) for p in message.reason_probabilities)


def test_a_latency_just_below_a_second_stays_a_valid_duration():
    """Rounding to nanoseconds carries into seconds; nanosec never reaches 1e9."""
    message = reward_message(window(), Verdict(0.0, Reason.MISS), 0.9999999999, 'm')
    assert message.inference_time == Duration(sec=1, nanosec=0)


def test_a_failure_message_says_everything_of_an_event():
    """Every field of FailureEvent; the header is that of the newest frame that confirmed it."""
    event = FailureEvent(
        window=window(), cameras=('/front', '/wrist/image_raw'), reason=Reason.MISS, rule=Rule.WORD,
        reward=0.25, previous_reward=0.75, probability=0.5, confirmations=2)
    message = failure_message(event, 41)
    assert message.header.stamp == Time(sec=8, nanosec=300_000_003)
    assert message.header.frame_id == 'wrist'
    assert list(message.cameras) == ['/front', '/wrist/image_raw']
    assert message.task == 'stack the cup'
    assert message.reason == msg.FailureEvent.REASON_MISS
    assert message.rule == msg.FailureEvent.RULE_WORD
    assert (message.reward, message.previous_reward, message.probability) == (0.25, 0.75, 0.5)
    assert message.confirmations == 2
    assert message.sequence == 41


def test_an_event_without_a_reward_before_it_says_nan():
    """The first verdicts of an episode may already fail: no reward came before, and 0 would be a lie."""
    event = FailureEvent(window(), ('/wrist/image_raw',), Reason.FALL, Rule.REWARD_DROP, 0.25, None, None, 1)
    message = failure_message(event, 1)
    assert math.isnan(message.previous_reward)
    assert math.isnan(message.probability)
    assert message.rule == msg.FailureEvent.RULE_REWARD_DROP
