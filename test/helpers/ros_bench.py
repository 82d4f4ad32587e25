"""A scripted reward model, the node here or in a process of its own, and a client and a camera for it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import rclpy.client
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from rclpy.task import Future
from sensor_msgs.msg import Image

from densereward_ros.models.base import Interrupted
from densereward_ros.ros.executor import PooledExecutor
from densereward_ros.types import MalformedReply, Reason, Verdict, Window

TOPIC = '/camera/image_raw'
TASK = 'put the red block on the blue plate'
GOOD = Verdict(0.5, Reason.CORRECT)
NS_PER_S = 1_000_000_000
CAMERA_QOS = QoSProfile(depth=5, reliability=QoSReliabilityPolicy.RELIABLE)

Outcome = Verdict | MalformedReply | Exception


def wait_for(condition: Callable[[], object], timeout_s: float = 60.0, what: str = '') -> object:
    """Poll until the condition holds, and return what it gave; fails the test after timeout_s."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f'not within {timeout_s} s: {what or condition}')
        time.sleep(0.003)
    return found


class ScriptedModel:
    """A RewardModel that says what the script says.

    script: a function of the window, or outcomes in order, of which the last one repeats.
    """

    name = 'scripted'
    bounded = True
    corrected = 0

    def __init__(
        self, script: Sequence[Outcome] | Callable[[Window], Outcome] = (GOOD,), delay_s: float = 0.0
    ) -> None:
        self.script = script
        self.delay_s = delay_s
        self.batches: list[list[Window]] = []
        self.prepared: list[Window] = []
        self.closed = False
        self._stop = threading.Event()
        self._said = 0

    @property
    def windows(self) -> list[Window]:
        """Every window that was asked about, in order."""
        return [window for batch in self.batches for window in batch]

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """See RewardModel.score."""
        assert not self.closed, 'score() after close()'
        self.batches.append(list(windows))
        if self._stop.wait(self.delay_s):
            raise Interrupted
        return [self._outcome(window) for window in windows]

    def prepare(self, windows: Sequence[Window]) -> None:
        """See RewardModel.prepare."""
        self.prepared += windows

    def _outcome(self, window: Window) -> Verdict | MalformedReply:
        if callable(self.script):
            outcome = self.script(window)
        else:
            outcome = self.script[min(self._said, len(self.script) - 1)]
            self._said += 1
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def interrupt(self) -> None:
        """See RewardModel.interrupt."""
        self._stop.set()

    def resume(self) -> None:
        """See RewardModel.resume."""
        self._stop.clear()

    def close(self) -> None:
        """See RewardModel.close."""
        self.closed = True


class Client:
    """A node on its own thread that listens, publishes and calls."""

    def __init__(self, context: Context, name: str) -> None:
        self.node = Node(name, context=context)
        self._clients: dict[str, rclpy.client.Client] = {}
        self._subscriptions: list = []
        self._publishers: list = []
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self.node)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        while not self._stop.is_set():
            try:
                self._executor.spin_once(timeout_sec=0.05)
            except ExternalShutdownException:
                return
            except rclpy_implementation.InvalidHandle:
                pass

    def listen(self, kind: type, topic: str, qos: QoSProfile | int = 10) -> list:
        """A list that grows by every message on a topic; returns once there is a publisher."""
        messages: list = []
        self._subscriptions.append(self.node.create_subscription(kind, topic, messages.append, qos))
        wait_for(lambda: self.node.count_publishers(topic), what=f'a publisher on {topic}')
        return messages

    def speak(self, kind: type, topic: str, qos: QoSProfile | int = 10):
        """A publisher; returns once somebody listens."""
        publisher = self.node.create_publisher(kind, topic, qos)
        self._publishers.append(publisher)
        wait_for(publisher.get_subscription_count, what=f'a subscription to {topic}')
        return publisher

    def call(self, kind: type, service: str, request: object, timeout_s: float = 60.0) -> object:
        """The answer of a service."""
        future = self.call_async(kind, service, request, timeout_s)
        wait_for(future.done, timeout_s, f'an answer from {service}')
        return future.result()

    def call_async(self, kind: type, service: str, request: object, timeout_s: float = 60.0) -> Future:
        """Send a request; the answer is the future's result."""
        client = self._clients.get(service)
        if client is None:
            client = self._clients[service] = self.node.create_client(kind, service)
        wait_for(client.service_is_ready, timeout_s, f'the service {service}')
        return client.call_async(request)

    def transition(self, name: str, node: str = 'reward_node', timeout_s: float = 60.0) -> bool:
        """Ask for a lifecycle transition by its label; True when it succeeded."""
        request = ChangeState.Request(transition=Transition(label=name))
        return self.call(ChangeState, f'/{node}/change_state', request, timeout_s).success

    def state(self, node: str = 'reward_node') -> str:
        """The lifecycle state."""
        return self.call(GetState, f'/{node}/get_state', GetState.Request()).current_state.label

    def forget(self) -> None:
        """Drop every topic of this node."""
        for subscription in self._subscriptions:
            self.node.destroy_subscription(subscription)
        self._subscriptions.clear()
        for publisher in self._publishers:
            self.node.destroy_publisher(publisher)
        self._publishers.clear()

    def close(self) -> None:
        """End the thread and the node."""
        self._stop.set()
        self._thread.join()
        self._executor.shutdown()
        self.node.destroy_node()


