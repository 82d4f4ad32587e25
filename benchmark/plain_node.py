"""The pattern of today's peers: every image is converted in its callback, and inference is one too."""

from __future__ import annotations

import functools
import time
from collections import Counter, deque

from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CompressedImage, Image

from densereward_ros.models.base import RewardModel
from densereward_ros.msg import RewardStamped
from densereward_ros.ros.images import frame_of
from densereward_ros.ros.messages import reward_message
from densereward_ros.types import Frame, Verdict, Window

PERIOD_S = 0.2
SPACING_NS, LONGEST_NS = 180_000_000, 1_000_000_000


class PlainNode(Node):
    """Scores the last three pictures, 0.2 s apart, of each camera on a timer, one camera after the other.

    Same model, same decoders, same spacing and rate as the reward node. received: images by topic.
    """

    def __init__(self, model: RewardModel, topics: list[str], task: str) -> None:
        super().__init__('plain_node')
        self.received: Counter[str] = Counter()
        self._model, self._task = model, task
        self._pictures: dict[str, deque[Frame]] = {topic: deque(maxlen=3) for topic in topics}
        self._scored: dict[str, Frame] = {}
        self._rewards = self.create_publisher(RewardStamped, 'plain/reward', 10)
        for topic in topics:
            kind = CompressedImage if topic.endswith('/compressed') else Image
            self.create_subscription(
                kind, topic, functools.partial(self._on_image, topic), qos_profile_sensor_data)
        self.create_timer(PERIOD_S, self._on_timer)

    def _on_image(self, topic: str, message: Image | CompressedImage) -> None:
        self.received[topic] += 1
        frame = frame_of(message, time.monotonic_ns(), 0)
        frame.image  # noqa: B018 (decoded here and now: this is the pattern)
        pictures = self._pictures[topic]
        if pictures and frame.stamp_ns - pictures[-1].stamp_ns > LONGEST_NS:
            pictures.clear()
        if not pictures or frame.stamp_ns - pictures[-1].stamp_ns >= SPACING_NS:
            pictures.append(frame)

    def _on_timer(self) -> None:
        for topic, pictures in self._pictures.items():
            if len(pictures) < 3 or self._scored.get(topic) is pictures[-1]:
                continue
            self._scored[topic] = pictures[-1]
            window = Window(topic, self._task, tuple(pictures))
            started = time.monotonic()
            verdict, = self._model.score([window])
            if isinstance(verdict, Verdict):
                took_s = time.monotonic() - started
                self._rewards.publish(reward_message(window, verdict, took_s, self._model.name))
