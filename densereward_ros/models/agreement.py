"""How far the verdicts of two models are apart on the same windows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from densereward_ros.models.base import ModelError, ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.types import MalformedReply, Verdict, Window


@dataclass(frozen=True)
class Scored:
    """What one model said of each window, and the seconds that each reply took."""

    replies: list[Verdict | MalformedReply]
    seconds: list[float]


def score_all(options: ModelOptions, windows: Iterable[Window], progress: Callable[[str], None]) -> Scored:
    """Open a model, score windows one by one, close it. Raises ModelError."""
    model = open_model(options, progress)
    scored = Scored([], [])
    try:
        for window in windows:
            started = time.perf_counter()
            scored.replies.extend(model.score([window]))
            scored.seconds.append(time.perf_counter() - started)
    finally:
        model.close()
    return scored


@dataclass(frozen=True)
class Agreement:
    """The figures of a comparison.

    windows: how many. pairs: of them, those where both gave a verdict. words_differing: of the pairs, those
    with another reason. mean_difference, largest_difference: of the rewards, absolute; None without a pair.
    malformed: replies without a verdict, of the first and the second model. median_ms: of a reply,
    likewise; the models ran one after the other.
    """

    windows: int
    pairs: int
    words_differing: int
    mean_difference: float | None
    largest_difference: float | None
    malformed: tuple[int, int]
    median_ms: tuple[float, float]

    @classmethod
    def of(cls, one: Scored, other: Scored) -> Agreement:
        """Compare two models on the same windows, in the same order. Raises ModelError without any."""
        if not one.replies:
            raise ModelError('the recordings hold no window (three frames at the frame interval are needed)')
        pairs = [
            (first, second)
            for first, second in zip(one.replies, other.replies, strict=True)
            if isinstance(first, Verdict) and isinstance(second, Verdict)
        ]
        differences = [abs(first.reward - second.reward) for first, second in pairs]
        return cls(
            windows=len(one.replies),
            pairs=len(pairs),
            words_differing=sum(first.reason is not second.reason for first, second in pairs),
            mean_difference=round(statistics.fmean(differences), 4) if pairs else None,
            largest_difference=round(max(differences), 3) if pairs else None,
            malformed=(_malformed(one.replies), _malformed(other.replies)),
            median_ms=(_median_ms(one.seconds), _median_ms(other.seconds)),
        )

    def figures(self) -> dict:
        """As JSON knows them."""
        return asdict(self)

    def table(self, name: str) -> str:
        """As text, the second model under its name."""
        lines = [
            ('windows', str(self.windows)),
            ('another word', f'{self.words_differing} of {self.pairs}'),
            ('mean difference of rewards', _shown(self.mean_difference)),
            ('largest difference', _shown(self.largest_difference)),
            ('malformed replies', f'full {self.malformed[0]}, {name} {self.malformed[1]}'),
            ('median of a reply', f'full {self.median_ms[0]:.1f} ms, {name} {self.median_ms[1]:.1f} ms'),
        ]
        return '\n'.join(f'{what:<28}{value}' for what, value in lines)


def _malformed(replies: Sequence[Verdict | MalformedReply]) -> int:
    return sum(isinstance(reply, MalformedReply) for reply in replies)


def _median_ms(seconds: Sequence[float]) -> float:
    return round(1000 * statistics.median(seconds), 2)


def _shown(value: float | None) -> str:
    return '(no pair of verdicts)' if value is None else f'{value:.4f}'
