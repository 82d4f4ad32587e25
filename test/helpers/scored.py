"""Episodes and a reward model for tests of what is scored, and how a run of it is started."""

from __future__ import annotations

from typing import Callable, Sequence

import numpy as np

from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.episode import Episode, Labels
from densereward_ros.types import REASONS, Frame, ImageError, MalformedReply, Reason, Verdict, Window

NS_PER_S = 1_000_000_000


def episode(
    name: str, count: int, bad: Sequence[int] = (), broken_at: int | None = None,
    labels: Labels | None = None, task: str = 'stack',
) -> Episode:
    """Pictures at five a second. bad: those that cannot be decoded. broken_at: where reading fails."""
    def decode(number: int) -> np.ndarray:
        if number in bad:
            raise ImageError(f'picture {number} is damaged')
        return np.full((2, 2, 3), number % 251, np.uint8)

    def frames():
        for number in range(count):
            if number == broken_at:
                raise RecordingError(f'{name}.mp4: damaged after frame {number}')
            yield Frame(
                round(number * NS_PER_S / 5), round(number * NS_PER_S / 5) + 7 * NS_PER_S,
                lambda number=number: decode(number))

    return Episode(name, f'{name}.mp4', '', task, frames, count, labels or Labels())


class ForgetfulModel:
    """A RewardModel whose verdicts show all that it was asked since it last forgot, to the last bit.

    So a run that is cut gives the verdicts of one that is not only if it goes on in the very same state.
    outcome: replaces what it would say of a window, or raises.
    """

    name = 'forgetful'
    corrected = 0

    def __init__(self, outcome: Callable[[Window], Verdict | MalformedReply | None] = lambda window: None):
        self.asked: list[tuple[Window, ...]] = []
        self.closed = False
        self._outcome = outcome
        self._memory = 0

    def forget(self) -> None:
        """See FastModel.forget."""
        self._memory = 0

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """See RewardModel.score."""
        self.asked.append(tuple(windows))
        outcomes = []
        for window in windows:
            self._memory = hash((self._memory, len(windows), window.newest.stamp_ns, window.task)) % 1_000_003
            outcomes.append(self._outcome(window) or self._verdict())
        return outcomes

    def _verdict(self) -> Verdict:
        reason = REASONS[self._memory % len(REASONS)]
        sure = 0.5 + self._memory / 3_000_000
        rest = (1 - sure) / (len(REASONS) - 1)
        return Verdict(self._memory / 1_000_003, reason, True, tuple(
            sure if other is reason else rest for other in REASONS))

    def close(self) -> None:
        """See RewardModel.close."""
        self.closed = True


def miss(window: Window) -> Verdict:
    """A verdict that is the same for every window."""
    return Verdict(0.25, Reason.MISS, True, (0.1, 0.9, 0.0, 0.0, 0.0, 0.0))
