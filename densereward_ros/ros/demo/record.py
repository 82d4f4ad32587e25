"""What was received during a demo, and the figures that follow from it."""

from __future__ import annotations

import io
import statistics
import time
from dataclasses import dataclass, field
from typing import Callable

import numpy as np

from densereward_ros.report.timeline import Moment, Reward, Span, Timeline
from densereward_ros.types import Reason

THUMBNAIL_HEIGHT = 192
MAX_THUMBNAILS = 400
DONE = 0.999  # true progress from here on is a task done


@dataclass
class DemoRecord:
    """Times are seconds since the first camera frame, by arrival on this machine's steady clock.

    begun, ended: readings of that clock.

    news: (seconds, kind, text) of everything but frames and rewards; kind is failure, recovery,
    success or problem. reply_s: seconds the model took for each reward. age_s: seconds from each
    frame's stamp to the arrival of its reward. malformed: replies that held no reward, as the node counts.
    """

    begun: float | None = None
    ended: float | None = None
    frames: int = 0
    thumbnails: list[tuple[float, np.ndarray]] = field(default_factory=list)
    rewards: list[Reward] = field(default_factory=list)
    reply_s: list[float] = field(default_factory=list)
    age_s: list[float] = field(default_factory=list)
    truth: list[tuple[float, float]] = field(default_factory=list)
    tasks: list[tuple[float, str]] = field(default_factory=list)
    failures: list[Moment] = field(default_factory=list)
    recoveries: list[Span] = field(default_factory=list)
    successes: list[Moment] = field(default_factory=list)
    news: list[tuple[float, str, str]] = field(default_factory=list)
    malformed: int = 0
    node_message: str = ''
    node_error: str = ''
    _last_frame: float = 0.0
    _spacing: float = 0.0
    _recovery: tuple[float, str] | None = None

    def now(self) -> float:
        """Seconds since the first frame, until the end; 0 before it."""
        return 0.0 if self.begun is None else (self.ended or time.monotonic()) - self.begun

    def end(self) -> None:
        """Stop the clock."""
        self.ended = time.monotonic()

    def add_frame(self, image: Callable[[], np.ndarray]) -> None:
        """Count a frame, and keep a few hundred small ones, evenly spaced over the run."""
        if self.begun is None:
            self.begun = time.monotonic()
        now = self._last_frame = self.now()
        self.frames += 1
        if not self.thumbnails or now - self.thumbnails[-1][0] >= self._spacing:
            self.thumbnails.append((now, image()))
        if len(self.thumbnails) > MAX_THUMBNAILS:
            del self.thumbnails[1::2]
            self._spacing = 2 * now / MAX_THUMBNAILS

    def add_reward(self, value: float, reason: Reason, task: str, reply_s: float, age_s: float) -> None:
        """A reward arrived."""
        self.rewards.append(Reward(self.now(), value, reason, task))
        self.reply_s.append(reply_s)
        self.age_s.append(age_s)

    def add_task(self, text: str) -> None:
        """The robot began another task."""
        if not self.tasks or self.tasks[-1][1] != text:
            self.tasks.append((self.now(), text))

    def add_truth(self, progress: float) -> None:
        """The simulator's true progress; reaching the end is a success."""
        now = self.now()
        was_done = bool(self.truth) and self.truth[-1][1] >= DONE
        self.truth.append((now, progress))
        if progress >= DONE and not was_done:
            self.successes.append(Moment(now, 'done'))
            self.news.append((now, 'success', f'task done   {self.tasks[-1][1] if self.tasks else ""}'))

    def add_failure(self, reason: Reason, reward: float) -> None:
        """A failure event arrived."""
        self.failures.append(Moment(self.now(), reason.word))
        self.news.append((self.now(), 'failure', f'/failure_event   {reason.word}, reward {reward:.3f}'))

    def add_recovery(self, key: str, value: str) -> None:
        """The recovery controller said what it does (see RecoveryNode)."""
        now = self.now()
        if key == 'started':
            self._recovery = (now, value)
        elif key == 'done' and self._recovery is not None:
            start, text = self._recovery
            self.recoveries.append(Span(start, now, text.split(': ')[-1]))
            self._recovery = None
        kind = 'recovery' if key in ('started', 'cancelled', 'done') else 'problem'
        self.news.append((now, kind, f'recovery {key.replace("_", " ")}   {value}'))

    def rate(self) -> float:
        """Rewards a second, from the first to the last."""
        if len(self.rewards) < 2:
            return 0.0
        return (len(self.rewards) - 1) / max(1e-9, self.rewards[-1].seconds - self.rewards[0].seconds)

    def duration(self) -> float:
        """Seconds until the last frame or reward."""
        return max([self._last_frame, *(reward.seconds for reward in self.rewards[-1:])])

    def timeline(self, title: str, subtitle: str) -> Timeline:
        """The run as a picture shows it."""
        duration = max(1.0, self.duration())
        ends = [*(start for start, _ in self.tasks[1:]), duration]
        return Timeline(
            title, duration, subtitle, self.thumbnails, self.rewards, self.truth,
            [Span(start, end, text) for (start, text), end in zip(self.tasks, ends)],
            self.failures, self.recoveries, self.successes)


def percentiles(values: list[float]) -> tuple[float, float]:
    """Median and 95th percentile; NaN of nothing."""
    if not values:
        return float('nan'), float('nan')
    return statistics.median(values), float(np.percentile(values, 95))


def thumbnail(image: np.ndarray) -> np.ndarray:
    """A small copy of an RGB image."""
    from PIL import Image

    return _shrink(Image.fromarray(image))


def jpeg_thumbnail(data: bytes) -> np.ndarray:
    """A small RGB image of a JPEG."""
    from PIL import Image

    return _shrink(Image.open(io.BytesIO(data)).convert('RGB'))


def _shrink(picture) -> np.ndarray:
    picture.thumbnail((4 * THUMBNAIL_HEIGHT, THUMBNAIL_HEIGHT))
    return np.array(picture)
