"""A model that says the same whatever it sees."""

from __future__ import annotations

import numpy as np

from densereward_ros.types import Verdict, Window

NS_PER_S = 1_000_000_000
# See StuckWatch for why it is these.
LEAST_VERDICTS = 50
LEAST_S = 30.0
CELLS = 16
LEAST_CHANGE = 8.0


class StuckWatch:
    """Counts verdicts of one camera that repeat the one before to the last digit although the picture moved.

    A reward has three decimals, so a scene that goes on gives another number within a verdict or two;
    a robot that waits, or has finished, gives one number for long, but its picture stands still. So
    only a verdict counts whose picture differs visibly from that of the last one that counted: in one
    cell of a 16x16 grid the mean differs by more than 8 of 255 levels, which is above a sensor's noise
    (it averages out in a cell) and below a moving gripper. The demo checkpoint repeated itself 24 times
    at most, in 52 episodes; fifty times, over 30 s or more, look like a model that does not look.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: a new episode."""
        self.repeats = 0
        self._verdict: Verdict | None = None
        self._picture: np.ndarray | None = None
        self._since_ns = self._now_ns = 0

    @property
    def stuck_s(self) -> float:
        """Seconds since when the answer stands, once it is suspicious; 0.0 before."""
        seconds = (self._now_ns - self._since_ns) / NS_PER_S
        return seconds if self.repeats >= LEAST_VERDICTS and seconds >= LEAST_S else 0.0

    def update(self, window: Window, verdict: Verdict) -> None:
        """Take in the next verdict; the window's newest frame is decoded already."""
        picture = _cells(window.newest.image)
        self._now_ns = window.newest.received_ns
        if self._verdict is None or _answer(verdict) != _answer(self._verdict):
            self.repeats, self._verdict, self._picture, self._since_ns = 0, verdict, picture, self._now_ns
        elif np.abs(picture - self._picture).max() > LEAST_CHANGE:
            self.repeats += 1
            self._picture = picture


def _answer(verdict: Verdict) -> tuple[float, int]:
    return verdict.reward, verdict.reason


def _cells(image: np.ndarray) -> np.ndarray:
    """Mean of the green channel in each cell of a grid, of 64 samples a cell: float of shape (16, 16)."""
    side = 8 * CELLS
    rows = np.arange(side) * image.shape[0] // side
    columns = np.arange(side) * image.shape[1] // side
    return image[..., 1][np.ix_(rows, columns)].reshape(CELLS, 8, CELLS, 8).mean(axis=(1, 3))
