"""Verdicts of one camera in, onsets of failures out."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Sequence

from densereward_ros.events.evidence import DropEvidence, WordEvidence
from densereward_ros.events.progress import Progress
from densereward_ros.events.settings import DEFAULTS, DetectorSettings
from densereward_ros.types import FAILURES, FailureEvent, Reason, Rule, Verdict, Window

NS_PER_S = 1_000_000_000


class EpisodeState(enum.IntEnum):
    """How an episode stands; the numbers are those of EpisodeState.msg."""

    UNKNOWN = 0
    RUNNING = 1
    FAILING = 2
    STALLED = 3
    SUCCEEDED = 4


@dataclass
class _Failure:
    """A failure that has begun and is not over.

    shown: how many verdicts have shown it. silent: how many in a row have not. told: whether it needs no
    event any more.
    """

    reward_before: float | None
    shown: int
    silent: int = 0
    told: bool = False


class FailureDetector:
    """A state machine over the verdicts of one camera: it publishes each failure once, at its onset.

    For each failure word, and for the drop of the reward:

        quiet --(evidence reaches its threshold)--> standing --(`clearing` verdicts without it)--> quiet

    Entering `standing` gives the event, at the first verdict for which the cool-down of its reason is over:
    a failure that begins within the cool-down and outlasts it is told late, not lost. The two rules do not
    tell of one failure twice: what one shows within the cool-down of the other's event needs no event, and
    neither does a drop while a named failure stands.

    All times are frame stamps, so the same stream gives the same events however it arrives. Malformed
    replies are no verdicts: they neither confirm nor clear. A new segment of the window (new episode, clock
    jump, silent camera) forgets everything but the cool-downs.
    """

    def __init__(self, settings: DetectorSettings = DEFAULTS) -> None:
        self._settings = settings
        self.reset()

    @property
    def settings(self) -> DetectorSettings:
        """May be replaced at any time; what was seen counts under the new ones."""
        return self._settings

    @settings.setter
    def settings(self, settings: DetectorSettings) -> None:
        before, self._settings = self._settings, settings
        self._words = self._words.resized(settings.confirmations, settings.among)
        if settings.drop_window != before.drop_window:
            self._drops = DropEvidence(settings.drop_window)

    def reset(self) -> None:
        """Forget everything: a new episode."""
        self.state = EpisodeState.UNKNOWN
        self._segment: int | None = None
        self._fired_ns: dict[tuple[Rule, Reason], int] = {}
        self._begin_segment(None)

    def _begin_segment(self, segment: int | None) -> None:
        self._segment = segment
        self._last_reward: float | None = None
        self._words = WordEvidence(self._settings.confirmations, self._settings.among)
        self._drops = DropEvidence(self._settings.drop_window)
        self._progress = Progress()
        self._standing: dict[Reason, _Failure] = {}
        self._drop: _Failure | None = None

    def update(self, window: Window, verdict: Verdict) -> FailureEvent | None:
        """Take in the next verdict; returns the event that it completes, if any."""
        if window.segment != self._segment:
            self._begin_segment(window.segment)
        stamp_ns = window.newest.stamp_ns
        self._judge_words(verdict)
        self._judge_drop(stamp_ns, verdict)
        self._progress.update(stamp_ns, verdict, self._settings)
        self._last_reward = verdict.reward
        self.state = self._next_state(verdict)
        return self._word_event(window, verdict) or self._drop_event(window, verdict)

    def _judge_words(self, verdict: Verdict) -> None:
        evidence = self._words.update(verdict, self._last_reward)
        shown = None
        if verdict.reason.is_failure:
            floor = self._settings.probability_floors[FAILURES.index(verdict.reason)]
            if verdict.reason in self._standing:
                if self._words.newest.weight >= floor:
                    shown = verdict.reason
            elif evidence is not None and evidence >= floor:
                shown = verdict.reason
                votes = self._words.votes(shown, floor)
                self._standing[shown] = _Failure(votes[0].reward_before, len(votes) - 1)
        for reason, failure in list(self._standing.items()):
            if _over(failure, reason is shown, self._settings.clearing):
                del self._standing[reason]
                self._words.forget(reason)

    def _judge_drop(self, stamp_ns: int, verdict: Verdict) -> None:
        fall, least = self._drops.update(stamp_ns, verdict.reward), self._settings.reward_drop
        dropped = 0.0 < least <= fall
        if dropped and self._drop is None:
            self._drop = _Failure(self._drops.peak, 0)
        if self._drop is not None and _over(self._drop, dropped, self._settings.clearing):
            self._drop = None

    def _next_state(self, verdict: Verdict) -> EpisodeState:
        failing = self._standing or self._drop
        # Between one failure and another that is not confirmed yet, the episode does not run well.
        if failing or (self.state is EpisodeState.FAILING and verdict.reason.is_failure):
            return EpisodeState.FAILING
        if self._progress.succeeded:
            return EpisodeState.SUCCEEDED
        return EpisodeState.STALLED if self._progress.stalled else EpisodeState.RUNNING

    def _word_event(self, window: Window, verdict: Verdict) -> FailureEvent | None:
        failure = self._standing.get(verdict.reason)
        if failure is None or failure.told or failure.silent:
            return None
        if self._cooling_down(Rule.REWARD_DROP, FAILURES, window):
            failure.told = True
        elif not self._cooling_down(Rule.WORD, (verdict.reason,), window):
            return self._event(failure, Rule.WORD, verdict.reason, window, verdict)
        return None

    def _drop_event(self, window: Window, verdict: Verdict) -> FailureEvent | None:
        failure = self._drop
        if failure is None or failure.told or failure.silent:
            return None
        if self._standing or self._cooling_down(Rule.WORD, FAILURES, window):
            failure.told = True
        elif not self._cooling_down(Rule.REWARD_DROP, FAILURES, window):
            reason = verdict.reason if verdict.reason.is_failure else Reason.FAILURE
            return self._event(failure, Rule.REWARD_DROP, reason, window, verdict)
        return None

    def _event(
        self, failure: _Failure, rule: Rule, reason: Reason, window: Window, verdict: Verdict
    ) -> FailureEvent:
        failure.told = True
        self._fired_ns[rule, reason] = window.newest.stamp_ns
        probabilities = verdict.reason_probabilities
        return FailureEvent(
            window=window,
            cameras=(window.camera,),
            reason=reason,
            rule=rule,
            reward=verdict.reward,
            previous_reward=failure.reward_before,
            probability=None if probabilities is None else probabilities[reason - 1],
            confirmations=failure.shown,
        )

    def _cooling_down(self, rule: Rule, reasons: Sequence[Reason], window: Window) -> bool:
        """True while an event of that rule, for one of those reasons, is younger than the cool-down."""
        now_ns = window.newest.stamp_ns
        # A stamp before the event means that the clock jumped back: no cool-down can be measured.
        return any(
            0 <= now_ns - fired_ns < self._settings.cooldown * NS_PER_S
            for (by, reason), fired_ns in self._fired_ns.items() if by is rule and reason in reasons)


def _over(failure: _Failure, shown: bool, clearing: int) -> bool:
    """Count one more verdict; True when it is the last that the failure lacked to be over."""
    failure.shown += shown
    failure.silent = 0 if shown else failure.silent + 1
    return failure.silent >= clearing
