"""The file of calibrated thresholds: `densereward calibrate` writes it, the node loads it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from densereward_ros.events.settings import DEFAULTS, DetectorSettings
from densereward_ros.types import FAILURES, REASON_OF_WORD

# What the promise depends on, so that the file and not a parameter says it.
RULES = ('confirmations', 'confirmation_window', 'probability_floors', 'reward_drop', 'drop_window')
# Of a Thresholds, what decides which verdicts there are; the node has parameters of these names.
SCORED_BY = ('engine', 'quantization', 'max_pixels', 'frame_interval')
_HEADER = """\
# Thresholds of the failure detector, calibrated for one robot, camera and model. The reward node loads this
# file with the parameter `thresholds`. With these settings, at most the share `false_alarms` of successful
# episodes like the calibrated ones has an event. Changing a number below voids that.
"""


class ThresholdsError(ValueError):
    """A thresholds file that cannot be used; the text is one line that names the file."""


@dataclass(frozen=True)
class Thresholds:
    """What was calibrated, and for what.

    false_alarms: the promised highest share of successful episodes with an event, in (0, 1). episodes: how
    many successful ones it was calibrated on. model and the fields of SCORED_BY: what scored them; the
    node's own must be the same. settings: of the detector; those of RULES alone are the file's.
    """

    false_alarms: float
    episodes: int
    model: str
    engine: str
    quantization: str
    max_pixels: int
    frame_interval: float
    settings: DetectorSettings

    def applied_to(self, settings: DetectorSettings) -> DetectorSettings:
        """Other settings with the calibrated rules in place of their own."""
        return replace(settings, **{name: getattr(self.settings, name) for name in RULES})


def write(thresholds: Thresholds, file: Path) -> None:
    """Write a thresholds file. Raises OSError."""
    import yaml

    values = {field.name: getattr(thresholds, field.name) for field in fields(thresholds)}
    del values['settings']
    values |= {name: asdict(thresholds.settings)[name] for name in RULES}
    values['probability_floors'] = {
        reason.word: floor for reason, floor in zip(FAILURES, thresholds.settings.probability_floors)}
    file.write_text(_HEADER + yaml.safe_dump(values, sort_keys=False), encoding='utf-8')


def read(file: Path) -> Thresholds:
    """Read a thresholds file. Raises ThresholdsError."""
    import yaml

    try:
        values = yaml.safe_load(file.read_text(encoding='utf-8'))
    except OSError as error:
        raise ThresholdsError(f'{file}: cannot be read ({error.strerror})') from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ThresholdsError(f'{file}: not YAML ({str(error).splitlines()[0]})') from None
    names = [field.name for field in fields(Thresholds) if field.name != 'settings'] + list(RULES)
    if not isinstance(values, dict) or set(values) != set(names):
        found = ', '.join(map(str, values)) if isinstance(values, dict) else repr(values)
        raise ThresholdsError(
            f'{file}: holds {found[:200]}, allowed: exactly {", ".join(names)}')
    try:
        return _checked(values)
    except (TypeError, ValueError) as error:
        raise ThresholdsError(f'{file}: {error}') from None


def _checked(values: dict) -> Thresholds:
    floors = values['probability_floors']
    if not isinstance(floors, dict) or set(floors) != {reason.word for reason in FAILURES}:
        raise ValueError(
            f'probability_floors is {floors!r}, allowed: a number for each of '
            f'{", ".join(word for word, reason in REASON_OF_WORD.items() if reason.is_failure)}')
    for name, kind, allowed in (
            ('false_alarms', float, 'a number above 0 and below 1'), ('episodes', int, 'a whole number'),
            ('model', str, 'a text'), ('engine', str, 'a text'), ('quantization', str, 'a text'),
            ('max_pixels', int, 'a whole number'), ('frame_interval', float, 'seconds')):
        if type(values[name]) is not kind or (name == 'false_alarms' and not 0.0 < values[name] < 1.0):
            raise ValueError(f'{name} is {values[name]!r}, allowed: {allowed}')
    settings = replace(
        DEFAULTS,
        **{name: values[name] for name in RULES if name != 'probability_floors'},
        probability_floors=tuple(floors[reason.word] for reason in FAILURES))
    return Thresholds(
        settings=settings, **{
            name: values[name]
            for name in ('false_alarms', 'episodes', 'model', *SCORED_BY)})
