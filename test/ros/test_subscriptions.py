"""Which type a camera's topic has: by its name, by the graph, and when it changes while the node runs.

The cameras here live in a context of their own: one DDS participant cannot have both types on a topic.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from PIL import Image as Picture
from rclpy.context import Context
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String

from densereward_ros.frames import messages
from densereward_ros.msg import RewardStamped
from ros_bench import CAMERA_QOS, NS_PER_S, TOPIC, FakeCamera, ScriptedModel, wait_for

COMPRESSED = TOPIC + '/compressed'


def jpeg(value: int) -> bytes:
    """A picture of one grey."""
    file = io.BytesIO()
    Picture.new('L', (16, 16), value).save(file, 'JPEG')
    return file.getvalue()


class Drivers:
    """Camera drivers in a process of their own, as far as DDS can tell."""

    def __init__(self) -> None:
        self._context = Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node('drivers', context=self._context)
        self._publishers = {}
        self._stamp_ns = 100 * NS_PER_S

    def start(self, kind: type, topic: str) -> None:
        """A driver comes up."""
        self._publishers[kind, topic] = self._node.create_publisher(kind, topic, CAMERA_QOS)

    def stop(self, kind: type, topic: str) -> None:
        """A driver goes down."""
        self._node.destroy_publisher(self._publishers.pop((kind, topic)))

    def film(self, until, timeout_s: float = 40.0) -> None:
        """Twenty pictures a second on every topic until the condition holds."""
        deadline = time.monotonic() + timeout_s
        while not until():
            assert time.monotonic() < deadline, 'too late'
            self._stamp_ns += NS_PER_S // 20
            for (kind, _), publisher in self._publishers.items():
                if kind is Image:
                    message = FakeCamera.picture(self._stamp_ns, np.full((4, 6, 3), 200, np.uint8))
                elif kind is CompressedImage:
                    message = CompressedImage(format='mono8; jpeg compressed mono8')
                    message.data.frombytes(jpeg(100))
                else:
                    message = kind()
                if hasattr(message, 'header'):
                    sec, nanosec = divmod(self._stamp_ns, NS_PER_S)
                    message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
                publisher.publish(message)
            time.sleep(0.05)

    def close(self) -> None:
        """Every driver goes down."""
        self._node.destroy_node()
        self._context.try_shutdown()


@pytest.fixture
def drivers() -> Iterator[Drivers]:
    """Drivers that end with the test."""
    drivers = Drivers()
    yield drivers
    drivers.close()


def activate(client) -> None:
    """From unconfigured to active."""
    assert client.transition('configure')
    assert client.transition('activate')


def greys(model: ScriptedModel) -> list[int]:
    """The grey of the newest frame of every window: 200 came raw, 100 compressed."""
    return [int(window.newest.image[0, 0, 0]) for window in model.windows]


def test_the_graph_decides_where_the_camera_is_up(start_node, client, drivers):
    """A compressed camera on a topic that is not named so, and a raw one that is."""
    drivers.start(CompressedImage, '/front')
    drivers.start(Image, '/odd/compressed')
    here = start_node(ScriptedModel(), image_topics=['/front', '/odd/compressed'])
    wait_for(lambda: all(here.node.count_publishers(topic) for topic in ('/front', '/odd/compressed')))
    activate(client)
    rewards = client.listen(RewardStamped, '/reward')
    drivers.film(lambda: {reward.camera for reward in rewards} == {'/front', '/odd/compressed'})


def test_a_camera_that_comes_late_with_another_type_than_its_name_says_is_heard(
        start_node, client, drivers, log):
    """The node runs first, and guesses; it then follows the driver."""
    model = ScriptedModel()
    here = start_node(model, image_topics=['/front', '/odd/compressed'])
    activate(client)
    drivers.start(CompressedImage, '/front')
    drivers.start(Image, '/odd/compressed')
    drivers.film(lambda: {window.camera for window in model.windows} == {'/front', '/odd/compressed'})
    assert {window.camera: int(window.newest.image[0, 0, 0]) for window in model.windows} == {
        '/front': 100, '/odd/compressed': 200}
    assert log('ERROR') == here.errors == []


def test_raw_and_compressed_cameras_are_scored_together(start_node, client, drivers):
    """By their names before they are up; both reach the model in one batch, and the diagnostics show both."""
    model = ScriptedModel(delay_s=0.1)
    start_node(model, image_topics=[TOPIC, COMPRESSED])
    activate(client)
    drivers.start(Image, TOPIC)
    drivers.start(CompressedImage, COMPRESSED)
    diagnostics = client.listen(DiagnosticArray, '/diagnostics')
    drivers.film(lambda: any(len(batch) == 2 for batch in model.batches))
    batch = next(batch for batch in model.batches if len(batch) == 2)
    assert {window.camera: int(window.newest.image[0, 0, 0]) for window in batch} == {
        TOPIC: 200, COMPRESSED: 100}

    def verdicts() -> set[tuple[str, str]]:
        return {
            (status.name, pair.value) for array in diagnostics for status in array.status
            for pair in status.values if pair.key == 'last reward' and pair.value}

    drivers.film(lambda: verdicts() >= {
        (f'reward_node: camera {topic}', '0.500') for topic in (TOPIC, COMPRESSED)})


@pytest.mark.slow
@pytest.mark.parametrize('killed', [False, True])
def test_a_camera_that_comes_back_with_the_other_type_needs_no_restart(
        start_node, client, drivers, log, killed):
    """Raw, compressed, raw again. One that was killed stays in the graph for a while, and sends nothing."""
    model = ScriptedModel()
    here = start_node(model, rate=20.0)
    activate(client)
    drivers.start(Image, TOPIC)
    drivers.film(lambda: 200 in greys(model))
    if killed:
        ghost = Drivers()
        ghost.start(Image, TOPIC)
        wait_for(lambda: here.node.count_publishers(TOPIC) == 2)
    drivers.stop(Image, TOPIC)
    drivers.close()
    again = Drivers()
    try:
        again.start(CompressedImage, TOPIC)
        again.film(lambda: 100 in greys(model))
        if not killed:
            again.stop(CompressedImage, TOPIC)
            before = len(model.windows)
            back = Drivers()
            back.start(Image, TOPIC)
            back.film(lambda: 200 in greys(model)[before:])
            back.close()
    finally:
        again.close()
        if killed:
            ghost.close()
    assert f'{TOPIC} is a CompressedImage now: subscribing anew' in log('INFO')
    assert here.errors == []


def test_a_camera_that_dies_and_comes_back_is_scored_again(start_node, client, drivers):
    """A new driver on the same topic: no window reaches over the gap."""
    model = ScriptedModel()
    start_node(model, max_frame_age=0.5)
    activate(client)
    drivers.start(Image, TOPIC)
    drivers.film(lambda: model.windows)
    drivers.stop(Image, TOPIC)
    time.sleep(1.0)
    seen = len(model.windows)
    drivers._stamp_ns += NS_PER_S
    drivers.start(Image, TOPIC)
    drivers.film(lambda: len(model.windows) > seen)
    stamps = [frame.stamp_ns for frame in model.windows[seen].frames]
    assert stamps[-1] - stamps[0] < NS_PER_S // 2


@pytest.mark.slow
def test_a_topic_that_is_no_camera_is_told_in_the_log_and_in_the_diagnostics(
        start_node, client, drivers, log):
    """A slip in image_topics; when a camera takes the topic over, all is well."""
    drivers.start(String, TOPIC)
    here = start_node()
    wait_for(lambda: here.node.count_publishers(TOPIC))
    activate(client)
    diagnostics = client.listen(DiagnosticArray, '/diagnostics')

    def told(level: bytes, start: str) -> bool:
        return any(
            (status.level, status.message.startswith(start)) == (level, True)
            for array in diagnostics for status in array.status if 'camera' in status.name)

    drivers.film(lambda: told(
        DiagnosticStatus.ERROR, f"no image: {TOPIC} has the type 'std_msgs/msg/String'"))
    # At once, so that images come before the node looks at the graph again.
    drivers.stop(String, TOPIC)
    drivers.start(Image, TOPIC)
    drivers.film(lambda: told(DiagnosticStatus.OK, 'images arrive'))
    assert log('ERROR') == [
        f"{TOPIC} has the type 'std_msgs/msg/String', allowed: sensor_msgs/msg/Image, "
        'sensor_msgs/msg/CompressedImage; no image arrives']


def test_a_compressed_depth_topic_is_refused_by_its_name(start_node, client, log):
    """It never holds a picture, so the node does not even load a model for it."""
    opened = []
    start_node(lambda *arguments: opened.append(arguments), image_topics=['/camera/depth/compressedDepth'])
    assert not client.transition('configure')
    assert log('ERROR') == [
        "on_configure failed: parameter image_topics holds '/camera/depth/compressedDepth', "
        'allowed: colour images']
    assert opened == []


@pytest.mark.slow
def test_cameras_that_change_all_the_time_do_not_break_the_node(start_node, client, log):
    """Types change while images stream, and the node is configured again: no error, no lost thread."""
    model = ScriptedModel()
    here = start_node(lambda *_: model, rate=50.0)
    activate(client)
    threads = threading.active_count()
    for i, kind in enumerate([Image, CompressedImage] * 2):
        drivers = Drivers()
        drivers.start(kind, TOPIC)
        before = len(model.windows)
        drivers.film(lambda n=before: len(model.windows) > n)
        if i == 2:
            for transition in ('deactivate', 'cleanup'):
                assert client.transition(transition)
            model.closed = False
            activate(client)
        drivers.close()
    assert here.errors == []
    assert log('ERROR') == []
    assert threading.active_count() <= threads + 1


def test_no_thread_but_the_worker_decodes_and_only_what_a_window_needs(
        start_node, client, monkeypatch):
    """At 30 Hz most images are never looked at; an executor that decoded them would be late for the next."""
    decoded = []
    decode = messages.decode_raw

    def watch(image):
        decoded.append((threading.current_thread().name, image.height))
        return decode(image)

    monkeypatch.setattr(messages, 'decode_raw', watch)
    model = ScriptedModel(delay_s=0.3)
    here = start_node(model)
    activate(client)
    camera = here.camera(client)
    for i in range(60):
        camera.send(100 * NS_PER_S + i * NS_PER_S // 30, np.zeros((i + 1, 2, 3), np.uint8))
        time.sleep(0.01)
    wait_for(lambda: model.windows and model.windows[-1].newest.stamp_ns > 101.9 * NS_PER_S)
    needed = {frame.image.shape[0] for window in model.windows for frame in window.frames}
    assert {name for name, _ in decoded} == {'inference'}
    assert sorted(height for _, height in decoded) == sorted(needed)
    assert len(needed) < 30
