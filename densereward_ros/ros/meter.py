"""How often something happens, over the last seconds."""

from __future__ import annotations

from collections import deque

NS_PER_S = 1_000_000_000


class RateMeter:
    """Counts events and tells their rate over the last `span_s` seconds of the steady clock.

    One thread marks and another reads; the deque makes both safe.
    """

    def __init__(self, span_s: float = 5.0) -> None:
        self._span_ns = round(span_s * NS_PER_S)
        self._times: deque[int] = deque()
        self.count = 0

    def mark(self, now_ns: int) -> None:
        """Something happened at `now_ns`."""
        self.count += 1
        self._times.append(now_ns)
        while self._times[0] < now_ns - self._span_ns:
            self._times.popleft()

    def rate(self, now_ns: int) -> float:
        """Events a second: intervals over time, so that a steady 10 Hz reads 10.0 after two events."""
        times = [time for time in tuple(self._times) if time >= now_ns - self._span_ns]
        if len(times) < 2:
            return 0.0
        # A stream that has stopped must not keep its old rate: count up to now once a period is missed.
        mean_period = (times[-1] - times[0]) / (len(times) - 1)
        end = times[-1] if now_ns - times[-1] <= 2 * mean_period else now_ns
        return (len(times) - 1) * NS_PER_S / max(end - times[0], 1)
