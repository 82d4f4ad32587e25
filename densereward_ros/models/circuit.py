"""A circuit breaker: a server that fails is left alone for a while, and then asked again."""

from __future__ import annotations

import enum
import random
import time
from typing import Callable

FAILURES = 3  # in a row, before the server is left alone
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0
# A server's own wish to be left alone (Retry-After) is followed up to here.
LONGEST_WISH_S = 60.0
# Robots that lost one server together must not come back to it in the same moment.
_SPREAD = 0.2


class State(enum.Enum):
    """closed: asked as usual. open: left alone. half-open: the next question decides."""

    CLOSED = 'closed'
    OPEN = 'open'
    HALF_OPEN = 'half-open'


class Circuit:
    """Opens after three failures in a row, for one second at first, and for up to ten when it stays bad.

    last_error: why it failed last, '' before the first time; it stays when the server recovers. One thread
    asks; any thread may read.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: seconds that never go back."""
        self.last_error = ''
        self._clock = clock
        self._failures = 0
        self._pause_s = 0.0  # 0.0 while closed
        self._until = 0.0

    @property
    def state(self) -> State:
        """The state at this moment."""
        if not self._pause_s:
            return State.CLOSED
        return State.OPEN if self.rest_s > 0 else State.HALF_OPEN

    @property
    def rest_s(self) -> float:
        """Seconds for which the server is still left alone; 0.0 when it may be asked."""
        return max(0.0, self._until - self._clock()) if self._pause_s else 0.0

    def succeeded(self) -> None:
        """The server answered."""
        self._failures = 0
        self._pause_s = 0.0

    def failed(self, why: str, at_once: bool = False, wish_s: float = 0.0) -> None:
        """It did not. at_once: it need not fail again. wish_s: seconds that it asked for, 0.0 for none."""
        self.last_error = why
        self._failures += 1
        if self._pause_s or wish_s or at_once or self._failures >= FAILURES:
            self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
            spread = self._pause_s * random.uniform(1 - _SPREAD, 1 + _SPREAD)
            self._until = self._clock() + max(spread, min(wish_s, LONGEST_WISH_S))
