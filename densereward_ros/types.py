"""The nouns that everyone shares: image -> Frame -> Window -> Verdict -> FailureEvent."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    import numpy as np

FRAMES_PER_WINDOW = 3


class Reason(enum.IntEnum):
    """Why the reward is what it is; the numbers are those of RewardStamped.reason.

    The words are the released checkpoint's vocabulary (its model card): `correct` is
    progress on track, every other word names what just dropped the reward.
    """

    NONE = 0
    CORRECT = 1
    MISS = 2
    COLLISION = 3
    FALL = 4
    SMOOTH = 5
    FAILURE = 6

    @property
    def word(self) -> str:
        """The word as the model writes it, in lower case."""
        return self.name.lower()

    @property
    def is_failure(self) -> bool:
        """True for the five words that name a failure."""
        return self > Reason.CORRECT


REASONS = tuple(reason for reason in Reason if reason is not Reason.NONE)
FAILURES = tuple(reason for reason in Reason if reason.is_failure)
REASON_OF_WORD = {reason.word: reason for reason in REASONS}


class ImageError(ValueError):
    """An image that cannot be used; the text names what is wrong, the value seen and what is allowed."""


@dataclass(frozen=True, eq=False)
class Frame:
    """One camera image: decoded on first use, and then once only.

    stamp_ns: the camera's time stamp in nanoseconds. It orders frames and nothing else.
    received_ns: arrival on this machine's steady clock in nanoseconds. Ages are measured from it.
    frame_id: the coordinate frame of the camera, as its messages name it.
    decode: returns the image, uint8 of shape (height, width, 3), RGB; raises ImageError.
    """

    stamp_ns: int
    received_ns: int
    decode: Callable[[], np.ndarray]
    frame_id: str = ''

    @cached_property
    def image(self) -> np.ndarray:
        """The image, uint8 of shape (height, width, 3), RGB. Raises ImageError."""
        return self.decode()


@dataclass(frozen=True, eq=False)
class Window:
    """What a reward model looks at: frames of one camera, oldest first, and the task in words.

    segment: counts the unbroken runs of frames; two windows with different segments
    are separated by a new episode, a clock jump or a silent camera.
    """

    camera: str
    task: str
    frames: tuple[Frame, ...]
    segment: int = 0

    @property
    def newest(self) -> Frame:
        """The newest frame."""
        return self.frames[-1]


@dataclass(frozen=True)
class Verdict:
    """What a reward model says of a window.

    reward: in [0, 1] when bounded is true, any finite number otherwise.
    reason_probabilities: six probabilities, one for each of REASONS in order, or None
    where the model gives none.
    Raises ValueError for any other reward: a made-up number cannot become a verdict.
    """

    reward: float
    reason: Reason
    bounded: bool = True
    reason_probabilities: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.reward) or (self.bounded and not 0.0 <= self.reward <= 1.0):
            allowed = '0 to 1' if self.bounded else 'any finite number'
            raise ValueError(f'the reward is {self.reward}, allowed: {allowed}')


@dataclass(frozen=True)
class MalformedReply:
    """A reply that holds no valid verdict: its text, and what is wrong with it."""

    text: str
    why: str


class Rule(enum.IntEnum):
    """Which rule fired; the numbers are those of FailureEvent.rule."""

    WORD = 1
    REWARD_DROP = 2


@dataclass(frozen=True)
class FailureEvent:
    """The onset of one failure; the fields are those of FailureEvent.msg.

    cameras: those that saw it, at least one; the last one's window completed the evidence.
    previous_reward: the last reward before the confirming verdicts, None where there was none; for a drop of
    the reward, the peak that it fell from. probability: the newest verdict's probability of the reason, None
    where the model gives none. confirmations: how many verdicts showed it.
    """

    window: Window
    cameras: tuple[str, ...]
    reason: Reason
    rule: Rule
    reward: float
    previous_reward: float | None
    probability: float | None
    confirmations: int
