"""What a reward model says of a whole recording, as the numbers by which recordings are compared."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from densereward_ros.models.base import RewardModel
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.judging import judge
from densereward_ros.recordings.opening import open_recording
from densereward_ros.recordings.windows import windows_of
from densereward_ros.types import ImageError

MEASURES = ('final', 'mean')


@dataclass(frozen=True)
class Outcome:
    """Of one recording. final, mean: the last verdict's reward, and that of all. malformed: replies."""

    final: float
    mean: float
    verdicts: int
    malformed: int

    def reward(self, measure: str) -> float:
        """The reward by one of MEASURES."""
        return {'final': self.final, 'mean': self.mean}[measure]


def check_recording(source: str | Path, rate: float = 0.0) -> None:
    """Raise RecordingError for a recording that cannot be opened, or whose first frame cannot be read."""
    open_recording(source, rate)


def outcome_of(
    model: RewardModel, source: str | Path, task: str, rate: float = 0.0, frame_interval: float = 0.2
) -> Outcome:
    """Score every window of a recording. Raises RecordingError, also where there is no verdict."""
    recording = open_recording(source, rate)
    try:
        verdicts, malformed = judge(model, windows_of(recording, task, frame_interval))
    except ImageError as error:
        raise RecordingError(f'{source}: {error}') from error
    if not verdicts:
        why = f'its replies were malformed, all {malformed} of them' if malformed else (
            f'too short for a verdict, which takes three frames {frame_interval:g} s apart')
        raise RecordingError(f'{source}: {why}')
    rewards = [verdict.reward for _, verdict in verdicts]
    return Outcome(rewards[-1], statistics.fmean(rewards), len(rewards), malformed)
