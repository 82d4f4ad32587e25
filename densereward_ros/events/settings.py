"""What the detector is told: every rule's numbers, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from densereward_ros.types import FAILURES

# Lowest and highest value of each setting that stands by itself.
RANGES: dict[str, tuple[float, float]] = {
    'confirmations': (1, 100),
    'confirmation_window': (0, 1000),
    'reward_drop': (0.0, 1000.0),
    'drop_window': (0.1, 60.0),
    'clearing': (1, 100),
    'cooldown': (0.0, 3600.0),
    'stall_time': (0.0, 3600.0),
    'stall_rise': (0.001, 1.0),
    'success_level': (0.0, 1.0),
    'success_time': (0.0, 3600.0),
}


@dataclass(frozen=True)
class DetectorSettings:
    """When verdicts are a failure, a stall or a success. Times are seconds between frame stamps.

    Word rule: `confirmations` of the last `confirmation_window` verdicts name the same failure (0: as many
    as `confirmations`, so all of them, in a row), each with at least that word's probability in
    `probability_floors`, one for each of FAILURES in order (0: the name is enough; so it is where the model
    gives no probabilities).
    Drop rule: the reward lies at least `reward_drop` below its peak of the last `drop_window` seconds
    (0: never). It serves models without words, too.
    A failure is over after `clearing` verdicts in a row that do not show it. After an event, none of the
    same reason follows for `cooldown`.
    Stalled: the reward has not risen by `stall_rise` for `stall_time` (0: never stalled), and is below
    `success_level`. Succeeded: at `success_level` or above for `success_time`. Both need a bounded reward.

    Raises ValueError, one line, for a value that is not allowed.
    """

    confirmations: int = 2
    confirmation_window: int = 0
    probability_floors: tuple[float, ...] = (0.0,) * len(FAILURES)
    reward_drop: float = 0.0
    drop_window: float = 2.0
    clearing: int = 1
    cooldown: float = 2.0
    stall_time: float = 10.0
    stall_rise: float = 0.05
    success_level: float = 0.9
    success_time: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name in RANGES:
                _check(field.name, getattr(self, field.name), *RANGES[field.name], field.type == 'int')
        if len(self.probability_floors) != len(FAILURES):
            raise ValueError(
                f'probability_floors holds {len(self.probability_floors)} numbers, '
                f'allowed: {len(FAILURES)}, for {", ".join(reason.word for reason in FAILURES)}')
        for reason, floor in zip(FAILURES, self.probability_floors):
            _check(f'the probability floor of {reason.word}', floor, 0.0, 1.0, False)
        if 0 < self.confirmation_window < self.confirmations:
            raise ValueError(
                f'confirmation_window is {self.confirmation_window}, allowed: 0, or at least '
                f'confirmations, which is {self.confirmations}')

    @property
    def among(self) -> int:
        """How many of the last verdicts the word rule looks at, 1 or more."""
        return self.confirmation_window or self.confirmations


def _check(name: str, value: object, low: float, high: float, whole: bool) -> None:
    number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:
        kind = 'a whole number, ' if whole else ''
        raise ValueError(f'{name} is {value!r}, allowed: {kind}{low} to {high:g}')


DEFAULTS = DetectorSettings()
