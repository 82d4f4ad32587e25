"""One camera topic of the reward node: its window of frames, and what became of the images that arrived."""

from __future__ import annotations

import threading
import time
from collections import Counter

from densereward_ros.events.stuck import StuckWatch
from densereward_ros.frames.window import Arrival, FrameWindow, Readiness
from densereward_ros.ros.clocks import ClockCheck
from densereward_ros.ros.meter import RateMeter
from densereward_ros.types import Frame, Verdict, Window


class Camera:
    """The frames of one topic. The executor adds them, the inference worker takes windows.

    topic: the full name. arrivals: how many frames met which fate. skipped_windows: windows
    that a newer one replaced before the model was free. undecodable: images that could not be
    used; last_image_error says why. last_verdict: of this episode, None since an undecodable image.
    wrong_type: the type of the topic, where that is none of images. clock: how its stamps compare with the
    node's time.
    """

    def __init__(self, topic: str, frame_interval: float, max_frame_age: float) -> None:
        self.topic = topic
        self.received = RateMeter()
        self.arrivals: Counter[Arrival] = Counter()
        self.skipped_windows = 0
        self.undecodable = 0
        self.last_image_error = ''
        self.wrong_type = ''
        self.clock = ClockCheck()
        self.last_verdict: Verdict | None = None
        self.watch = StuckWatch()
        self._last_received_ns: int | None = None
        self._restarts = 0  # since the last window
        self._window = FrameWindow(frame_interval, max_frame_age)
        self._lock = threading.Lock()

    def mark_received(self) -> int:
        """An image arrived. Returns the time of its arrival, nanoseconds of the steady clock."""
        now_ns = time.monotonic_ns()
        self._last_received_ns = now_ns
        self.received.mark(now_ns)
        return now_ns

    def add(self, frame: Frame) -> bool:
        """Take in a frame; True when a window is ready to be scored."""
        with self._lock:
            waiting = self._window.readiness(frame.received_ns) is Readiness.READY
            arrival = self._window.add(frame)
            self.arrivals[arrival] += 1
            ready = self._window.readiness(frame.received_ns) is Readiness.READY
            self._restarts = 0 if ready else self._restarts + (arrival is Arrival.RESTARTED)
            if waiting and arrival in (Arrival.KEPT, Arrival.RESTARTED):
                self.skipped_windows += 1
            return ready

    def take(self, task: str) -> Window | None:
        """The newest window that was not taken yet, if it is young enough."""
        with self._lock:
            frames = self._window.take(time.monotonic_ns())
            return frames and Window(self.topic, task, frames, self._window.segment)

    def judged(self, window: Window, verdict: Verdict) -> None:
        """The model said this of a window that was taken."""
        self.last_verdict = verdict
        self.watch.update(window, verdict)

    def has_window(self) -> bool:
        """True when a window waits to be scored."""
        with self._lock:
            return self._window.readiness(time.monotonic_ns()) is Readiness.READY

    def drop(self, frame: Frame, why: str) -> None:
        """Forget a frame that cannot be decoded."""
        with self._lock:
            self.undecodable += 1
            self.last_image_error = why
            self.last_verdict = None
            self._window.drop(frame)

    def new_episode(self) -> None:
        """Forget every frame, so that no window reaches back into the last episode."""
        with self._lock:
            self._window.clear()
            self._restarts = 0
            self.last_verdict = None
            self.watch.reset()

    def starved(self) -> bool:
        """True when frames come, but no three of them make a window: too far apart, or not in order."""
        with self._lock:
            return self._restarts > 1 or self._window.readiness(time.monotonic_ns()) is Readiness.STALE

    def age_s(self) -> float | None:
        """Seconds since the last image arrived; None before the first."""
        if self._last_received_ns is None:
            return None
        return (time.monotonic_ns() - self._last_received_ns) / 1e9
