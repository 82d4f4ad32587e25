"""Opening a recording, whatever its format. A new format is a file of its own and a line here."""

from __future__ import annotations

from pathlib import Path

from densereward_ros.recordings.base import Recording, RecordingError
from densereward_ros.recordings.images import ImageFolder
from densereward_ros.recordings.video import Video


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
        return ImageFolder(path, rate)
    return Video(path, rate)
