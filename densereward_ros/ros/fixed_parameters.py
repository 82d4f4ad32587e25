"""Parameters that a node reads once, when it starts."""

from __future__ import annotations

from typing import Any, Sequence

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from densereward_ros.ros.parameters import ParameterSpec, check_value


def declare_fixed(node: Node, specs: Sequence[ParameterSpec]) -> dict[str, Any]:
    """Declare parameters as read-only; returns their values by name.

    Raises ParameterError, a ValueError of one line, for a value that is not allowed.
    """
    values = {}
    for spec in specs:
        descriptor = ParameterDescriptor(
            description=spec.description, additional_constraints=f'Allowed: {spec.allowed}.',
            # With a fixed type rclpy would refuse a wrong one in words that name no allowed value.
            read_only=True, dynamic_typing=True)
        values[spec.name] = node.declare_parameter(spec.name, spec.default, descriptor).value
        check_value(spec, values[spec.name])
    return values
