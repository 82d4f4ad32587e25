"""Bags and LeRobot datasets that the tests make themselves, of any pictures."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any, Iterable, Sequence

import av
import numpy as np
import pandas
import pyarrow
from PIL import Image
from pyarrow import parquet
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

NS_PER_S = 1_000_000_000
START_NS = 1_700_000_000 * NS_PER_S
TOPIC = '/camera/image_raw'
CAMERA = 'observation.images.front'
TYPES = get_typestore(Stores.LATEST)
STORAGES = {'mcap': StoragePlugin.MCAP, 'sqlite3': StoragePlugin.SQLITE3}
RAW, COMPRESSED = 'sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage'


def file_bytes(image: np.ndarray, kind: str) -> bytes:
    """A picture as the bytes of a JPEG or PNG file. kind: 'jpeg', 'png'."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, kind.upper(), **({'quality': 95} if kind == 'jpeg' else {}))
    return file.getvalue()


def header(stamp_ns: int, frame_id: str = 'camera_optical') -> Any:
    """A std_msgs/Header, of rosbags."""
    sec, nanosec = divmod(stamp_ns, NS_PER_S)
    time = TYPES.types['builtin_interfaces/msg/Time'](sec=sec, nanosec=nanosec)
    return TYPES.types['std_msgs/msg/Header'](stamp=time, frame_id=frame_id)


def image_message(image: np.ndarray, stamp_ns: int, compressed: str = '', **fields: Any) -> Any:
    """An Image (rgb8, or grey of one or two bytes), or with compressed='jpeg' or 'png' a CompressedImage.

    fields: replace those of the message.
    """
    if compressed:
        values = {'format': f'rgb8; {compressed} compressed bgr8',
                  'data': np.frombuffer(file_bytes(image, compressed), np.uint8)}
        kind = COMPRESSED
    else:
        encoding = 'rgb8' if image.ndim == 3 else {1: 'mono8', 2: '16UC1'}[image.itemsize]
        values = {'height': image.shape[0], 'width': image.shape[1], 'encoding': encoding, 'is_bigendian': 0,
                  'step': image.nbytes // image.shape[0], 'data': np.frombuffer(image.tobytes(), np.uint8)}
        kind = RAW
    return TYPES.types[kind](header=header(stamp_ns), **{**values, **fields})


def write_bag(
    path: Path, messages: Iterable[tuple[str, int, Any]], storage: str = 'mcap', zstd: str = '',
    topics: Sequence[tuple[str, str]] = (),
) -> Path:
    """A folder with a bag. messages: (topic, log time in nanoseconds, message or bytes of an Image).

    storage: 'mcap' or 'sqlite3'. zstd: '', 'file', 'message' or, for MCAP, 'storage': what is compressed.
    topics: (topic, type) of those that may be without a message.
    """
    writer = Writer(path, version=9, storage_plugin=STORAGES[storage])
    if zstd:
        writer.set_compression(CompressionMode[zstd.upper()], CompressionFormat.ZSTD)
    with writer:
        connections = {}
        for topic, kind in topics:
            connections[topic] = writer.add_connection(topic, kind, typestore=TYPES)
        for topic, log_ns, message in messages:
            kind = RAW if isinstance(message, bytes) else message.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=TYPES)
            data = message if isinstance(message, bytes) else TYPES.serialize_cdr(message, kind)
            writer.write(connections[topic], log_ns, data)
    return path


def make_bag(
    path: Path, frames: Iterable[np.ndarray] | dict[str, Iterable[np.ndarray]], *, compressed: str = '',
    storage: str = 'mcap', topic: str = TOPIC, rate: float = 10.0, start_ns: int = START_NS,
    delay_ns: int = 5_000_000, stamps: Sequence[int] | None = None, zstd: str = '',
) -> Path:
    """A folder with a bag of a camera's pictures, or of several cameras' by topic.

    compressed: '' for Image, 'jpeg' or 'png' for CompressedImage. rate: frames a second. start_ns: the first
    stamp; an image is logged `delay_ns` after it. stamps: nanoseconds that replace those of the messages.
    storage, zstd: as for write_bag.
    """
    cameras = frames if isinstance(frames, dict) else {topic: frames}

    def messages():
        for name, images in cameras.items():
            for index, image in enumerate(images):
                ns = start_ns + round(index / rate * NS_PER_S)
                stamp_ns = ns if stamps is None else stamps[index]
                yield name, ns + delay_ns, image_message(image, stamp_ns, compressed)

    ordered = messages() if len(cameras) == 1 else sorted(messages(), key=lambda message: message[1])
    kind = COMPRESSED if compressed else RAW
    return write_bag(path, ordered, storage, zstd, [(name, kind) for name in cameras])


