"""The folder of a run, from its first verdict on: one run at a time writes there, always with one model."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from densereward_ros.recordings.base import RecordingError

JOURNALS, LOCK, ACCOUNT = 'journal', 'lock', 'run.json'
# Of a model, what is known only when it is open.
MODEL_FACTS = ('model', 'model_files', 'model_revision', 'runs_on')


class RunFolder:
    """OUT of `densereward score`, held until closed. A kill leaves nothing that a later run minds.

    folder: absolute. facts: of the model that scored what is there; {} before the first one was opened.
    """

    def __init__(self, folder: Path, asked: dict[str, Any]) -> None:
        """Make the folder or go on in it.

        asked: what decides which verdicts there are, as JSON knows it; a folder that was begun with other
        values is refused. Raises RecordingError.
        """
        self.folder = folder.absolute()
        self.asked = asked
        _check_place(folder)
        try:
            (folder / JOURNALS).mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / JOURNALS / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise RecordingError(f'{folder}: cannot be written ({error.strerror})') from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            begun = _begun(folder)
            if begun:
                _compare(folder, _without_facts(begun), asked)
        except BlockingIOError:
            self.close()
            raise RecordingError(
                f'{folder}: another run is writing there; allowed is one at a time') from None
        except BaseException:
            self.close()
            raise

    @property
    def facts(self) -> dict[str, Any]:
        """Of the model, as far as is known. Raises RecordingError."""
        begun = _begun(self.folder)
        return {name: begun[name] for name in MODEL_FACTS if name in begun}

    def close(self) -> None:
        """Let others in."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def journal_file(folder: Path, name: str) -> Path:
    """Where the journal of an episode is."""
    return folder / JOURNALS / f'{name}.jsonl'


def begin(folder: Path, asked: dict[str, Any], facts: dict[str, Any]) -> None:
    """A model is open, with these facts about it, and is going to score.

    Every process of a run calls it, and the first one's facts are those of the run. asked: as of RunFolder.
    Raises RecordingError where another model began, or where the file cannot be written.
    """
    file = folder / JOURNALS / ACCOUNT
    part = file.with_name(f'.{ACCOUNT}.part')
    text = json.dumps({**asked, **facts}, indent=2, ensure_ascii=False) + '\n'
    try:
        with file.with_name(f'{ACCOUNT}.lock').open('w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            begun = _begun(folder)
            if begun:
                _compare(folder, begun, json.loads(text))
            else:
                part.write_text(text, encoding='utf-8')
                os.replace(part, file)
    except OSError as error:
        raise RecordingError(f'{file}: cannot be written ({error.strerror})') from None


def _begun(folder: Path) -> dict[str, Any]:
    """What a run has written about itself; {} before its model was open."""
    file = folder / JOURNALS / ACCOUNT
    try:
        return json.loads(file.read_text(encoding='utf-8'))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise RecordingError(f'{file}: cannot be read ({error})') from None


def _without_facts(begun: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in begun.items() if name not in MODEL_FACTS}


def _compare(folder: Path, begun: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise RecordingError for the first value that differs; a mapping is compared part by part."""
    for name in dict.fromkeys([*begun, *now]):
        before, value = begun.get(name), now.get(name)
        if isinstance(before, list) and isinstance(value, list):
            before, value = (
                {f'{name} number {number}': one for number, one in enumerate(ones, 1)}
                for ones in (before, value))
        if isinstance(before, dict) and isinstance(value, dict):
            _compare(folder, before, value)
        elif before != value:
            raise RecordingError(
                f'{folder}: {name} is {_shown(value)}, and what is there was scored with {_shown(before)}; '
                'allowed: the same, or another folder')


def _check_place(folder: Path) -> None:
    try:
        if folder.is_dir():
            if any(folder.iterdir()) and not (folder / JOURNALS / LOCK).exists():
                raise RecordingError(
                    f'{folder}: holds other things than scores; allowed is a new or empty folder, or one '
                    'that `densereward score` began')
        elif folder.exists():
            raise RecordingError(f'{folder}: is a file; allowed is a folder')
    except OSError as error:
        raise RecordingError(f'{folder}: cannot be read ({error.strerror})') from None


def _shown(value: Any) -> str:
    text = 'not given' if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f'{text[:200]}...'
