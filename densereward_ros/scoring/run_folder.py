"""The folder of a run, from its first verdict on: one run at a time writes there, always with one model."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from densereward_ros.recordings.base import RecordingError

JOURNALS = 'journal'
# Of a model, what is known only when it is open.
MODEL_FACTS = ('model', 'model_files', 'model_revision', 'runs_on')


class RunFolder:
    """OUT of `densereward score`, held until closed. A kill leaves nothing that a later run minds.

    facts: of the model that scored what is there; {} before the first one was opened.
    """

    def __init__(self, folder: Path, asked: dict[str, Any]) -> None:
        """Make the folder or go on in it.

        asked: what decides which verdicts there are, as JSON knows it; a folder that was begun with other
        values is refused. Raises RecordingError.
        """
        self.folder = folder
        self._asked = asked
        self._file = folder / JOURNALS / 'run.json'
        _check_place(folder)
        try:
            (folder / JOURNALS).mkdir(parents=True, exist_ok=True)
            self._lock = os.open(
                folder / JOURNALS / 'lock', os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise RecordingError(f'{folder}: cannot be written ({error.strerror})') from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            begun = self._begun()
            self.facts = {name: begun[name] for name in MODEL_FACTS if name in begun}
            if begun:
                self._compare({name: begun[name] for name in begun if name not in MODEL_FACTS}, asked)
        except BlockingIOError:
            self.close()
            raise RecordingError(
                f'{folder}: another run is writing there; allowed is one at a time') from None
        except BaseException:
            self.close()
            raise

    def journal(self, name: str) -> Path:
        """Where the journal of an episode is."""
        return self.folder / JOURNALS / f'{name}.jsonl'

    def begin(self, facts: dict[str, Any]) -> None:
        """The model is open, with these facts about it. Raises RecordingError where another one began."""
        if self.facts:
            self._compare(self.facts, facts)
        self.facts = facts
        text = json.dumps({**self._asked, **facts}, indent=2, ensure_ascii=False) + '\n'
        part = self._file.with_name('.run.json.part')
        try:
            part.write_text(text, encoding='utf-8')
            os.replace(part, self._file)
        except OSError as error:
            raise RecordingError(f'{self._file}: cannot be written ({error.strerror})') from None

    def close(self) -> None:
        """Let others in."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begun(self) -> dict[str, Any]:
        try:
            return json.loads(self._file.read_text(encoding='utf-8'))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise RecordingError(f'{self._file}: cannot be read ({error})') from None

    def _compare(self, begun: dict[str, Any], now: dict[str, Any]) -> None:
        """Raise RecordingError for the first value that differs; a mapping is compared part by part."""
        for name in dict.fromkeys([*begun, *now]):
            before, value = begun.get(name), now.get(name)
            if isinstance(before, list) and isinstance(value, list):
                before, value = (
                    {f'{name} number {number}': one for number, one in enumerate(ones, 1)}
                    for ones in (before, value))
            if isinstance(before, dict) and isinstance(value, dict):
                self._compare(before, value)
            elif before != value:
                raise RecordingError(
                    f'{self.folder}: {name} is {_shown(value)}, and what is there was scored with '
                    f'{_shown(before)}; allowed: the same, or another folder')


def _check_place(folder: Path) -> None:
    try:
        if folder.is_dir():
            if any(folder.iterdir()) and not (folder / JOURNALS / 'lock').exists():
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
