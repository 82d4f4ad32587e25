"""How the reward node's process starts: what takes the interpreter comes before there is a node."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any, Iterator

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.logging import get_logger
from rclpy.node import Node

from densereward_ros.models.opening import preload
from densereward_ros.ros import bridge
from densereward_ros.ros.parameters import SPEC_OF_NAME
from densereward_ros.ros.process import limit_arenas, run
from densereward_ros.ros.reward_node import RewardNode


def main() -> None:
    """Run the node until SIGINT or SIGTERM; ends the process."""
    limit_arenas()
    run(_start, RewardNode.shut_down)


def _start() -> RewardNode:
    # Importing torch holds the interpreter for most of a second at a time, in which no service would
    # be answered; so it comes before the node does. Whether it worked, configure says.
    if _start_value('engine') != 'server':
        get_logger('reward_node').info('importing torch and transformers')
        with _ended_at_once():
            preload()
    bridge.describe()  # which imports cv_bridge, and is remembered
    return RewardNode()


@contextlib.contextmanager
def _ended_at_once() -> Iterator[None]:
    """Signals end the process here and now: there is no node yet to shut down."""
    before = [
        (number, signal.signal(number, lambda *_: os._exit(0))) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    for number, handler in before:
        signal.signal(number, handler)


def _start_value(name: str) -> Any:
    """What the node will find as a parameter's start value, allowed or not; before there is a node."""
    probe = Node('reward_node', enable_rosout=False, start_parameter_services=False)
    try:
        descriptor = ParameterDescriptor(dynamic_typing=True)
        return probe.declare_parameter(name, SPEC_OF_NAME[name].default, descriptor).value
    finally:
        probe.destroy_node()
