"""Scores as MCAP files, which Foxglove, PlotJuggler and `ros2 bag` open beside the recordings."""

from __future__ import annotations

import functools
import math
import os
import sys
import tempfile
from collections import deque
from pathlib import Path
from typing import Any, Iterable, Iterator

from densereward_ros.recordings.base import RecordingError
from densereward_ros.results.rows import ScoredEpisode, ScoredEvent, ScoredFrame
from densereward_ros.share import places
from densereward_ros.types import FRAMES_PER_WINDOW, REASONS

NS_PER_S = 1_000_000_000
REWARD, FAILURE = 'densereward_ros/msg/RewardStamped', 'densereward_ros/msg/FailureEvent'
VALUE = 'std_msgs/msg/Float64'
TOPICS = {'/reward': REWARD, '/reward/value': VALUE, '/failure_event': FAILURE}


def write_mcap(
    episodes: Iterable[ScoredEpisode], folder: Path, model: str = '', bounded: bool = True
) -> None:
    """Write folder/NAME.mcap for each episode, each in one step, over one that is there.

    The topics are the node's, and /reward/value has the reward alone, for tools that plot plain numbers. The
    log time is that of the frame: the bag's, where the recording is one. A frame without a valid reward
    gives no message. inference_time is 0, as recordings are scored many windows at once, and so are the
    frame_stamps that nobody kept; frame_id is empty. Raises RecordingError where rosbags is missing and for
    an event without its frame, and OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for episode in episodes:
        file = folder / f'{episode.name}.mcap'
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix='.mcap', dir=file.parent) as part:
            _write(Path(part) / 'scores', _messages(episode, model, bounded))
            os.replace(Path(part) / 'scores' / 'scores.mcap', file)


def _write(bag: Path, messages: Iterator[tuple[str, int, Any]]) -> None:
    types = _types()
    from rosbags.rosbag2 import StoragePlugin, Writer

    with Writer(bag, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connections = {
            topic: writer.add_connection(topic, kind, typestore=types) for topic, kind in TOPICS.items()}
        for topic, log_ns, message in messages:
            writer.write(connections[topic], log_ns, types.serialize_cdr(message, TOPICS[topic]))


def _messages(episode: ScoredEpisode, model: str, bounded: bool) -> Iterator[tuple[str, int, Any]]:
    """Yield (topic, log time, message); an event comes after the reward that completed it."""
    value = _types().types[VALUE]
    events = deque(enumerate(episode.events, 1))
    for frame in episode.frames:
        log_ns = frame.stamp_ns if frame.log_ns is None else frame.log_ns
        if frame.reward is not None:
            yield '/reward', log_ns, _reward(episode, frame, model, bounded)
            yield '/reward/value', log_ns, value(data=frame.reward)
        while events and events[0][1].stamp_ns == frame.stamp_ns:
            sequence, event = events.popleft()
            yield '/failure_event', log_ns, _failure(episode, event, sequence)
    if events:
        raise RecordingError(
            f'{episode.name}: the event at {events[0][1].stamp_ns} ns is of no frame that was scored')


def _reward(episode: ScoredEpisode, frame: ScoredFrame, model: str, bounded: bool) -> Any:
    import numpy as np

    types = _types().types
    unknown = (0,) * (FRAMES_PER_WINDOW - 1)
    stamps = frame.window_ns or (*unknown, frame.stamp_ns)
    probabilities = frame.reason_probabilities or (math.nan,) * len(REASONS)
    return types[REWARD](
        header=_header(frame.stamp_ns), camera=_camera(episode), task=episode.task, reward=frame.reward,
        bounded=bounded, reason=int(frame.reason),
        reason_probabilities=np.array(probabilities, np.float32),
        frame_stamps=[_time(stamp_ns) for stamp_ns in stamps],
        inference_time=types['builtin_interfaces/msg/Duration'](sec=0, nanosec=0), model=model)


def _failure(episode: ScoredEpisode, event: ScoredEvent, sequence: int) -> Any:
    return _types().types[FAILURE](
        header=_header(event.stamp_ns), cameras=[_camera(episode)], task=episode.task,
        reason=int(event.reason), rule=int(event.rule), reward=event.reward,
        previous_reward=math.nan if event.previous_reward is None else event.previous_reward,
        probability=math.nan if event.probability is None else event.probability,
        confirmations=event.confirmations, sequence=sequence)


def _camera(episode: ScoredEpisode) -> str:
    """A message must name one; a video has no topic."""
    return episode.camera or episode.name


def _header(stamp_ns: int) -> Any:
    return _types().types['std_msgs/msg/Header'](stamp=_time(stamp_ns), frame_id='')


def _time(stamp_ns: int) -> Any:
    sec, nanosec = divmod(stamp_ns, NS_PER_S)
    return _types().types['builtin_interfaces/msg/Time'](sec=sec, nanosec=nanosec)


@functools.cache
def _types() -> Any:
    """The types of ROS 2 and ours, from our own .msg files."""
    try:
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore
    except ImportError as error:
        raise RecordingError(
            f'an MCAP file needs the Python package rosbags ({error}): pip install rosbags') from error
    types = get_typestore(Stores.LATEST)
    for kind in (REWARD, FAILURE):
        text = (definitions() / f'{kind.rsplit("/", 1)[1]}.msg').read_text(encoding='utf-8')
        types.register(get_types_from_msg(text, kind))
    return types


def definitions() -> Path:
    """The folder of our .msg files. Raises RecordingError."""
    candidates = places('msg')
    for folder in candidates:
        if (folder / 'RewardStamped.msg').is_file():
            return folder
    raise RecordingError(
        f'the message definitions are not there (looked in {candidates[0]} and in share/densereward_ros of '
        f'{sys.prefix} and of AMENT_PREFIX_PATH): install the package again')
