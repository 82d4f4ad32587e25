"""How many windows are scored at once: fewer after the model ran out of memory, and more again later."""

from __future__ import annotations

NS_PER_S = 1_000_000_000
# Whoever took the memory, a policy on the same GPU perhaps, may give it back; finding out costs one tick.
RETRY_S = 30.0


class BatchLimit:
    """Halved each time that memory runs out; one more after every 30 s in which it did not.

    most: the limit while there is no shortage. now: the limit at present, 1 to most.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.now = most
        self._retry_ns = 0

    def ran_out(self, size: int, now_ns: int) -> None:
        """A batch of this size did not fit; 0 stands for work ahead of time."""
        if size:
            self.now = max(1, min(self.now, size // 2))
        self._retry_ns = now_ns + round(RETRY_S * NS_PER_S)

    def fitted(self, now_ns: int) -> None:
        """A batch did fit."""
        if self.now < self.most and not self.short(now_ns):
            self.now += 1
            self._retry_ns = now_ns + round(RETRY_S * NS_PER_S)

    def short(self, now_ns: int) -> bool:
        """True for 30 s after memory ran out, and after each step up: a time to be thrifty."""
        return now_ns < self._retry_ns
