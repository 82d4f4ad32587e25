"""Video files, read with PyAV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterator, Sequence

from densereward_ros.frames.encodings import check_size
from densereward_ros.recordings.base import RecordingError
from densereward_ros.text import one_line
from densereward_ros.types import ImageError

if TYPE_CHECKING:
    import numpy as np

ALLOWED = 'allowed is a video file that FFmpeg reads, such as .mp4, .mkv, .webm or .avi'


class Video:
    """The first video stream of a file; a Recording."""

    def __init__(self, path: str | Path, rate: float = 0.0) -> None:
        """Open the file and decode its first frame, so that a bad file is refused at once.

        rate: frames per second in place of the file's own time stamps; 0 keeps those.
        Raises RecordingError.
        """
        self.path = Path(path)
        self.name = self.path.name
        self._interval = 1.0 / rate if rate > 0 else None
        self._av = _import_av()
        with self._open() as container:
            stream = container.streams.video[0]
            own_rate = float(stream.average_rate or stream.guessed_rate or 0)
            self.stated_frames = stream.frames  # as the file says; 0 where it does not
            self._check_moving(container)
        self.rate = rate if rate > 0 else own_rate
        if not self.rate > 0:
            raise RecordingError(f'{self.path}: the file states no frame rate; give a rate above 0')
        next(self.frames())

    def frames(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield (seconds since the first frame, uint8 RGB image of shape (height, width, 3)).

        Raises RecordingError.
        """
        first, newest, count = None, 0.0, 0
        with self._open() as container:
            stream = container.streams.video[0]
            stream.thread_type = 'AUTO'
            try:
                for frame in container.decode(stream):
                    if self._interval is not None:
                        seconds = count * self._interval
                    elif frame.time is None:
                        seconds = count / self.rate
                    else:
                        first = frame.time if first is None else first
                        seconds = max(newest, frame.time - first)
                    yield seconds, _upright(frame)
                    newest, count = seconds, count + 1
            except self._av.FFmpegError as error:
                raise RecordingError(
                    f'{self.path}: damaged after frame {count} ({_cause(error)}); {ALLOWED}'
                ) from error
        if count == 0:
            raise RecordingError(f'{self.path}: holds no frame that can be read; {ALLOWED}')

    def _open(self):
        if self.path.stat().st_size == 0:
            raise RecordingError(f'{self.path}: the file is empty; {ALLOWED}')
        try:
            container = _import_av().open(str(self.path))
        except (self._av.FFmpegError, OSError) as error:
            raise RecordingError(f'{self.path}: not a video ({_cause(error)}); {ALLOWED}') from error
        if not container.streams.video:
            container.close()
            raise RecordingError(f'{self.path}: holds no video stream; {ALLOWED}')
        return container

    def _check_moving(self, container) -> None:
        # FFmpeg also opens text files (as ANSI art) and single pictures, and calls them videos.
        if container.format.name in ('tty', 'srt', 'ass') or container.format.name.endswith('_pipe'):
            raise RecordingError(
                f'{self.path}: not a video (FFmpeg reads it as {container.format.name}); {ALLOWED}')


def decoded_at(
    file: Path, times: Sequence[float], tolerance: float
) -> Iterator[Callable[[], np.ndarray]]:
    """For each of the times, the frame nearest to it: a function that gives it, as Frame.decode.

    times: seconds in the file's own time, increasing. tolerance: seconds that a frame may lie away. Raises
    RecordingError where there is none so near, and where the file ends too early.
    """
    av = _import_av()
    count, before = 0, None
    try:
        with av.open(str(file)) as container:
            stream = container.streams.video[0]
            stream.thread_type = 'AUTO'
            if times and times[0] > tolerance:
                container.seek(int((times[0] - tolerance) / stream.time_base), stream=stream)
            for frame in container.decode(stream):
                if count == len(times):
                    break
                if frame.time is None:
                    continue
                # Once a frame is no nearer than the one before it, none will be.
                while before is not None and count < len(times) and (
                        abs(before.time - times[count]) <= abs(frame.time - times[count])):
                    yield _picture_at(file, before, times[count], tolerance)
                    count += 1
                before = frame
            while before is not None and count < len(times) and before.time >= times[count] - tolerance:
                yield _picture_at(file, before, times[count], tolerance)
                count += 1
    except (av.FFmpegError, OSError, IndexError) as error:
        raise RecordingError(
            f'{file}: damaged after frame {count} of {len(times)} ({_cause(error)}); {ALLOWED}') from error
    if count < len(times):
        raise RecordingError(f'{file}: ends after frame {count} of {len(times)}, at {times[count]:.3f} s')


def _picture_at(file: Path, frame, time: float, tolerance: float) -> Callable[[], np.ndarray]:
    if abs(frame.time - time) > tolerance:
        raise RecordingError(
            f'{file}: no frame at {time:.3f} s, the nearest is at {frame.time:.3f} s; allowed: at most '
            f'{tolerance:.3f} s away')

    def decode() -> np.ndarray:
        check_size(frame.height, frame.width)
        try:
            return _upright(frame)
        except Exception as error:  # FFmpeg's own, MemoryError and more
            raise ImageError(
                f'the frame at {time:.3f} s cannot be used: {one_line(str(error), 200)}') from None

    return decode


def _import_av():
    try:
        import av
    except ImportError as error:
        raise RecordingError(f'a video needs the Python package av ({error}): pip install av') from error
    # torchvision sets a level. FFmpeg's threads then wait for the interpreter whenever they have anything to
    # log, and whoever closes a file holds it while he waits for them.
    av.logging.set_level(None)
    return av


def _cause(error: Exception) -> str:
    return getattr(error, 'strerror', None) or str(error)


def _upright(frame) -> np.ndarray:
    import numpy as np

    image = frame.to_ndarray(format='rgb24')
    # Telephones store the picture as the sensor saw it, and how to turn it beside it.
    quarter_turns = round(getattr(frame, 'rotation', 0) / 90) % 4
    return np.ascontiguousarray(np.rot90(image, quarter_turns)) if quarter_turns else image
