"""Whether an episode without a failure runs, stalls or has succeeded."""

from __future__ import annotations

from densereward_ros.events.settings import DetectorSettings
from densereward_ros.types import Verdict

NS_PER_S = 1_000_000_000


class Progress:
    """Follows the rewards of one camera through one segment. An unbounded reward never stalls or succeeds."""

    def __init__(self) -> None:
        self.succeeded = False
        self.stalled = False
        self._high_since: int | None = None
        self._lowest: float | None = None
        self._risen_ns = 0

    def update(self, stamp_ns: int, verdict: Verdict, settings: DetectorSettings) -> None:
        """Take in the next verdict."""
        if not verdict.bounded:
            return
        high = verdict.reward >= settings.success_level
        if not high:
            self._high_since = None
        elif self._high_since is None:
            self._high_since = stamp_ns
        self.succeeded = high and stamp_ns - self._high_since >= settings.success_time * NS_PER_S
        # A rise counts from the lowest reward since the last one: after a failure, climbing back is progress.
        if self._lowest is None or verdict.reward >= self._lowest + settings.stall_rise:
            self._lowest, self._risen_ns = verdict.reward, stamp_ns
        self._lowest = min(self._lowest, verdict.reward)
        quiet_ns = stamp_ns - self._risen_ns
        self.stalled = not high and 0 < settings.stall_time * NS_PER_S <= quiet_ns