def make_lerobot(
    path: Path, episodes: Sequence[Sequence[np.ndarray]], *, version: str = '3.0', images: bool = False,
    cameras: Sequence[str] = (CAMERA,), tasks: Sequence[str] = ('stack the cup',), fps: int = 10,
    success: Sequence[bool] | None = None,
) -> Path:
    """A LeRobot dataset of version '2.0', '2.1' or '3.0', as the lerobot package lays it out.

    episodes: the pictures of each. Every camera but the first sees them upside down. images: columns of
    images instead of videos. tasks: used in turns. success: of each episode; its last row then says so in
    next.success.
    """
    made = _LeRobot(path, images, list(cameras), list(tasks), fps, success)
    (path / 'meta').mkdir(parents=True)
    write = made.write_3 if version == '3.0' else made.write_2
    write([list(frames) for frames in episodes], version)
    return path


class _LeRobot:
    def __init__(self, path, images, cameras, tasks, fps, success):
        self.path, self.images, self.cameras, self.tasks, self.fps = path, images, cameras, tasks, fps
        self.success = success

    def write_2(self, episodes, version):
        lines, start = [], 0
        for index, frames in enumerate(episodes):
            name = f'episode_{index:06d}'
            self.write_rows(self.path / 'data/chunk-000' / f'{name}.parquet', [(index, start, frames)])
            if not self.images:
                for camera in self.cameras:
                    self.write_video(self.path / 'videos/chunk-000' / camera / f'{name}.mp4', camera, frames)
            lines.append({'episode_index': index, 'tasks': [self.task(index)], 'length': len(frames)})
            start += len(frames)
        self.write_lines('episodes.jsonl', lines)
        self.write_lines(
            'tasks.jsonl', [{'task_index': i, 'task': task} for i, task in enumerate(self.tasks)])
        stats = {'timestamp': {what: [0.0] for what in ('min', 'max', 'mean', 'std')} | {'count': [1]}}
        if version == '2.1':
            self.write_lines('episodes_stats.jsonl', [
                {'episode_index': i, 'stats': stats} for i in range(len(episodes))])
        else:
            (self.path / 'meta/stats.json').write_text(json.dumps(stats))
        self.write_info(
            version, episodes, 'data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet',
            'videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4',
            {'total_chunks': 1, 'total_videos': len(episodes) * len(self.cameras)})

    def write_3(self, episodes, version):
        rows, parts, start = [], [], 0
        for index, frames in enumerate(episodes):
            row = {
                'episode_index': index, 'tasks': [self.task(index)], 'length': len(frames),
                'data/chunk_index': 0, 'data/file_index': 0, 'dataset_from_index': start,
                'dataset_to_index': start + len(frames), 'stats/timestamp/min': [0.0]}
            if not self.images:
                for camera in self.cameras:
                    place = f'videos/{camera}'
                    row |= {f'{place}/chunk_index': 0, f'{place}/file_index': 0,
                            f'{place}/from_timestamp': start / self.fps,
                            f'{place}/to_timestamp': (start + len(frames)) / self.fps}
            rows.append(row)
            parts.append((index, start, frames))
            start += len(frames)
        self.write_rows(self.path / 'data/chunk-000/file-000.parquet', parts)
        if not self.images:
            every = [frame for frames in episodes for frame in frames]
            for camera in self.cameras:
                self.write_video(self.path / 'videos' / camera / 'chunk-000/file-000.mp4', camera, every)
        (self.path / 'meta/episodes/chunk-000').mkdir(parents=True)
        parquet.write_table(
            pyarrow.Table.from_pylist(rows), self.path / 'meta/episodes/chunk-000/file-000.parquet')
        tasks = pandas.DataFrame(
            {'task_index': range(len(self.tasks))}, index=pandas.Index(self.tasks, name='task'))
        tasks.to_parquet(self.path / 'meta/tasks.parquet')
        (self.path / 'meta/stats.json').write_text(json.dumps({'timestamp': {'min': [0.0]}}))
        self.write_info(
            version, episodes, 'data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet',
            'videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4',
            {'data_files_size_in_mb': 100, 'video_files_size_in_mb': 200})

    def task(self, index):
        return self.tasks[index % len(self.tasks)]

    def seen_by(self, camera, frame):
        return frame if camera == self.cameras[0] else np.ascontiguousarray(frame[::-1])

    def write_rows(self, file, parts):
        columns: dict[str, list] = {name: [] for name in (
            'observation.state', 'timestamp', 'frame_index', 'episode_index', 'index', 'task_index')}
        for index, start, frames in parts:
            count = len(frames)
            columns['observation.state'] += [[float(start + i), -1.0] for i in range(count)]
            columns['timestamp'] += [i / self.fps for i in range(count)]
            columns['frame_index'] += list(range(count))
            columns['episode_index'] += [index] * count
            columns['index'] += list(range(start, start + count))
            columns['task_index'] += [index % len(self.tasks)] * count
            if self.success is not None:
                done = columns.setdefault('next.success', [])
                done += [False] * (count - 1) + [bool(self.success[index])] if count else []
            if self.images:
                for camera in self.cameras:
                    columns.setdefault(camera, []).extend(
                        {'bytes': file_bytes(self.seen_by(camera, frame), 'png'),
                         'path': f'frame_{i:06d}.png'} for i, frame in enumerate(frames))
        types = {
            'observation.state': pyarrow.list_(pyarrow.float32(), 2), 'timestamp': pyarrow.float32(),
            'next.success': pyarrow.bool_(), **dict.fromkeys(self.cameras, pyarrow.struct(
                [('bytes', pyarrow.binary()), ('path', pyarrow.string())]))}
        schema = pyarrow.schema([(name, types.get(name, pyarrow.int64())) for name in columns])
        listed = {name: {'dtype': 'int64', '_type': 'Value'} for name in columns}
        listed |= {name: {'dtype': kind, '_type': 'Value'} for name, kind in (
            ('timestamp', 'float32'), ('next.success', 'bool')) if name in columns}
        listed['observation.state'] = {
            'feature': {'dtype': 'float32', '_type': 'Value'}, 'length': 2, '_type': 'Sequence'}
        listed |= {name: {'_type': 'Image'} for name in self.cameras if name in columns}
        schema = schema.with_metadata({'huggingface': json.dumps({'info': {'features': listed}})})
        file.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.table(columns, schema=schema), file)

    def write_video(self, file, camera, frames):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_video(file, [self.seen_by(camera, frame) for frame in frames], self.fps)

    def write_lines(self, name, lines):
        (self.path / 'meta' / name).write_text(''.join(json.dumps(line) + '\n' for line in lines))

    def write_info(self, version, episodes, data_path, video_path, more):
        def feature(kind, *shape):
            return {'dtype': kind, 'shape': list(shape), 'names': None}

        shape = next(frame.shape for frames in episodes for frame in frames)
        features = {
            **{camera: feature('image' if self.images else 'video', *shape) for camera in self.cameras},
            'observation.state': feature('float32', 2), 'timestamp': feature('float32', 1)}
        if self.success is not None:
            features['next.success'] = feature('bool', 1)
        for name in ('frame_index', 'episode_index', 'index', 'task_index'):
            features[name] = feature('int64', 1)
        (self.path / 'meta/info.json').write_text(json.dumps({
            'codebase_version': f'v{version}', 'robot_type': 'arm', 'fps': self.fps, 'features': features,
            'total_episodes': len(episodes), 'total_frames': sum(map(len, episodes)),
            'total_tasks': len(self.tasks), 'chunks_size': 1000, 'splits': {'train': f'0:{len(episodes)}'},
            'data_path': data_path, 'video_path': None if self.images else video_path, **more}, indent=4))


def write_video(file: Path, frames: Sequence[np.ndarray], rate: int) -> Path:
    """A video of pictures of one size, its width and height even."""
    with av.open(str(file), 'w') as container:
        stream = container.add_stream('mpeg4', rate=rate)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt, stream.bit_rate = 'yuv420p', 4_000_000
        stream.codec_context.time_base = Fraction(1, rate)
        for index, image in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format='rgb24')
            frame.pts, frame.time_base = index, Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file