class FakeCamera:
    """Publishes pictures with the stamps that the test wants.

    Returns once somebody listens. With `taken`, the number of images that the node has taken so far,
    each picture is waited for: the node keeps the newest image only, and drops others by design.
    """

    def __init__(
        self, client: Client, topic: str = TOPIC, frame_id: str = 'camera',
        taken: Callable[[], int] | None = None,
    ) -> None:
        self.publisher = client.speak(Image, topic, CAMERA_QOS)
        self.frame_id = frame_id
        self._taken = taken

    def send(self, stamp_ns: int, picture: np.ndarray | None = None, **fields: object) -> Image:
        """Publish one picture, uint8 of shape (height, width, 3), RGB; fields replace the message's own."""
        message = self.picture(stamp_ns, picture)
        message.header.frame_id = self.frame_id
        for name, value in fields.items():
            setattr(message, name, value)
        before = self._taken() if self._taken else 0
        self.publisher.publish(message)
        if self._taken:
            wait_for(lambda: self._taken() > before, what='the image to be taken')
        return message

    @staticmethod
    def picture(stamp_ns: int, picture: np.ndarray | None = None) -> Image:
        """A message with a picture, black when none is given."""
        picture = np.zeros((4, 6, 3), np.uint8) if picture is None else picture
        message = Image(
            height=picture.shape[0], width=picture.shape[1], encoding='rgb8', step=3 * picture.shape[1])
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, NS_PER_S)
        message.data.frombytes(picture.tobytes())
        return message

    def stream(self, count: int, start_ns: int = 100 * NS_PER_S, step_s: float = 0.2) -> list[int]:
        """Publish `count` pictures at some 50 Hz with stamps step_s apart; returns the stamps."""
        stamps = [start_ns + round(i * step_s * NS_PER_S) for i in range(count)]
        for stamp in stamps:
            self.send(stamp)
            time.sleep(0.02)
        return stamps


class NodeHere:
    """The reward node in this process, spun as the executable spins it."""

    def __init__(self, context: Context, **parameters: object) -> None:
        from densereward_ros.ros.reward_node import RewardNode

        values = {'frame_interval': 0.0, 'rate': 100.0, 'task': TASK, **parameters}
        self.node = RewardNode(
            context=context, parameter_overrides=[Parameter(name, value=v) for name, v in values.items()])
        self.errors: list[Exception] = []
        self._executor = PooledExecutor(4, context=context)
        self._executor.add_node(self.node)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        while not self._stop.is_set():
            try:
                self._executor.spin_once(timeout_sec=0.05)
            except (rclpy_implementation.InvalidHandle, ExternalShutdownException):
                pass
            except Exception as error:
                self.errors.append(error)

    def camera(self, client: Client, topic: str = TOPIC, frame_id: str = 'camera') -> FakeCamera:
        """A camera that waits until the configured node has taken each image."""
        camera, = [camera for camera in self.node._monitor.cameras if camera.topic == topic]
        return FakeCamera(client, topic, frame_id, taken=lambda: camera.received.count)

    def close(self) -> None:
        """End the thread and the node."""
        self._stop.set()
        self._thread.join()
        self._executor.shutdown()
        self.node.shut_down()
        self.node.destroy_node()


class NodeProcess:
    """The reward node's executable, or another command, in a process of its own; its output as lines."""

    def __init__(self, command: Sequence[str | Path], **environment: str) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd='/', env={**os.environ, **environment})
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.rstrip('\n'))

    def wait_for_line(self, text: str, timeout_s: float = 90.0) -> str:
        """The first line with this text in it."""
        def found() -> str:
            if self.process.poll() is not None:
                self._reader.join(5)
            line = next((line for line in list(self.lines) if text in line), '')
            assert line or self.process.poll() is None, f'ended with {self.process.poll()}: {self.lines}'
            return line
        return wait_for(found, timeout_s, f'the line {text!r} in {self.lines}')

    def signal(self, number: int = signal.SIGINT) -> tuple[int, float]:
        """Send a signal; the exit code and the seconds until the process was gone."""
        started = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(20)
        self._reader.join(5)
        return code, time.monotonic() - started

    def close(self) -> None:
        """Make sure that nothing is left."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(5)
        self.process.stdout.close()
