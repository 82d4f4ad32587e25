"""Everything that the configured reward node publishes: topics, QoS and order."""

from __future__ import annotations

from rcl_interfaces.msg import SetParametersResult
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNodeMixin
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from std_msgs.msg import Float64

from densereward_ros import msg
from densereward_ros.ros.messages import failure_message, reward_message
from densereward_ros.ros.qos import overridable
from densereward_ros.types import FAILURES, FailureEvent, Verdict, Window

EVENTS_QOS = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.RELIABLE)
LATCHED_QOS = QoSProfile(
    depth=1, reliability=QoSReliabilityPolicy.RELIABLE, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL)
# After so many periods of `rate` without a reward DDS tells every subscriber that asks for it.
DEADLINE_PERIODS = 3


class Publications:
    """Lifecycle publishers: silent unless the node is active.

    first_camera: the topic whose rewards also go to reward/value. rate: rewards a second, from which the
    deadline of reward follows.
    """

    def __init__(self, node: LifecycleNodeMixin, model: str, first_camera: str, rate: float) -> None:
        self._node = node
        self._model = model
        self._first_camera = first_camera
        self._sequence = 0
        self._publishers = {}
        topics = {
            'reward': msg.RewardStamped,
            'reward/value': Float64,
            'failure_event': msg.FailureEvent,
            **{f'failure_event/{reason.word}': msg.FailureEvent for reason in FAILURES},
        }

        def set_deadline(qos: QoSProfile) -> SetParametersResult:
            # Here, and not as the default: that would stay what it was when the node was first configured.
            if qos.deadline.nanoseconds == 0:
                qos.deadline = Duration(seconds=DEADLINE_PERIODS / rate)
            return SetParametersResult(successful=True)

        try:
            for topic, kind in topics.items():
                self._publishers[topic] = overridable(
                    node.create_lifecycle_publisher, kind, topic, profile=EVENTS_QOS, node=node,
                    check=set_deadline if topic == 'reward' else None)
        except BaseException:
            self.destroy()
            raise

    def publish_reward(self, window: Window, verdict: Verdict, inference_s: float) -> None:
        """A verdict, to reward and, for the first camera, to reward/value."""
        self._publishers['reward'].publish(reward_message(window, verdict, inference_s, self._model))
        if window.camera == self._first_camera:
            self._publishers['reward/value'].publish(Float64(data=verdict.reward))

    def publish_failure(self, event: FailureEvent) -> None:
        """The onset of a failure, to failure_event and to the topic of its reason."""
        self._sequence += 1
        message = failure_message(event, self._sequence)
        self._publishers['failure_event'].publish(message)
        self._publishers[f'failure_event/{event.reason.word}'].publish(message)

    def destroy(self) -> None:
        """Take the publishers off the node."""
        for publisher in self._publishers.values():
            self._node.destroy_lifecycle_publisher(publisher)
