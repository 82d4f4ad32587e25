"""Quality of service: what users may override by parameters, and what to say when two ends do not match."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

from rclpy.exceptions import ParameterException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import QoSPolicyKind, QoSProfile, qos_policy_name_from_kind
from rclpy.qos_overriding_options import InvalidQosOverridesError, QoSOverridingOptions

from densereward_ros.ros.parameters import ParameterError

try:
    from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import PublisherEventCallbacks, SubscriptionEventCallbacks

OVERRIDABLE = (
    QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY, QoSPolicyKind.DURABILITY,
    QoSPolicyKind.DEADLINE)


def overridable(
    create: Callable[..., Any], kind: type, topic: str, *callback: Callable, profile: QoSProfile, node: Node,
    check: Callable | None = None, **options: Any,
) -> Any:
    """A publisher, or with a callback a subscription, of a node, made by its method `create`.

    The parameters qos_overrides.TOPIC.publisher.POLICY (or .subscription.) win over the profile. check:
    the last to see, and to complete, the profile, see QoSOverridingOptions. Raises ParameterError for
    overrides that are not allowed.
    """
    events = SubscriptionEventCallbacks if callback else PublisherEventCallbacks
    full = node.resolve_topic_name(topic)
    with _named(full):
        return create(
            kind, topic, *callback,
            copy.copy(profile),  # rclpy writes the overrides into the object that it gets
            qos_overriding_options=QoSOverridingOptions(OVERRIDABLE, callback=check),
            event_callbacks=events(
                incompatible_qos=_Mismatch(node, full, bool(callback)),
                use_default_callbacks=False),
            **options)


class _Mismatch:
    """Logs that the other end of a topic does not match, once for each policy, with the fix."""

    def __init__(self, node: Node, topic: str, subscribed: bool) -> None:
        self._log = node.get_logger()
        self._topic = topic
        self._subscribed = subscribed
        self._told: set[int] = set()

    def __call__(self, event: Any) -> None:
        if event.last_policy_kind in self._told:
            return
        self._told.add(event.last_policy_kind)
        policy = qos_policy_name_from_kind(event.last_policy_kind).lower()
        if self._subscribed:
            self._log.warning(
                f'{self._topic}: a publisher offers less {policy} than this node asks for, and nothing '
                f'arrives from it: set qos_overrides.{self._topic}.subscription.{policy} to what it offers')
        else:
            self._log.warning(
                f'{self._topic}: a subscriber asks for more {policy} than this node offers, and gets '
                f'nothing: change the subscriber, or set qos_overrides.{self._topic}.publisher.{policy}')


@contextlib.contextmanager
def _named(topic: str) -> Iterator[None]:
    try:
        yield
    except rclpy_implementation.RCLError:
        raise
    except (ParameterException, InvalidQosOverridesError, RuntimeError, ValueError) as error:
        why = ' '.join(str(error).split())
        raise ParameterError(f'parameters qos_overrides.{topic}: {why}') from None
