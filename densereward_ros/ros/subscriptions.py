"""The subscriptions of the cameras: each of the type that its topic has, also when that changes."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Image

from densereward_ros.ros.cameras import Camera
from densereward_ros.ros.images import message_type
from densereward_ros.ros.qos import overridable

# Sensor data: best effort matches every camera driver, and only the newest image counts.
CAMERA_QOS = QoSProfile(depth=1, reliability=QoSReliabilityPolicy.BEST_EFFORT)
TYPES = {'sensor_msgs/msg/Image': Image, 'sensor_msgs/msg/CompressedImage': CompressedImage}
LOOK_S = 0.5
# A driver that was killed stays in the graph for some 20 seconds; its type counts while its images come.
SILENT_S = 3.0


class CameraSubscriptions:
    """Subscribes to every camera, and again where a topic turns out to have the other type.

    Subscriptions live as long as the configured node otherwise: destroying one while the executor waits for
    it is dangerous (see process.run), so an inactive node ignores its images instead.

    on_image: called with the camera and each message. Raises ParameterError for QoS overrides that are not
    allowed, with nothing left on the node.
    """

    def __init__(
        self, node: Node, cameras: Sequence[Camera], on_image: Callable[[Camera, Any], None]
    ) -> None:
        self._node = node
        self._log = node.get_logger()
        self._on_image = on_image
        self._lock = threading.Lock()
        self._groups = {camera: MutuallyExclusiveCallbackGroup() for camera in cameras}
        self._kinds: dict[Camera, type] = {}
        self._subscriptions: dict[Camera, Any] = {}
        # At the last switch of a camera's type: the types in the graph, and the images until then.
        self._switched: dict[Camera, tuple[tuple[str, ...], int]] = {}
        self._since = dict.fromkeys(cameras, time.monotonic())
        self._timer = None
        try:
            for camera in cameras:
                known = [TYPES[name] for name in self._types(camera) if name in TYPES]
                self._kinds[camera] = known[0] if known else message_type(camera.topic)
                self._subscribe(camera)
            self._timer = node.create_timer(
                LOOK_S, self._look, callback_group=MutuallyExclusiveCallbackGroup(),
                clock=Clock(clock_type=ClockType.STEADY_TIME))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Take everything off the node."""
        with self._lock:
            if self._timer is not None:
                self._node.destroy_timer(self._timer)
            self._groups.clear()
            for subscription in self._subscriptions.values():
                self._node.destroy_subscription(subscription)
            self._subscriptions.clear()

    def _types(self, camera: Camera) -> list[str]:
        infos = self._node.get_publishers_info_by_topic(camera.topic)
        return sorted({info.topic_type for info in infos})

    def _subscribe(self, camera: Camera) -> None:
        self._subscriptions[camera] = overridable(
            self._node.create_subscription, self._kinds[camera], camera.topic,
            functools.partial(self._on_image, camera), profile=CAMERA_QOS, node=self._node,
            callback_group=self._groups[camera])

    def _look(self) -> None:
        with self._lock:
            for camera in self._groups:
                age_s = camera.age_s()
                # While images come there is nothing to find out, and asking the graph costs the inference.
                lacks = camera not in self._subscriptions or age_s is None or age_s > LOOK_S
                if lacks or camera.wrong_type:
                    self._follow(camera)

    def _follow(self, camera: Camera) -> None:
        """Where the graph shows that the topic has another type than the subscription, subscribe anew."""
        found = self._types(camera)
        known = [TYPES[name] for name in found if name in TYPES]
        wrong = repr(found[0][:80]) if found and not known else ''
        if wrong and wrong != camera.wrong_type:
            self._log.error(
                f'{camera.topic} has the type {wrong}, allowed: {", ".join(TYPES)}; no image arrives')
        camera.wrong_type = wrong
        if camera not in self._subscriptions:
            try:
                self._subscribe(camera)
            except RuntimeError as error:  # the one of the other type is not gone yet
                self._log.warning(f'{camera.topic}: {error}; trying again', throttle_duration_sec=5.0)
            return
        others = [kind for kind in known if kind is not self._kinds[camera]]
        if others and (len(others) == len(known) or self._silent(camera)):
            # Two that are both silent would otherwise take turns for ever.
            evidence = (tuple(found), camera.received.count)
            if self._switched.get(camera) == evidence:
                return
            self._switched[camera] = evidence
            self._kinds[camera] = others[0]
            self._since[camera] = time.monotonic()
            self._log.info(f'{camera.topic} is a {others[0].__name__} now: subscribing anew')
            # The next look subscribes: until the executor has let go of this one, there can be no other.
            self._node.destroy_subscription(self._subscriptions.pop(camera))

    def _silent(self, camera: Camera) -> bool:
        waited_s = time.monotonic() - self._since[camera]
        age_s = camera.age_s()
        return min(waited_s, waited_s if age_s is None else age_s) > SILENT_S
