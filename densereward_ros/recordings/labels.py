"""Which recordings there are, what each shows, and whether it went well: a small YAML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from densereward_ros.recordings.base import RecordingError

FILE = 'episodes.yaml'
_COMMON = ('task', 'rate')
_ALLOWED = ('path', 'success', 'failed_at', *_COMMON)


@dataclass(frozen=True)
class LabelledRecording:
    """One episode on disk.

    rate: frames a second for a folder of images, which has none of its own; 0 keeps a video's times.
    failed_at: seconds from the first frame until the failure, None where it went well or nobody knows.
    """

    path: Path
    task: str
    success: bool
    rate: float = 0.0
    failed_at: float | None = None


def read_labels(source: str | Path) -> list[LabelledRecording]:
    """Read a label file, or the episodes.yaml of a folder. Raises RecordingError.

        task: stack the cup          # of every episode that names no other
        rate: 10                     # frames a second, for folders of images
        episodes:
          - {path: run_01.mp4, success: true}
          - {path: run_02, task: open the drawer, success: false, failed_at: 3.5}

    Paths are relative to the file.
    """
    import yaml

    file = Path(source) / FILE if Path(source).is_dir() else Path(source)
    try:
        content = yaml.safe_load(file.read_text(encoding='utf-8'))
    except OSError as error:
        raise RecordingError(
            f'{file}: cannot be read ({error.strerror}); allowed is a label file, or a folder with an '
            f'{FILE}') from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecordingError(f'{file}: not YAML ({str(error).splitlines()[0]})') from None
    if not isinstance(content, dict) or not isinstance(content.get('episodes'), list):
        raise RecordingError(f'{file}: names no episodes; allowed is a list of them under episodes:')
    _check_names(file, 'the file', content, ('episodes', *_COMMON))
    if not content['episodes']:
        raise RecordingError(f'{file}: the list of episodes is empty; allowed is at least one')
    common = {name: content[name] for name in _COMMON if name in content}
    return [_labelled(file, number, common, entry) for number, entry in enumerate(content['episodes'], 1)]


def _labelled(file: Path, number: int, common: dict, entry: object) -> LabelledRecording:
    who = f'episode {number}'
    if not isinstance(entry, dict):
        raise RecordingError(f'{file}: {who} is {entry!r}; allowed are {", ".join(_ALLOWED)}')
    _check_names(file, who, entry, _ALLOWED)
    values = {'rate': 0.0, 'failed_at': None, **common, **entry}
    for name, kinds, allowed in (
            ('path', str, 'a file or folder, relative to this file'), ('task', str, 'one line of text'),
            ('success', bool, 'true or false'), ('rate', (int, float), 'frames a second'),
            ('failed_at', (int, float, type(None)), 'seconds from the first frame')):
        value = values.get(name)
        number_wrong = kinds is not bool and (isinstance(value, bool) or isinstance(value, (int, float)) and (
            not 0 <= value < float('inf')))
        if not isinstance(value, kinds) or number_wrong or (isinstance(value, str) and not value.strip()):
            shown = 'not given' if value is None else repr(value)
            raise RecordingError(f'{file}: {name} of {who} is {shown}; allowed: {allowed}')
    if values['success'] and values['failed_at'] is not None:
        raise RecordingError(f'{file}: {who} is a success with failed_at; allowed is one of the two')
    return LabelledRecording(
        file.parent / values['path'], values['task'].strip(), values['success'], float(values['rate']),
        None if values['failed_at'] is None else float(values['failed_at']))


def _check_names(file: Path, who: str, values: dict, allowed: tuple[str, ...]) -> None:
    for name in values:
        if name not in allowed:
            raise RecordingError(f'{file}: {who} has {name!r}; allowed: {", ".join(allowed)}')
