"""The last three frames of one camera, in time order and at the configured spacing."""

from __future__ import annotations

import enum
from collections import deque

from densereward_ros.types import FRAMES_PER_WINDOW, Frame

NS_PER_S = 1_000_000_000

# A camera's stamps jitter by some milliseconds. A frame that comes this much of the spacing
# early is still the one that the spacing means; the next would be a whole camera period late.
EARLY_SHARE = 0.1


class Arrival(enum.Enum):
    """What became of a frame that arrived."""

    KEPT = 'kept'
    BETWEEN = 'between two frames of the spacing'
    OUT_OF_ORDER = 'out of order or repeated'
    RESTARTED = 'kept, the first after a jump or a pause'


class Readiness(enum.Enum):
    """Whether a window can be scored now."""

    READY = 'ready'
    FILLING = 'filling'
    ALREADY_TAKEN = 'already scored'
    STALE = 'stale'


class FrameWindow:
    """Chooses which frames of one camera a reward model sees.

    Frames are chosen by their stamps alone as they arrive, so a recording that is
    replayed at any speed gives the same windows as the live camera did:

    - a frame is kept when it lies at least `frame_interval` after the last one kept (a
      tenth early is allowed, for jitter); with 0 every frame is kept;
    - a stamp at or before the last one kept is out of order and dropped, unless it lies
      more than `max_frame_age` in the past: then the clock has jumped;
    - after a jump back, or a gap of more than `max_frame_age` + `frame_interval`, the
      window starts again from that frame, and `segment` counts up.

    A window is given out once, and only while it is young: the age of a frame is measured
    from its arrival on a steady clock, and each may be older than the one after it by
    `frame_interval` on top of `max_frame_age` (the newest has no allowance).

    Not thread-safe: the owner holds a lock.
    """

    def __init__(self, frame_interval: float = 0.2, max_frame_age: float = 1.0) -> None:
        """frame_interval: seconds, 0 or more. max_frame_age: seconds, above 0. Raises ValueError."""
        if not 0.0 <= frame_interval < float('inf'):
            raise ValueError(f'frame_interval is {frame_interval}, allowed: seconds, 0 or more')
        if not 0.0 < max_frame_age < float('inf'):
            raise ValueError(f'max_frame_age is {max_frame_age}, allowed: seconds, above 0')
        self._interval_ns = round(frame_interval * NS_PER_S)
        self._max_age_ns = round(max_frame_age * NS_PER_S)
        self._spacing_ns = round(self._interval_ns * (1.0 - EARLY_SHARE))
        self._frames: deque[Frame] = deque(maxlen=FRAMES_PER_WINDOW)
        self._taken = False
        self.segment = 0

    def add(self, frame: Frame) -> Arrival:
        """Take in one frame, in the order of arrival."""
        if not self._frames:
            self._append(frame)
            return Arrival.KEPT
        step_ns = frame.stamp_ns - self._frames[-1].stamp_ns
        if -self._max_age_ns <= step_ns <= 0:
            return Arrival.OUT_OF_ORDER
        if step_ns < 0 or step_ns > self._max_age_ns + self._interval_ns:
            self.clear()
            self._append(frame)
            return Arrival.RESTARTED
        if step_ns < self._spacing_ns:
            return Arrival.BETWEEN
        self._append(frame)
        return Arrival.KEPT

    def readiness(self, now_ns: int) -> Readiness:
        """Whether take() would give a window at `now_ns`, nanoseconds of the steady clock."""
        if self._frames and self._is_stale(now_ns):
            return Readiness.STALE
        if len(self._frames) < FRAMES_PER_WINDOW:
            return Readiness.FILLING
        return Readiness.ALREADY_TAKEN if self._taken else Readiness.READY

    def take(self, now_ns: int) -> tuple[Frame, ...] | None:
        """The three frames, oldest first, or None when there is nothing new and young enough."""
        if self.readiness(now_ns) is not Readiness.READY:
            return None
        self._taken = True
        return tuple(self._frames)

    def drop(self, frame: Frame) -> None:
        """Forget a frame that turned out to be unusable; the rest of the window stays."""
        self._frames = deque((kept for kept in self._frames if kept is not frame), FRAMES_PER_WINDOW)

    def clear(self) -> None:
        """Forget every frame and begin a new segment, as at a new episode."""
        self._frames.clear()
        self._taken = False
        self.segment += 1

    def _append(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._taken = False

    def _is_stale(self, now_ns: int) -> bool:
        return any(
            now_ns - frame.received_ns > self._max_age_ns + steps_back * self._interval_ns
            for steps_back, frame in enumerate(reversed(self._frames))
        )
