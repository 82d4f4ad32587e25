"""What every recording format gives: images in time order. A new one is a file and a line here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Iterator, Protocol

if TYPE_CHECKING:
    import numpy as np


class RecordingError(ValueError):
    """A recording that cannot be used; the text names it, what was seen and what is allowed."""


class Recording(Protocol):
    """Images of one camera that can be read as often as needed, always from the start.

    name: what to call it in a message to the user.
    rate: its own frames per second, on average; greater than 0.
    """

    name: str
    rate: float

    def frames(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield (seconds since the first frame, uint8 image of shape (height, width, 3), RGB).

        The seconds start at 0 and never decrease. Raises RecordingError at the first frame
        that cannot be read.
        """


def open_recording(source: str | Path, rate: float = 0.0) -> Recording:
    """Open a video file or a folder of images, and check that its first frame can be read.

    rate: frames per second in place of the recording's own times; 0 keeps those. A folder
    of images has none, so it needs a rate. Raises RecordingError.
    """
    path = Path(source)
    if not str(source):
        raise RecordingError('no source given: allowed are a video file and a folder of images')
    if not path.exists():
        raise RecordingError(
            f'{path}: no such file or folder; allowed are a video file and a folder of images')
    if path.is_dir():
        from densereward_ros.recordings.images import ImageFolder

        return ImageFolder(path, rate)
    from densereward_ros.recordings.video import Video

    return Video(path, rate)
