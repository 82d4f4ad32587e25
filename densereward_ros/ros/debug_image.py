"""~/debug_image/compressed: what the model sees and says, as a picture, while somebody looks."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

from rclpy.lifecycle import LifecycleNodeMixin
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from sensor_msgs.msg import CompressedImage

from densereward_ros.report.overlay import SPAN_S, Panel, draw_overlay, jpeg
from densereward_ros.report.timeline import Moment, Reward
from densereward_ros.ros.messages import header_of
from densereward_ros.ros.qos import overridable
from densereward_ros.text import one_line
from densereward_ros.types import FailureEvent, Verdict, Window

NS_PER_S = 1_000_000_000
LOG_PERIOD_S = 5.0
# Nobody's eye is faster, and drawing takes the interpreter from the inference.
LEAST_PERIOD_S = 0.1
QOS = QoSProfile(depth=1, reliability=QoSReliabilityPolicy.RELIABLE)


@dataclass
class _History:
    """Of one camera: the newest window, and the rewards and events of the last seconds."""

    window: Window | None = None
    rewards: deque[Reward] = field(default_factory=deque)
    events: deque[Moment] = field(default_factory=deque)


class DebugImage:
    """Draws and publishes on a thread of its own, after a verdict and at most ten times a second.

    Without a subscriber nothing is drawn, and no picture is kept.
    """

    def __init__(self, node: LifecycleNodeMixin) -> None:
        self._node = node
        self._publisher = overridable(
            node.create_lifecycle_publisher, CompressedImage, '~/debug_image/compressed', profile=QOS,
            node=node)
        self._histories: dict[str, _History] = {}
        self._news = threading.Condition()
        self._fresh = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name='debug image', daemon=True)
        self._thread.start()

    def add(self, window: Window, verdict: Verdict, event: FailureEvent | None) -> None:
        """Take in a verdict and the event that it completed."""
        seconds = window.newest.received_ns / NS_PER_S
        with self._news:
            history = self._histories.setdefault(window.camera, _History())
            history.rewards.append(Reward(seconds, verdict.reward, verdict.reason))
            if event is not None:
                history.events.append(Moment(seconds, f'{event.reason.word} at {event.reward:.3f}'))
            for moments in (history.rewards, history.events):
                while moments and moments[0].seconds < seconds - SPAN_S:
                    moments.popleft()
            if not self._publisher.get_subscription_count():
                history.window = None
                return
            history.window = window
            self._fresh = True
            self._news.notify()

    def new_episode(self) -> None:
        """Forget everything."""
        with self._news:
            self._histories.clear()

    def close(self) -> None:
        """End the thread, and take the publisher off the node."""
        self._closing.set()
        with self._news:
            self._news.notify()
        self._thread.join()
        self._node.destroy_lifecycle_publisher(self._publisher)

    def _run(self) -> None:
        while not self._closing.is_set():
            with self._news:
                self._news.wait_for(lambda: self._fresh or self._closing.is_set())
                self._fresh = False
                panels = self._panels()
            if panels and not self._closing.is_set():
                try:
                    self._publish(panels)
                except Exception as error:
                    self._node.get_logger().error(
                        f'no debug image: {one_line(repr(error))}', throttle_duration_sec=LOG_PERIOD_S)
            self._closing.wait(LEAST_PERIOD_S)

    def _panels(self) -> list[tuple[Window, Panel]]:
        """Of the cameras that had a verdict within the span of the curves, by name."""
        shown = [history for _, history in sorted(self._histories.items()) if history.window is not None]
        newest_ns = max((history.window.newest.received_ns for history in shown), default=0)
        return [
            (history.window, _panel(history)) for history in shown
            if newest_ns - history.window.newest.received_ns < SPAN_S * NS_PER_S]

    def _publish(self, panels: list[tuple[Window, Panel]]) -> None:
        newest = max((window for window, _ in panels), key=lambda window: window.newest.received_ns)
        picture = draw_overlay(newest.task, [panel for _, panel in panels])
        message = CompressedImage(header=header_of(newest.newest), format='jpeg')
        message.data.frombytes(jpeg(picture))
        self._publisher.publish(message)


def _panel(history: _History) -> Panel:
    frames = history.window.frames
    return Panel(
        camera=history.window.camera,
        frames=[frame.image for frame in frames],
        ages=[(frames[-1].stamp_ns - frame.stamp_ns) / NS_PER_S for frame in frames],
        rewards=tuple(history.rewards),
        events=tuple(history.events),
    )
