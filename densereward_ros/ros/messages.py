"""Verdicts and events as ROS messages."""

from __future__ import annotations

import math

from builtin_interfaces.msg import Duration, Time
from std_msgs.msg import Header

from densereward_ros import msg
from densereward_ros.frames.messages import NS_PER_S, stamp_ns  # noqa: F401  stamp_ns undoes to_time
from densereward_ros.types import REASONS, FailureEvent, Frame, Verdict, Window


def to_time(nanoseconds: int) -> Time:
    """A message's time of nanoseconds."""
    sec, nanosec = divmod(nanoseconds, NS_PER_S)
    return Time(sec=sec, nanosec=nanosec)


def header_of(frame: Frame) -> Header:
    """The header that the frame's image came with."""
    return Header(stamp=to_time(frame.stamp_ns), frame_id=frame.frame_id)


def reward_message(
    window: Window, verdict: Verdict, inference_s: float, model: str
) -> msg.RewardStamped:
    """A verdict on a window, found in `inference_s` seconds by the named model."""
    sec, nanosec = divmod(round(inference_s * NS_PER_S), NS_PER_S)
    return msg.RewardStamped(
        header=header_of(window.newest),
        camera=window.camera,
        task=window.task,
        reward=verdict.reward,
        bounded=verdict.bounded,
        reason=int(verdict.reason),
        reason_probabilities=verdict.reason_probabilities or (math.nan,) * len(REASONS),
        frame_stamps=[to_time(frame.stamp_ns) for frame in window.frames],
        inference_time=Duration(sec=sec, nanosec=nanosec),
        model=model,
    )


def failure_message(event: FailureEvent, sequence: int) -> msg.FailureEvent:
    """The onset of a failure; `sequence` counts the events of this node since it was configured, from 1."""
    return msg.FailureEvent(
        header=header_of(event.window.newest),
        cameras=list(event.cameras),
        task=event.window.task,
        reason=int(event.reason),
        rule=int(event.rule),
        reward=event.reward,
        previous_reward=_or_nan(event.previous_reward),
        probability=_or_nan(event.probability),
        confirmations=event.confirmations,
        sequence=sequence,
    )


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
