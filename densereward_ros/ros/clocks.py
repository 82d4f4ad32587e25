"""A camera's clock against the node's: who stamps with another time is told, and scored all the same."""

from __future__ import annotations

import datetime

from densereward_ros.ros.messages import NS_PER_S

# What is less apart may have been on its way that long.
LIMIT_S = 1.0


class ClockCheck:
    """Compares the stamps of one camera with the time at their arrival.

    offset_s: how far the last stamp lay behind the node's clock, negative when ahead; None before the first,
    without a stamp, and while simulated time has not begun.
    """

    def __init__(self) -> None:
        self.offset_s: float | None = None
        self._told: set[str] = set()

    def complaint(self, stamp_ns: int, now_ns: int, simulated: bool) -> str:
        """What to warn of, naming both clocks; '' when they agree, and after the first time.

        stamp_ns: 0 where there is none. now_ns: of the node's clock, which is /clock when time is simulated.
        """
        if stamp_ns == 0:
            self.offset_s = None
            return self._once('none', 'images have no stamp; the time of their arrival stands in')
        self.offset_s = None if simulated and now_ns == 0 else (now_ns - stamp_ns) / NS_PER_S
        if self.offset_s is None or abs(self.offset_s) <= LIMIT_S:
            return ''
        ours = 'the simulated time of /clock' if simulated else "this machine's clock"
        apart = f'{abs(self.offset_s):.1f} s {"behind" if self.offset_s > 0 else "ahead of"}'
        return self._once('apart', (
            f"the camera's clock ({_shown(stamp_ns)}) is {apart} {ours} ({_shown(now_ns)}); "
            "rewards go on, with the camera's stamps"))

    def _once(self, kind: str, line: str) -> str:
        if kind in self._told:
            return ''
        self._told.add(kind)
        return line


def _shown(nanoseconds: int) -> str:
    """A time as a date, or in seconds where it is no date of this age, as in simulations."""
    seconds = nanoseconds / NS_PER_S
    if not 1e9 < seconds < 1e10:
        return f'{seconds:.1f} s'
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime('%Y-%m-%d %H:%M:%S UTC')
