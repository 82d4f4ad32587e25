"""One episode of a recording: what one camera saw of one task, and what is known about how it went."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Callable, Iterator

from densereward_ros.types import Frame, Reason


@dataclass(frozen=True)
class LabelledFailure:
    """A failure that somebody marked: seconds since the first frame; NONE where no word is given."""

    seconds: float
    reason: Reason = Reason.NONE


@dataclass(frozen=True)
class Labels:
    """What is known about an episode; what nobody knows is None.

    failures: in time order; an empty tuple says that there was none. progress: points of
    (seconds since the first frame, progress from 0 to 1) in time order, straight lines between them.
    """

    success: bool | None = None
    failures: tuple[LabelledFailure, ...] | None = None
    progress: tuple[tuple[float, float], ...] | None = None

    def progress_at(self, seconds: float) -> float | None:
        """The labelled progress at that moment; None without labels of it, and before and after them."""
        if self.progress is None:
            return None
        after = bisect.bisect_left(self.progress, seconds, key=lambda point: point[0])
        if after == len(self.progress):
            return None
        end, value = self.progress[after]
        if end == seconds:
            return value
        if after == 0:
            return None
        start, before = self.progress[after - 1]
        return before + (value - before) * (seconds - start) / (end - start)


@dataclass(frozen=True)
class Episode:
    """What one camera saw while the robot worked on one task.

    name: its own among the episodes of one run, and fit for a path below a folder. source: the recording as
    the user gave it. camera: a topic, a column, or '' where there is but one. count: of frames, as the
    recording states it; None where it does not. frames: yields them from the first, in the order of the
    recording, as often as it is called; raises RecordingError. A frame's image may be decoded when it is
    first asked for. index: of the episode in its dataset, None where the recording is none.
    """

    name: str
    source: str
    camera: str
    task: str
    frames: Callable[[], Iterator[Frame]]
    count: int | None = None
    labels: Labels = Labels()
    index: int | None = None
