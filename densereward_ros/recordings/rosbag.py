"""Bags of ROS 2, in MCAP and in SQLite, read with the rosbags library; no ROS is needed."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Sequence

from densereward_ros.frames.messages import (
    compressed_picture,
    frame_of,
    raw_picture,
    shows_colours,
    stamp_ns,
)
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.episode import Episode
from densereward_ros.recordings.names import path_name, unique_names
from densereward_ros.text import one_line
from densereward_ros.types import Frame

# Their definitions are the same in every release of ROS 2, so what else a bag holds need not be known.
PICTURE_OF = {
    'sensor_msgs/msg/Image': raw_picture, 'sensor_msgs/msg/CompressedImage': compressed_picture}
SUFFIXES = ('.mcap', '.db3')
METADATA = 'metadata.yaml'
ALLOWED = 'allowed is a bag of ROS 2: its folder, or one .mcap or .db3 file'


def is_bag(path: Path) -> bool:
    """True for what is meant to be a bag: the folder of one, or one of its files."""
    if path.is_dir():
        return (path / METADATA).exists() or bool(_loose_files(path))
    return path.suffix in (*SUFFIXES, '.bag') or path.name.endswith(tuple(f'{end}.zstd' for end in SUFFIXES))


def bag_episodes(path: Path, source: str, task: str, topics: Sequence[str] = ()) -> list[Episode]:
    """One episode for each topic of colour images, in the order of their names.

    topics: only these, in this order. The first image of each topic is read, to tell depth from colours.
    Raises RecordingError.
    """
    _check_kind(path)
    with _reader(path) as reader:
        counts = _image_topics(reader)
        if not counts:
            raise RecordingError(
                f'{path}: no topic of images; allowed are {" and ".join(PICTURE_OF)}, seen: '
                f'{_listed({connection.msgtype for connection in reader.connections})}')
        for topic in topics:
            if topic not in counts:
                raise RecordingError(
                    f'{path}: {topic} is no topic of images in it; allowed: {_listed(counts)}')
        why_not = {topic: _unusable(path, reader, topic) for topic in topics or counts}
    names = dict(zip(sorted(counts), unique_names(path_name(_stem(path), topic) for topic in sorted(counts))))
    unusable = [f'{topic} {why}' for topic, why in why_not.items() if why]
    if unusable and (topics or len(unusable) == len(why_not)):
        raise RecordingError(f'{path}: no colour images: {", ".join(unusable)}')
    return [
        Episode(
            names[topic], source, topic, task, functools.partial(_frames, path, topic), counts[topic])
        for topic in topics or sorted(counts) if not why_not[topic]]


def _frames(path: Path, topic: str) -> Iterator[Frame]:
    """In the order of the bag. A stamp of zero is replaced by the log time, which is the time of arrival."""
    with _reader(path) as reader:
        for kind, log_ns, message in _messages(path, reader, topic):
            yield frame_of(message, log_ns, stamp_ns(message.header.stamp) or log_ns, PICTURE_OF[kind])


def _messages(path: Path, reader: Any, topic: str) -> Iterator[tuple[str, int, Any]]:
    """Yield (type, log time in nanoseconds, message)."""
    connections = [
        connection for connection in reader.connections
        if connection.topic == topic and connection.msgtype in PICTURE_OF]
    stored, count = reader.messages(connections), 0
    while True:
        try:
            item = next(stored, None)
            if item is None:
                return
            connection, log_ns, data = item
            message = _types().deserialize_cdr(data, connection.msgtype)
        except Exception as error:  # of many kinds, as what is damaged may be anything
            raise RecordingError(
                f'{path}: {topic} is damaged after message {count} ({_cause(error)})') from error
        count += 1
        yield connection.msgtype, log_ns, message


def _image_topics(reader: Any) -> dict[str, int]:
    """How many images each topic of images holds."""
    counts: dict[str, int] = {}
    for connection in reader.connections:
        if connection.msgtype in PICTURE_OF:
            counts[connection.topic] = counts.get(connection.topic, 0) + connection.msgcount
    return counts


def _unusable(path: Path, reader: Any, topic: str) -> str:
    """Why a topic gives no episode; '' where it does."""
    for _, _, message in _messages(path, reader, topic):
        return '' if shows_colours(message) else 'is depth or other measurements'
    return 'holds no message'


def _check_kind(path: Path) -> None:
    if path.suffix == '.bag':
        raise RecordingError(
            f'{path}: a bag of ROS 1; {ALLOWED} (rosbags-convert --src {path.name} --dst NAME makes one)')
    if path.suffix == '.zstd':
        raise RecordingError(f'{path}: a compressed file of a bag; allowed is the folder of the bag')
    if path.is_dir() and not (path / METADATA).exists():
        files = one_line(', '.join(file.name for file in _loose_files(path)), 100)
        raise RecordingError(
            f'{path}: a bag without its {METADATA}; allowed are its files one by one ({files}), or the '
            f'folder after `ros2 bag reindex`')


@contextmanager
def _reader(path: Path) -> Iterator[Any]:
    try:
        from rosbags.rosbag2 import Reader
    except ImportError as error:
        raise RecordingError(
            f'a bag needs the Python package rosbags ({error}): pip install rosbags') from error
    try:
        reader = Reader(path)
        reader.open()
    except Exception as error:  # of many kinds, as what is damaged may be anything
        raise RecordingError(f'{path}: not a bag that can be read ({_cause(error)}); {ALLOWED}') from error
    try:
        yield reader
    finally:
        reader.close()


@functools.cache
def _types() -> Any:
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.LATEST)


def _loose_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES)


def _stem(path: Path) -> str:
    path = path.resolve()
    return path.name if path.is_dir() else path.stem


def _listed(names: Any) -> str:
    return ', '.join(sorted(names)) or 'none'


def _cause(error: Exception) -> str:
    return one_line(str(error), 200) or type(error).__name__
