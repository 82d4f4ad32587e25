"""The scores of recordings, in memory: what every table, page and metric is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from densereward_ros.recordings.episode import Labels
from densereward_ros.types import Reason, Rule


@dataclass(frozen=True)
class ScoredFrame:
    """What the model said of the window that ends with this frame.

    frame: its index in the episode, from 0. stamp_ns: the camera's time stamp, seconds: since the episode's
    first frame. segment: as of Window. reward: None where the reply was malformed, and malformed then says
    what was wrong. reason_probabilities: as of Verdict. target: the labelled progress, 0 to 1, None without.
    log_ns: when the frame arrived, in nanoseconds; of a bag, its own log time, so that what is written beside
    the bag has the same clock; None where nobody kept it, and the stamp stands in. window_ns: the stamps of
    the window's frames, oldest first and stamp_ns last; empty where nobody kept them.
    """

    frame: int
    stamp_ns: int
    seconds: float
    segment: int
    reward: float | None
    reason: Reason = Reason.NONE
    reason_probabilities: tuple[float, ...] | None = None
    malformed: str = ''
    target: float | None = None
    log_ns: int | None = None
    window_ns: tuple[int, ...] = ()


@dataclass(frozen=True)
class ScoredEvent:
    """One failure event; the fields are those of FailureEvent, the times those of ScoredFrame."""

    stamp_ns: int
    seconds: float
    reason: Reason
    rule: Rule
    reward: float
    previous_reward: float | None
    probability: float | None
    confirmations: int


@dataclass(frozen=True)
class ScoredEpisode:
    """One episode as one camera saw it; frames and events in time order.

    name: of its own within one folder of results. source: the recording as it was given. index: as of
    Episode.
    """

    name: str
    source: str
    camera: str
    task: str
    labels: Labels
    frames: tuple[ScoredFrame, ...]
    events: tuple[ScoredEvent, ...]
    index: int | None = None


@dataclass(frozen=True)
class Results:
    """All episodes of one run of `densereward score`.

    run: where the numbers come from: model, its revision or the hash of its files, bounded, options, version,
    seconds_per_window. failed: recordings that could not be scored, and why.
    """

    episodes: tuple[ScoredEpisode, ...]
    run: dict[str, Any] = field(default_factory=dict)
    failed: tuple[tuple[str, str], ...] = ()
