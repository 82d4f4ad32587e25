"""Verdicts of one camera in, onsets of failures out."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from densereward_ros.types import FailureEvent, Reason, Rule, Verdict, Window

NS_PER_S = 1_000_000_000


class EpisodeState(enum.IntEnum):
    """How an episode stands; the numbers are those of EpisodeState.msg."""

    UNKNOWN = 0
    RUNNING = 1
    FAILING = 2
    STALLED = 3
    SUCCEEDED = 4


@dataclass
class _Run:
    """Consecutive verdicts that give one reason."""

    reason: Reason
    segment: int
    length: int
    reward_before: float | None
    fired: bool = False


class FailureDetector:
    """Turns the verdicts of one camera into failure events, each published once per onset.

    A failure word that `confirmations` verdicts in a row agree on is an event. It is not
    repeated while the word stays, and within `cooldown` seconds (measured in frame stamps)
    after an event no other with the same reason follows; a failure that still stands when
    the cool-down ends, and began after the last event, is reported then. Malformed replies
    are not verdicts: they neither confirm nor clear. A new segment of the window (new
    episode, clock jump, silent camera) starts the count again.
    """

    def __init__(self, confirmations: int = 2, cooldown: float = 2.0) -> None:
        """confirmations: 1 or more. cooldown: seconds, 0 or more."""
        self.confirmations = confirmations
        self.cooldown = cooldown
        self.reset()

    def reset(self) -> None:
        """Forget everything: a new episode."""
        self.state = EpisodeState.UNKNOWN
        self._run: _Run | None = None
        self._last_reward: float | None = None
        self._fired_ns: dict[Reason, int] = {}

    def update(self, window: Window, verdict: Verdict) -> FailureEvent | None:
        """Take in the next verdict; returns the event that it completes, if any."""
        run = self._run
        if run is None or run.segment != window.segment or run.reason is not verdict.reason:
            reward_before = self._last_reward if run and run.segment == window.segment else None
            run = self._run = _Run(verdict.reason, window.segment, 0, reward_before)
        run.length += 1
        self._last_reward = verdict.reward
        if not verdict.reason.is_failure:
            self.state = EpisodeState.RUNNING
            return None
        if run.length < self.confirmations:
            if self.state is EpisodeState.UNKNOWN:
                self.state = EpisodeState.RUNNING
            return None
        self.state = EpisodeState.FAILING
        if run.fired or self._cooling_down(verdict.reason, window.newest.stamp_ns):
            return None
        run.fired = True
        self._fired_ns[verdict.reason] = window.newest.stamp_ns
        probabilities = verdict.reason_probabilities
        return FailureEvent(
            window=window,
            reason=verdict.reason,
            rule=Rule.WORD,
            reward=verdict.reward,
            previous_reward=run.reward_before,
            probability=None if probabilities is None else probabilities[verdict.reason - 1],
            confirmations=run.length,
        )

    def _cooling_down(self, reason: Reason, stamp_ns: int) -> bool:
        fired_ns = self._fired_ns.get(reason)
        # A stamp before the last event means that the clock jumped back: no cool-down can be measured.
        return fired_ns is not None and 0 <= stamp_ns - fired_ns < self.cooldown * NS_PER_S
