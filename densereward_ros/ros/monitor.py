"""What exists from configure to cleanup: cameras, worker, detectors and publishers around a loaded model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

from rclpy.lifecycle import LifecycleNodeMixin
from sensor_msgs.msg import CompressedImage, Image

from densereward_ros.events.detector import EpisodeState
from densereward_ros.events.fusion import FusedDetector
from densereward_ros.events.settings import DetectorSettings
from densereward_ros.models.base import OutOfMemory, RewardModel
from densereward_ros.ros import bridge
from densereward_ros.ros.cameras import Camera
from densereward_ros.ros.debug_image import DebugImage
from densereward_ros.ros.images import frame_of
from densereward_ros.ros.inference import InferenceWorker
from densereward_ros.ros.messages import stamp_ns
from densereward_ros.ros.publications import Publications
from densereward_ros.ros.subscriptions import CameraSubscriptions
from densereward_ros.text import one_line
from densereward_ros.types import ImageError, MalformedReply, Verdict, Window

LOG_PERIOD_S = 5.0


@dataclass(frozen=True)
class MonitorSettings:
    """The parameters of the same names, and what they tell the detector; image_topics are full names."""

    image_topics: tuple[str, ...]
    frame_interval: float
    max_frame_age: float
    rate: float
    detector: DetectorSettings
    fusion: str
    primary_camera: str


class Monitor:
    """Feeds the cameras to the worker and the worker's verdicts to topics and detectors.

    Inactive at first. on_state: called whenever the episode's state may have changed, with the state
    and the window that shows it, None at the start of an episode. What goes wrong here leaves nothing
    on the node, and the model open.
    """

    def __init__(
        self,
        node: LifecycleNodeMixin,
        model: RewardModel,
        settings: MonitorSettings,
        on_state: Callable[[EpisodeState, Window | None], None],
    ) -> None:
        self.model = model
        self.cameras = [
            Camera(topic, settings.frame_interval, settings.max_frame_age) for topic in settings.image_topics]
        self.last_error = ''
        self._node = node
        self._log = node.get_logger()
        self._on_state = on_state
        self._scoring = False
        self._subscriptions: CameraSubscriptions | None = None
        self._warned: dict[tuple[str, str], float] = {}  # of what and which camera, when last: seconds
        self._detector = FusedDetector(
            settings.image_topics, settings.detector, settings.fusion, settings.primary_camera)
        self._log.info(bridge.describe())
        self._publications = Publications(node, model.name, settings.image_topics[0], settings.rate)
        try:
            self._debug_image = DebugImage(node)
        except BaseException:
            self._publications.destroy()
            raise
        self.worker = InferenceWorker(model, self.cameras, self)
        self.worker.set_rate(settings.rate)
        try:
            self._subscriptions = CameraSubscriptions(node, self.cameras, self._on_image)
        except BaseException:
            self._release()
            raise

    def activate(self, task: str) -> None:
        """Begin to score, with a new episode."""
        self.new_episode(task)
        self.worker.resume()

    def deactivate(self) -> None:
        """Stop scoring; when this returns, nothing more is published."""
        self.worker.pause()
        self.new_episode('')

    def new_episode(self, task: str) -> None:
        """Forget the frames, the counts and the failures of the last episode. '' stops scoring."""
        with self.worker.between_verdicts():
            self._scoring = bool(task)
            self.worker.new_episode(task)
            self._detector.reset()
            self._debug_image.new_episode()
            self._on_state(EpisodeState.UNKNOWN, None)

    def set_rate(self, rate: float) -> None:
        """Verdicts a second and camera, at most, from now on."""
        self.worker.set_rate(rate)

    def set_detector(self, settings: DetectorSettings) -> None:
        """What is a failure from now on."""
        with self.worker.between_verdicts():
            self._detector.settings = settings

    def close(self) -> None:
        """Stop the worker, free the model, and take subscriptions and publishers off the node.

        Raises RuntimeError, with everything else done, when the model does not end its reply.
        """
        try:
            self._release()
        finally:
            self.model.close()

    def _release(self) -> None:
        self._scoring = False
        if self._subscriptions is not None:
            self._subscriptions.close()
        try:
            self.worker.stop()
        finally:
            self._debug_image.close()
            self._publications.destroy()

    # What the worker tells, on its thread

    def on_verdict(self, camera: Camera, window: Window, verdict: Verdict, inference_s: float) -> None:
        """Publish the reward, and the event that it completes."""
        # The reward first: nothing that goes wrong about events may cost it.
        self._publications.publish_reward(window, verdict, inference_s)
        event = self._detector.update(window, verdict)
        if event is not None:
            self._publications.publish_failure(event)
            self._log.warning(
                f'failure: {event.reason.word} on {", ".join(event.cameras)}, reward {event.reward:.3f}')
        self._debug_image.add(window, verdict, event)
        self._on_state(self._detector.state, window)

    def on_malformed(self, camera: Camera, reply: MalformedReply) -> None:
        """Say that a reply was malformed; there is no reward."""
        why = one_line(reply.why)
        self.last_error = f'malformed reply: {why}'
        self._warn('reply', camera, f'{camera.topic}: malformed reply, no reward: {why}')

    def on_bad_image(self, camera: Camera, error: ImageError) -> None:
        """Say that an image was unusable; the window waits for the next."""
        self.last_error = f'{camera.topic}: image dropped: {one_line(str(error))}'
        self._warn('image', camera, self.last_error)

    def on_model_error(self, cameras: Sequence[Camera], error: Exception) -> None:
        """Say that the model failed; the next window is tried all the same."""
        self.last_error = f'the model failed: {one_line(str(error))}'
        if cameras:
            line = f'no reward for {", ".join(camera.topic for camera in cameras)}: {self.last_error}'
        else:
            line = f'while it read ahead, which costs no reward, {self.last_error}'
        if isinstance(error, OutOfMemory) and len(cameras) > 1:
            line += f'; windows scored at once from now on: {self.worker.batch_limit.now}'
        self._log.error(line, throttle_duration_sec=LOG_PERIOD_S)

    def on_fault(self, error: Exception) -> None:
        """Say that something else failed, most often the passing on of a verdict."""
        self.last_error = f'internal error beside the model: {one_line(repr(error))}'
        self._log.error(self.last_error, throttle_duration_sec=LOG_PERIOD_S)

    def _warn(self, what: str, camera: Camera, line: str) -> None:
        # Not rclpy's throttle, which is one for all cameras: the first would silence the others.
        now = time.monotonic()
        if now - self._warned.get((what, camera.topic), -LOG_PERIOD_S) >= LOG_PERIOD_S:
            self._warned[what, camera.topic] = now
            self._log.warning(line)

    def _on_image(self, camera: Camera, message: Image | CompressedImage) -> None:
        received_ns = camera.mark_received()
        if not self._scoring:
            return
        clock = self._node.get_clock()
        now_ns = clock.now().nanoseconds
        stamp = stamp_ns(message.header.stamp)
        if complaint := camera.clock.complaint(stamp, now_ns, clock.ros_time_is_active):
            self._log.warning(f'{camera.topic}: {complaint}')
        if camera.add(frame_of(message, received_ns, stamp or now_ns)):
            self.worker.wake()
