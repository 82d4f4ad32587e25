"""Opening a recording, whatever its format. A new format is a file of its own and a line here."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, Sequence

from densereward_ros.recordings.base import Recording, RecordingError
from densereward_ros.recordings.episode import Episode
from densereward_ros.recordings.images import ImageFolder
from densereward_ros.recordings.lerobot import lerobot_episodes
from densereward_ros.recordings.lerobot_layout import is_dataset
from densereward_ros.recordings.names import path_name
from densereward_ros.recordings.rosbag import bag_episodes, is_bag
from densereward_ros.recordings.video import Video
from densereward_ros.types import Frame

NS_PER_S = 1_000_000_000


def open_recording(source: str | Path, rate: float = 0.0) -> Recording:
    """Open a video file or a folder of images, and check that its first frame can be read.

    rate: frames per second in place of the recording's own times; 0 keeps those. A folder
    of images has none, so it needs a rate. Raises RecordingError.
    """
    path = _existing(source, 'a video file and a folder of images')
    if path.is_dir():
        return ImageFolder(path, rate)
    return Video(path, rate)


def open_episodes(
    source: str | Path, task: str = '', rate: float = 0.0, topics: Sequence[str] = ()
) -> list[Episode]:
    """Open a recording and check what can be checked without reading it all; gives at least one episode.

    One for a video file or a folder of images, one for each camera of a bag, one for each episode and camera
    of a LeRobot dataset; always the same ones in the same order, with different names.

    task: what the robot is to do, needed by all but a LeRobot dataset, whose own tasks it replaces. rate:
    of videos and folders of images, as for open_recording. topics: of bags, and the columns of LeRobot
    datasets: only these cameras; empty means all in colour. Raises RecordingError.
    """
    path = _existing(source, 'a video file, a folder of images, a bag and a LeRobot dataset')
    task, topics = task.strip(), tuple(dict.fromkeys(topics))
    if is_dataset(path):
        return lerobot_episodes(path, str(source), task, topics)
    if not task:
        raise RecordingError(
            f'{path}: no task is given; allowed is one line of text, what the robot is to do')
    if is_bag(path):
        return bag_episodes(path, str(source), task, topics)
    recording = open_recording(path, rate)
    count = len(recording.files) if isinstance(recording, ImageFolder) else recording.stated_frames or None
    whole = path.resolve()
    name = path_name(whole.name if path.is_dir() else whole.stem)
    return [Episode(name, str(source), '', task, lambda: _frames(recording), count)]


def _frames(recording: Recording) -> Iterator[Frame]:
    """Stamps count from the first frame, and a frame arrives at its stamp."""
    for seconds, image in recording.frames():
        now_ns = round(seconds * NS_PER_S)
        yield Frame(now_ns, now_ns, lambda image=image: image)


def _existing(source: str | Path, allowed: str) -> Path:
    path = Path(source)
    if not str(source):
        raise RecordingError(f'no source given: allowed are {allowed}')
    if not path.exists():
        raise RecordingError(f'{path}: no such file or folder; allowed are {allowed}')
    return path
