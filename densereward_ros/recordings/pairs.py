"""Which of two recordings of a task is the better one: a small YAML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from densereward_ros.recordings.base import RecordingError

_COMMON = ('task', 'rate', 'subset')
_ALLOWED = ('preferred', 'other', *_COMMON)
_MEANINGS = {
    'preferred': 'a recording, relative to this file',
    'other': 'a recording, relative to this file',
    'task': 'one line of text',
    'subset': 'one line of text',
    'rate': 'frames a second, 0 or more',
}


@dataclass(frozen=True)
class Pair:
    """Two recordings of one task, of which the first is preferred.

    rate: frames a second for folders of images, which have none of their own; 0 keeps a video's times.
    subset: what the figures are broken out by; '' for none.
    """

    preferred: Path
    other: Path
    task: str
    rate: float = 0.0
    subset: str = ''


def read_pairs(file: str | Path) -> list[Pair]:
    """Read a file of pairs. Raises RecordingError.

        task: stack the cup          # of every pair that names no other
        rate: 10                     # frames a second, for folders of images
        pairs:
          - {preferred: run_01.mp4, other: run_02.mp4}
          - {preferred: run_03, other: run_01.mp4, task: open the drawer, subset: drawers}

    Paths are relative to the file.
    """
    import yaml

    file = Path(file)
    try:
        content = yaml.safe_load(file.read_text(encoding='utf-8'))
    except OSError as error:
        raise RecordingError(
            f'{file}: cannot be read ({error.strerror}); allowed is a file of pairs') from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecordingError(f'{file}: not YAML ({str(error).splitlines()[0]})') from None
    if not isinstance(content, dict) or not isinstance(content.get('pairs'), list) or not content['pairs']:
        raise RecordingError(f'{file}: names no pairs; allowed is a list of at least one under pairs:')
    _check_names(file, 'the file', content, ('pairs', *_COMMON))
    common = {name: content[name] for name in _COMMON if name in content}
    return [_pair(file, f'pair {number}', common, entry) for number, entry in enumerate(content['pairs'], 1)]


def _pair(file: Path, who: str, common: dict, entry: object) -> Pair:
    if not isinstance(entry, dict):
        raise RecordingError(f'{file}: {who} is {entry!r}; allowed are {", ".join(_ALLOWED)}')
    _check_names(file, who, entry, _ALLOWED)
    values = {'rate': 0.0, 'subset': '', **common, **entry}
    for name, allowed in _MEANINGS.items():
        value = values.get(name)
        if name == 'rate':
            right = isinstance(value, (int, float)) and not isinstance(value, bool) and (
                0 <= value < float('inf'))
        else:
            right = isinstance(value, str) and (name == 'subset' or bool(value.strip()))
        if not right:
            shown = 'not given' if value is None else repr(value)
            raise RecordingError(f'{file}: {name} of {who} is {shown}; allowed: {allowed}')
    preferred, other = (file.parent / values[name] for name in ('preferred', 'other'))
    if preferred.resolve() == other.resolve():
        raise RecordingError(
            f'{file}: {who} has {values["other"]} on both sides; allowed are two different recordings')
    return Pair(
        preferred, other, values['task'].strip(), float(values['rate']), values['subset'].strip())


def _check_names(file: Path, who: str, values: dict, allowed: tuple[str, ...]) -> None:
    for name in values:
        if name not in allowed:
            raise RecordingError(f'{file}: {who} has {name!r}; allowed: {", ".join(allowed)}')
