"""Publishes a recording, or the camera of a simulated robot, as a camera topic."""

from __future__ import annotations

import array
import io
import os
import signal
import sys
import time
from typing import Callable, Iterator

import numpy as np
import rclpy
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import CompressedImage, Image

from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.opening import open_recording
from densereward_ros.ros.fixed_parameters import declare_fixed
from densereward_ros.ros.parameters import ParameterSpec
from densereward_ros.ros.simulated_robot import RATE, WORDS, SimulatedRobot
from densereward_ros.text import one_line

TABLETOP = 'tabletop'
# At the end: reliable subscribers confirm what they got within Fast DDS's heartbeat of three seconds; for
# the others a message may still lie in shared memory that ends with this process.
CONFIRM_S = 4
LINGER_S = 0.5
# A subscriber is known here a moment before it knows this publisher, and would miss what is sent until then.
SETTLE_S = 1.0
# Falling behind by more than this shifts the rest of the recording instead of hurrying after it.
MAX_LAG_S = 1.0
SERVED_A_FRAME = 4

PARAMETERS = (
    ParameterSpec(
        'source', TABLETOP, 'A video file, a folder of images, or tabletop for the simulated robot.'),
    ParameterSpec(
        'rate', 0.0,
        'Frames published a second; 0.0 keeps the times of the source. A folder of images has none, so it '
        'needs a rate. The world of the simulated robot goes faster or slower with it.',
        minimum=0.0, maximum=1000.0),
    ParameterSpec('loop', False, 'Start over at the end, instead of ending the process.'),
    ParameterSpec(
        'topic', 'camera/image_raw',
        'Topic of the images; compressed ones are published below it, on .../compressed.'),
    ParameterSpec('frame_id', 'camera', 'frame_id in the header of the images.'),
    ParameterSpec('compressed', False, 'Publish sensor_msgs/CompressedImage (JPEG) instead of Image (rgb8).'),
    ParameterSpec('jpeg_quality', 95, 'Quality of compressed images.', minimum=1, maximum=100),
    ParameterSpec(
        'wait_for_subscribers', 0, 'Hold back the first frame until the topic has this many subscribers.',
        minimum=0, maximum=100),
    ParameterSpec('seed', 0, 'Simulated robot: chooses the tables and tasks.', minimum=0, maximum=2**31),
    ParameterSpec(
        'mishaps', ['miss', 'fall', 'collision', 'smooth', 'failure'],
        f'Simulated robot: what goes wrong in its first attempt at each task. Words: {", ".join(WORDS)} '
        '(correct: nothing).'),
)


class CameraPlayer(Node):
    """Publishes frames when they are due. Raises ValueError for a parameter or source that cannot be used.

    The publisher is reliable, so that reliable and best-effort subscribers both match.
    """

    def __init__(self) -> None:
        super().__init__('camera_player')
        value = declare_fixed(self, PARAMETERS)
        self._rate, self._loop = value['rate'], value['loop']
        self._frame_id = value['frame_id']
        self._jpeg_quality = value['jpeg_quality']
        self._wait_for_subscribers = value['wait_for_subscribers']
        self._robot = self._recording = None
        if value['source'] == TABLETOP:
            self._robot = SimulatedRobot(self, value['seed'], value['mishaps'], self._loop)
        else:
            self._recording = open_recording(os.path.expanduser(value['source']), self._rate)
        topic, suffix = value['topic'], '/compressed'
        if value['compressed'] and not topic.endswith(suffix):
            topic += suffix
        qos = QoSProfile(depth=5, reliability=QoSReliabilityPolicy.RELIABLE)
        kind, self._message = (CompressedImage, self._jpeg) if value['compressed'] else (Image, self._raw)
        self._publisher = self.create_publisher(kind, topic, qos)
        self._count = 0
        rate = self._recording.rate if self._recording else self._rate or RATE
        self.get_logger().info(
            f'{value["source"]}: {rate:.4g} frames a second on {self._publisher.topic_name}')

    def play(self, stopped: Callable[[], bool]) -> int:
        """Publish until the source ends or `stopped` is true; returns the process's exit code."""
        executor = SingleThreadedExecutor()
        executor.add_node(self)
        self._wait(executor, stopped)
        begun = time.monotonic()
        try:
            for seconds, image in self._frames():
                begun += self._lag(begun + seconds)
                while not stopped() and (left := begun + seconds - time.monotonic()) > 0:
                    executor.spin_once(timeout_sec=min(left, 0.1))
                if stopped():
                    return 0
                # One call serves one callback; services are answered also when every frame is late.
                for _ in range(SERVED_A_FRAME):
                    executor.spin_once(timeout_sec=0)
                self._publisher.publish(self._message(image))
                self._count += 1
        except RecordingError as error:
            self.get_logger().error(one_line(str(error)))
            return 1
        self._publisher.wait_for_all_acked(Duration(seconds=CONFIRM_S))
        time.sleep(LINGER_S)
        self.get_logger().info(f'ended after {self._count} frames')
        return 0

    def _frames(self) -> Iterator[tuple[float, np.ndarray]]:
        if self._robot:
            yield from self._robot.frames(self._rate)
            return
        start = 0.0
        while True:
            for seconds, image in self._recording.frames():
                yield start + seconds, image
            if not self._loop:
                return
            start += seconds + 1.0 / self._recording.rate

    def _lag(self, due: float) -> float:
        """Seconds to shift the times by: 0, or how late this is when that is too much to catch up."""
        late = time.monotonic() - due
        if late < MAX_LAG_S:
            return 0.0
        self.get_logger().warning(f'{late:.1f} s late: this machine was too busy; the rest comes later')
        return late

    def _wait(self, executor: SingleThreadedExecutor, stopped: Callable[[], bool]) -> None:
        wanted = self._wait_for_subscribers
        if wanted:
            self.get_logger().info(f'waiting for subscribers of {self._publisher.topic_name}: {wanted}')
        while not stopped() and self._publisher.get_subscription_count() < wanted:
            executor.spin_once(timeout_sec=0.05)
        settled = time.monotonic() + (SETTLE_S if wanted else 0.0)
        while not stopped() and time.monotonic() < settled:
            executor.spin_once(timeout_sec=0.05)

    def _raw(self, image: np.ndarray) -> Image:
        height, width, channels = image.shape
        message = Image(height=height, width=width, encoding='rgb8', step=width * channels)
        message.header.stamp, message.header.frame_id = self.get_clock().now().to_msg(), self._frame_id
        # Bytes or a list would be copied element by element.
        message.data = array.array('B', image.tobytes())
        return message

    def _jpeg(self, image: np.ndarray) -> CompressedImage:
        from PIL import Image as Picture

        file = io.BytesIO()
        Picture.fromarray(image).save(file, 'JPEG', quality=self._jpeg_quality)
        # As image_transport words it: the colours of the raw image, and those that OpenCV decodes to.
        message = CompressedImage(format='rgb8; jpeg compressed bgr8')
        message.header.stamp, message.header.frame_id = self.get_clock().now().to_msg(), self._frame_id
        message.data = array.array('B', file.getvalue())
        return message


def main() -> int:
    """Run the player; returns the exit code: 0 at the end of the source or on Ctrl-C, 1 for bad input."""
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: signals.append(number))
    # rclpy's own handlers would invalidate the context in the middle of a frame.
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        return CameraPlayer().play(lambda: bool(signals))
    except ValueError as error:
        print(f'camera_player: {error}', file=sys.stderr)
        return 1
    finally:
        rclpy.try_shutdown()
