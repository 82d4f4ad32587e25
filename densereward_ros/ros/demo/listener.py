"""The demo's own ROS node: an independent listener that counts only what really arrived."""

from __future__ import annotations

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from rclpy.time import Time
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Float64, String

from densereward_ros.msg import FailureEvent, RewardStamped
from densereward_ros.ros.demo.processes import NAMESPACE
from densereward_ros.ros.demo.record import DemoRecord, jpeg_thumbnail, thumbnail
from densereward_ros.types import Reason

NODE = f'{NAMESPACE}/reward_node'.lstrip('/')


class DemoListener(Node):
    """Subscribes to everything that the demo's nodes publish, and notes it in a DemoRecord.

    compressed: whether the camera topic is.
    """

    def __init__(self, record: DemoRecord, compressed: bool) -> None:
        super().__init__('demo', namespace=NAMESPACE)
        self._record = record
        latched = QoSProfile(
            depth=1, reliability=QoSReliabilityPolicy.RELIABLE,
            durability=QoSDurabilityPolicy.TRANSIENT_LOCAL)
        # Reliable and with some depth: every frame is counted, and none is scored here.
        if compressed:
            self.create_subscription(CompressedImage, 'camera/image_raw/compressed', self._on_jpeg, 10)
        else:
            self.create_subscription(Image, 'camera/image_raw', self._on_image, 10)
        self.create_subscription(RewardStamped, 'reward', self._on_reward, 10)
        self.create_subscription(FailureEvent, 'failure_event', self._on_failure, 10)
        self.create_subscription(
            KeyValue, 'recovery_node/recoveries', lambda said: record.add_recovery(said.key, said.value), 10)
        self.create_subscription(String, 'reward_node/task', lambda task: record.add_task(task.data), latched)
        self.create_subscription(
            Float64, 'camera_player/progress', lambda progress: record.add_truth(progress.data), 10)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)

    def _on_image(self, message: Image) -> None:
        self._record.add_frame(lambda: thumbnail(
            np.frombuffer(message.data, np.uint8).reshape(message.height, message.width, 3)))

    def _on_jpeg(self, message: CompressedImage) -> None:
        self._record.add_frame(lambda: jpeg_thumbnail(message.data.tobytes()))

    def _on_reward(self, message: RewardStamped) -> None:
        age_s = (self.get_clock().now() - Time.from_msg(message.header.stamp)).nanoseconds / 1e9
        reply_s = message.inference_time.sec + message.inference_time.nanosec / 1e9
        self._record.add_reward(message.reward, Reason(message.reason), message.task, reply_s, age_s)

    def _on_failure(self, message: FailureEvent) -> None:
        self._record.add_failure(Reason(message.reason), message.reward)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == NODE:
                values = {pair.key: pair.value for pair in status.values}
                state = values.get('state', '')
                self._record.malformed = int(values.get('malformed replies', 0))
                failed = status.level == DiagnosticStatus.ERROR and state == 'unconfigured'
                # Active without a task: the camera brings one, once it has seen that all are listening.
                self._record.node_message = 'ready' if state == 'active' else status.message
                self._record.node_error = status.message if failed else ''
