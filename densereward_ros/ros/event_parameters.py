"""The node's parameters about events, as the detector's settings."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Callable

from densereward_ros.events.settings import DetectorSettings
from densereward_ros.events.thresholds import RULES, SCORED_BY, Thresholds, ThresholdsError, read
from densereward_ros.ros.parameters import ParameterError
from densereward_ros.types import FAILURES

# One parameter gives the floor of every word; a thresholds file may hold one for each.
FLOOR = 'probability_floor'
EVENT_PARAMETERS = tuple(
    FLOOR if field.name == 'probability_floors' else field.name for field in fields(DetectorSettings))
_CALIBRATED = tuple(FLOOR if name == 'probability_floors' else name for name in RULES)


def detector_settings(value: Callable[[str], Any], thresholds: Thresholds | None) -> DetectorSettings:
    """The settings that the parameters give, by name, under the thresholds in force.

    Raises ParameterError for values that do not go together.
    """
    values = {name: value(name) for name in EVENT_PARAMETERS}
    floors = (values.pop(FLOOR),) * len(FAILURES)
    try:
        settings = DetectorSettings(**values, probability_floors=floors)
    except ValueError as error:
        raise ParameterError(f'parameter {error}') from None
    return thresholds.applied_to(settings) if thresholds else settings


def load_thresholds(value: Callable[[str], Any]) -> Thresholds | None:
    """The thresholds of the file that the parameters name, by name; None for ''.

    Raises ParameterError where they do not hold for this node.
    """
    file = value('thresholds')
    if not file:
        return None
    try:
        found = read(Path(file).expanduser())
    except ThresholdsError as error:
        raise ParameterError(f'parameter thresholds: {error}') from None
    for name in SCORED_BY:
        if value(name) != getattr(found, name):
            raise ParameterError(
                f'parameter thresholds: {file} was calibrated with {name} {getattr(found, name)}, '
                f'and the node has {value(name)}')
    return found


def check_not_calibrated(name: str, thresholds: Thresholds | None) -> None:
    """Raise ParameterError for a change of what the thresholds file in force says."""
    if thresholds is not None and name in _CALIBRATED:
        raise ParameterError(
            f'parameter {name} comes from the thresholds file while one is in force: clean the node up, and '
            'set thresholds to an empty text first')
