"""How much speaks for a failure now. The detector compares it with thresholds, calibration chooses those."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from densereward_ros.types import Reason, Verdict

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Vote:
    """One verdict as the word rule sees it.

    weight: the probability of the word that it names, 1 where the model gives none.
    reward_before: reward of the verdict before it, None for the first of a segment.
    """

    reason: Reason
    weight: float
    reward_before: float | None


class WordEvidence:
    """The last verdicts' words, and how strongly they agree."""

    def __init__(self, confirmations: int, among: int) -> None:
        self._needed = confirmations
        self._votes: deque[Vote] = deque(maxlen=among)

    def update(self, verdict: Verdict, reward_before: float | None) -> float | None:
        """Take in the next verdict; returns the evidence for the failure that it names, in [0, 1].

        That is the highest floor which `confirmations` of the last verdicts, this one among them, reach.
        None where it names no failure, or too few have named the same.
        """
        probabilities = verdict.reason_probabilities
        weight = 1.0 if probabilities is None else probabilities[verdict.reason - 1]
        self._votes.append(Vote(verdict.reason, weight, reward_before))
        weights = sorted((vote.weight for vote in self.votes(verdict.reason, 0.0)), reverse=True)
        if not verdict.reason.is_failure or len(weights) < self._needed:
            return None
        return min(weight, weights[self._needed - 1])

    @property
    def newest(self) -> Vote:
        """The last verdict's vote; only after update()."""
        return self._votes[-1]

    def votes(self, reason: Reason, floor: float) -> list[Vote]:
        """The last verdicts that give the reason with at least that probability, oldest first."""
        return [vote for vote in self._votes if vote.reason is reason and vote.weight >= floor]

    def forget(self, reason: Reason) -> None:
        """What was said of a failure that is over does not speak for the next one."""
        gone = Vote(Reason.CORRECT, 1.0, None)
        self._votes = deque(
            (gone if vote.reason is reason else vote for vote in self._votes), self._votes.maxlen)

    def resized(self, confirmations: int, among: int) -> WordEvidence:
        """The same verdicts under other numbers."""
        other = WordEvidence(confirmations, among)
        other._votes.extend(self._votes)
        return other


class DropEvidence:
    """How far the reward lies below its recent peak."""

    def __init__(self, seconds: float) -> None:
        self._span_ns = seconds * NS_PER_S
        # Stamps ascend and rewards descend: what is older and lower can never be the peak.
        self._peaks: deque[tuple[int, float]] = deque()

    @property
    def peak(self) -> float:
        """The highest reward of the last `seconds`; only after update()."""
        return self._peaks[0][1]

    def update(self, stamp_ns: int, reward: float) -> float:
        """Take in the next reward; returns the fall below the peak, 0 or more, in the reward's unit."""
        while self._peaks and self._peaks[-1][1] <= reward:
            self._peaks.pop()
        self._peaks.append((stamp_ns, reward))
        while stamp_ns - self._peaks[0][0] > self._span_ns:
            self._peaks.popleft()
        return self.peak - reward
