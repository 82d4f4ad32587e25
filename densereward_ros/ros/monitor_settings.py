"""What the monitor is told by parameters, checked."""

from __future__ import annotations

from typing import Any, Callable

from rclpy.exceptions import NameValidationException
from rclpy.expand_topic_name import expand_topic_name
from rclpy.node import Node
from rclpy.validate_full_topic_name import validate_full_topic_name

from densereward_ros.events.fusion import check_fusion
from densereward_ros.events.thresholds import Thresholds
from densereward_ros.ros.event_parameters import detector_settings
from densereward_ros.ros.monitor import MonitorSettings
from densereward_ros.ros.parameters import ParameterError


def monitor_settings(
    node: Node, value: Callable[[str], Any], thresholds: Thresholds | None
) -> MonitorSettings:
    """The settings, with topics as they resolve on the node.

    value: of a parameter, by name. Raises ParameterError.
    """
    topics: list[str] = []
    for topic in value('image_topics'):
        full = _resolved(node, topic)
        if full.endswith('/compressedDepth'):
            raise ParameterError(f'parameter image_topics holds {topic!r}, allowed: colour images')
        if full in topics:
            raise ParameterError(f'parameter image_topics names {full} twice, allowed: each camera once')
        topics.append(full)
    primary = value('primary_camera')
    primary = node.resolve_topic_name(primary) if primary else ''
    try:
        check_fusion(topics, value('fusion'), primary)
    except ValueError as error:
        raise ParameterError(f'parameter {error}') from None
    return MonitorSettings(
        image_topics=tuple(topics),
        detector=detector_settings(value, thresholds),
        primary_camera=primary,
        **{name: value(name) for name in ('frame_interval', 'max_frame_age', 'rate', 'fusion')})


def _resolved(node: Node, topic: str) -> str:
    try:
        validate_full_topic_name(expand_topic_name(topic, node.get_name(), node.get_namespace()))
    except (ValueError, NameValidationException) as error:
        why = str(error).splitlines()[0].rstrip(':')
        raise ParameterError(f'parameter image_topics holds {topic!r}: {why}') from None
    return node.resolve_topic_name(topic)
