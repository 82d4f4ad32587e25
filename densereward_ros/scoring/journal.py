"""What the model said of one episode so far, in a file that a cut leaves whole."""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Sequence

from densereward_ros.recordings.base import RecordingError
from densereward_ros.results.rows import ScoredFrame
from densereward_ros.types import Reason

SYNC_S = 1.0  # a power cut loses no more than this


@dataclass
class Recorded:
    """What a journal holds.

    head: what the episode is. frames: scored so far, without targets. bounded: of all verdicts. seconds: that
    the model took. undecodable: images that could not be decoded; known when complete. failed: why the
    episode cannot be scored, '' where it can. size: bytes of the lines that are whole.
    """

    head: dict[str, Any] | None = None
    frames: list[ScoredFrame] = field(default_factory=list)
    bounded: bool = True
    seconds: float = 0.0
    undecodable: int = 0
    complete: bool = False
    failed: str = ''
    size: int = 0


def read_journal(file: Path) -> Recorded:
    """Read a journal; a last line that is torn counts as never written, and so does a file that is not there.

    Raises RecordingError for any other line that cannot be read.
    """
    recorded = Recorded()
    try:
        lines = file.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return recorded
    except OSError as error:
        raise RecordingError(f'{file}: cannot be read ({error.strerror})') from None
    for number, line in enumerate(lines, 1):
        try:
            if not line.endswith(b'\n'):
                raise ValueError('no end of line')
            _take(recorded, json.loads(line))
        except (ValueError, TypeError, KeyError) as error:
            if number == len(lines):
                break
            raise RecordingError(
                f'{file}: line {number} is damaged ({type(error).__name__}); remove the file to score that '
                'episode anew') from None
        recorded.size += len(line)
    return recorded


class Journal:
    """The journal of one episode, open for what comes next; one process at a time has it.

    Each batch is one line, written at once and kept whole: it is there or it is not.
    """

    def __init__(self, file: Path, head: dict[str, Any], patience_s: float = 0.0) -> None:
        """Go on where the file ends, or begin it: if it is of another episode, or of one that failed.

        patience_s: for how long to wait for a process that has it. Raises RecordingError.
        """
        self._file = file
        self._synced = time.monotonic()
        try:
            self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            try:
                self._lock(patience_s)
                self.recorded = read_journal(file)
                if self.recorded.failed or self.recorded.head not in (None, head):
                    self.recorded = Recorded()
                os.ftruncate(self._descriptor, self.recorded.size)
            except BaseException:
                os.close(self._descriptor)
                raise
        except BlockingIOError:
            raise RecordingError(f'{file}: another process is scoring that episode') from None
        except OSError as error:
            raise RecordingError(f'{file}: cannot be written ({error.strerror})') from None
        if self.recorded.head is None:
            self._write({'head': head})

    def add(self, frames: Sequence[ScoredFrame], bounded: bool, seconds: float) -> None:
        """A batch was scored. seconds: that the model took for it. Raises RecordingError."""
        self._write({'seconds': seconds, 'bounded': bounded, 'frames': [_packed(frame) for frame in frames]})

    def complete(self, undecodable: int) -> None:
        """The episode has no more windows. Raises RecordingError."""
        self._write({'complete': True, 'undecodable': undecodable})

    def fail(self, why: str) -> None:
        """The episode cannot be scored. Raises RecordingError."""
        self._write({'failed': why})

    def close(self) -> None:
        """Let others have it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lock(self, patience_s: float) -> None:
        until = time.monotonic() + patience_s
        while True:
            try:
                return fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def _write(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, ensure_ascii=False).encode() + b'\n'
        try:
            left = line
            while left:
                left = left[os.write(self._descriptor, left):]
            if 'frames' not in entry or time.monotonic() - self._synced > SYNC_S:
                os.fsync(self._descriptor)
                self._synced = time.monotonic()
        except OSError as error:
            os.ftruncate(self._descriptor, self.recorded.size)
            raise RecordingError(
                f'{self._file}: cannot be written ({error.strerror}); what was scored before is kept, and '
                'the same command goes on from there') from None
        self.recorded.size += len(line)
        _take(self.recorded, entry)


def _take(recorded: Recorded, entry: dict[str, Any]) -> None:
    """Account for one line. Raises ValueError, TypeError or KeyError for what is none."""
    if 'head' in entry:
        recorded.head = entry['head']
    elif 'frames' in entry:
        recorded.frames += [_unpacked(values) for values in entry['frames']]
        recorded.bounded &= entry['bounded']
        recorded.seconds += entry['seconds']
    elif 'complete' in entry:
        recorded.complete, recorded.undecodable = True, entry['undecodable']
    else:
        recorded.failed = entry['failed']


def _packed(frame: ScoredFrame) -> list[Any]:
    return [
        frame.frame, frame.seconds, frame.segment, frame.window_ns, frame.log_ns, frame.reward,
        int(frame.reason), frame.reason_probabilities, frame.malformed]


def _unpacked(values: list[Any]) -> ScoredFrame:
    index, seconds, segment, window_ns, log_ns, reward, reason, probabilities, malformed = values
    return ScoredFrame(
        frame=index, stamp_ns=window_ns[-1], seconds=seconds, segment=segment, reward=reward,
        reason=Reason(reason), reason_probabilities=probabilities and tuple(probabilities),
        malformed=malformed, log_ns=log_ns, window_ns=tuple(window_ns))
