"""Which recordings there are, what each shows, and how it went: a small YAML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.types import FAILURES, REASON_OF_WORD

FILE = 'episodes.yaml'
_COMMON = ('task', 'rate')
_ALLOWED = ('path', 'success', 'failed_at', 'failures', 'progress', *_COMMON)
_FAILURE = ('at', 'reason')
_WORDS = ', '.join(reason.word for reason in FAILURES)
_SECONDS = 'seconds from the first frame'


@dataclass(frozen=True)
class LabelledRecording:
    """One recording on disk, and what is known about it.

    rate: frames a second for a folder of images, which has none of its own; 0 keeps a video's times.
    """

    path: Path
    task: str
    labels: Labels
    rate: float = 0.0


def read_labels(source: str | Path) -> list[LabelledRecording]:
    """Read a label file, or the episodes.yaml of a folder. Raises RecordingError.

        task: stack the cup          # of every episode that names no other
        rate: 10                     # frames a second, for folders of images
        episodes:
          - {path: run_01.mp4, success: true}
          - {path: run_02, task: open the drawer, success: false, failed_at: 3.5}
          - path: run_03.mp4
            success: true
            failures: [{at: 3.5, reason: miss}]           # in place of failed_at: several, with their words
            progress: [[0, 0], [3.4, 0.5], [9.0, 1.0]]    # seconds, and how far the task was

    Paths are relative to the file. success, failures and progress may be left out: then nobody knows.
    failed_at: 3.5 says the same as failures: [{at: 3.5}], of a recording that was no success.
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
        raise RecordingError(f'{file}: {who} is {_shown(entry)}; allowed are {", ".join(_ALLOWED)}')
    _check_names(file, who, entry, _ALLOWED)
    values = {'rate': 0.0, **common, **{name: value for name, value in entry.items() if value is not None}}
    for name in ('path', 'task'):
        if not isinstance(values.get(name), str) or not values[name].strip():
            allowed = 'a file or folder, relative to this file' if name == 'path' else 'one line of text'
            raise _refusal(file, name, who, values.get(name), allowed)
    if not isinstance(values.get('success', False), bool):
        raise _refusal(file, 'success', who, values['success'], 'true or false')
    if not _is_number(values['rate']):
        raise _refusal(file, 'rate', who, values['rate'], 'frames a second')
    labels = Labels(
        values.get('success'), _failures(file, who, values),
        _progress(file, who, values['progress']) if 'progress' in values else None)
    return LabelledRecording(
        file.parent / values['path'], values['task'].strip(), labels, float(values['rate']))


def _failures(file: Path, who: str, values: dict) -> tuple[LabelledFailure, ...] | None:
    """In time order, of either form; None where there is neither."""
    if 'failed_at' in values:
        if values.get('success'):
            raise RecordingError(f'{file}: {who} is a success with failed_at; allowed is one of the two')
        if 'failures' in values:
            raise RecordingError(f'{file}: {who} has failed_at and failures; allowed is one of the two')
        if not _is_number(values['failed_at']):
            raise _refusal(file, 'failed_at', who, values['failed_at'], _SECONDS)
        return (LabelledFailure(float(values['failed_at'])),)
    if 'failures' not in values:
        return None
    if not isinstance(values['failures'], list):
        raise _refusal(
            file, 'failures', who, values['failures'], 'a list such as [{at: 3.5, reason: miss}], or []')
    found = [
        _failure(file, f'failure {number} of {who}', entry)
        for number, entry in enumerate(values['failures'], 1)]
    return tuple(sorted(found, key=lambda failure: failure.seconds))


def _failure(file: Path, which: str, entry: object) -> LabelledFailure:
    if not isinstance(entry, dict):
        raise RecordingError(f'{file}: {which} is {_shown(entry)}; allowed are {", ".join(_FAILURE)}')
    _check_names(file, which, entry, _FAILURE)
    if not _is_number(entry.get('at')):
        raise _refusal(file, 'at', which, entry.get('at'), _SECONDS)
    word = entry.get('reason')
    if word is None:
        return LabelledFailure(float(entry['at']))
    reason = REASON_OF_WORD.get(word) if isinstance(word, str) else None
    if reason not in FAILURES:
        raise _refusal(file, 'reason', which, word, _WORDS)
    return LabelledFailure(float(entry['at']), reason)


def _progress(file: Path, who: str, points: object) -> tuple[tuple[float, float], ...]:
    if not isinstance(points, list) or len(points) < 2:
        raise _refusal(file, 'progress', who, points, 'two or more points such as [[0, 0], [5.0, 0.6]]')
    before = -1.0
    for number, point in enumerate(points, 1):
        which = f'point {number} of the progress'
        if not isinstance(point, list) or len(point) != 2 or not all(map(_is_number, point)):
            raise _refusal(file, which, who, point, f'[{_SECONDS}, progress from 0 to 1]')
        seconds, value = point
        if value > 1:
            raise _refusal(file, which, who, point, 'a progress from 0 to 1')
        if seconds <= before:
            raise _refusal(file, which, who, point, f'a time after the point before it, at {before:g} s')
        before = seconds
    return tuple((float(seconds), float(value)) for seconds, value in points)


def _is_number(value: object) -> bool:
    """A finite number from 0; yes and no are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float('inf')


def _shown(value: object) -> str:
    text = 'not given' if value is None else repr(value)
    return text if len(text) <= 100 else f'{text[:100]}...'


def _refusal(file: Path, name: str, who: str, value: object, allowed: str) -> RecordingError:
    return RecordingError(f'{file}: {name} of {who} is {_shown(value)}; allowed: {allowed}')


def _check_names(file: Path, who: str, values: dict, allowed: tuple[str, ...]) -> None:
    for name in values:
        if name not in allowed:
            raise RecordingError(f'{file}: {who} has {name!r}; allowed: {", ".join(allowed)}')
