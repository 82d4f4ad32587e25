"""Where a LeRobot dataset keeps what, in the layouts of its versions 2.0, 2.1 and 3.0."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from densereward_ros.recordings.base import RecordingError
from densereward_ros.text import one_line

INFO = Path('meta') / 'info.json'
VERSIONS = ('v2.0', 'v2.1', 'v3.0')
ALLOWED = f'allowed is a LeRobot dataset of version {", ".join(VERSIONS)}'
SUCCESS = 'next.success'


@dataclass(frozen=True)
class DatasetEpisode:
    """One episode. length: frames. data: its rows, perhaps among those of others. videos: the file of each
    camera column that has videos, and where in it the episode begins, in seconds.
    """

    index: int
    length: int
    tasks: tuple[str, ...]
    data: Path
    videos: dict[str, tuple[Path, float]]


@dataclass(frozen=True)
class Dataset:
    """What the files under meta/ say. cameras: its columns of colour images, in order. fps: above 0."""

    root: Path
    fps: float
    cameras: tuple[str, ...]
    has_success: bool
    episodes: tuple[DatasetEpisode, ...]


def is_dataset(path: Path) -> bool:
    """True for a folder that is meant to be a LeRobot dataset."""
    return (path / INFO).is_file()


def read_dataset(root: Path) -> Dataset:
    """Read what is under meta/; no data and no video is opened. Raises RecordingError."""
    info = read_info(root)
    try:
        features = info['features']
        cameras = tuple(
            name for name, feature in features.items()
            if feature['dtype'] in ('image', 'video') and not _is_depth(feature))
        videos = [name for name in cameras if features[name]['dtype'] == 'video']
        read = _episodes_of_3 if info['codebase_version'] == 'v3.0' else _episodes_of_2
        dataset = Dataset(
            root, float(info['fps']), cameras, SUCCESS in features, tuple(read(root, info, videos)))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(
            f'{root}: what is under meta/ does not fit together ({type(error).__name__}: '
            f'{one_line(str(error), 200)}); {ALLOWED}') from error
    if not 0.0 < dataset.fps < float('inf'):
        raise RecordingError(f'{root / INFO}: fps is {dataset.fps}; allowed is a number above 0')
    if not dataset.cameras:
        raise RecordingError(f'{root}: no camera among its columns ({", ".join(features)}); {ALLOWED}')
    if not dataset.episodes:
        raise RecordingError(f'{root}: holds no episode; {ALLOWED}')
    return dataset


def read_info(root: Path) -> dict[str, Any]:
    """What meta/info.json says, of a version that is known. Raises RecordingError."""
    try:
        info = json.loads((root / INFO).read_text(encoding='utf-8'))
    except (OSError, ValueError) as error:
        raise RecordingError(
            f'{root / INFO}: cannot be read ({one_line(str(error), 200)}); {ALLOWED}') from None
    version = info.get('codebase_version') if isinstance(info, dict) else None
    if version not in VERSIONS:
        raise RecordingError(f'{root / INFO}: codebase_version is {version!r}; {ALLOWED}')
    return info


def import_parquet() -> Any:
    """The module pyarrow.parquet. Raises RecordingError where there is none."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise RecordingError(
            f'a LeRobot dataset needs the Python package pyarrow ({error}): pip install pyarrow') from error
    return parquet


def unreadable(file: Path, error: Exception) -> RecordingError:
    """The error to raise for a file of parquet that pyarrow could not read."""
    return RecordingError(f'{file}: cannot be read ({one_line(str(error), 200) or type(error).__name__})')


def _is_depth(feature: dict[str, Any]) -> bool:
    """Marked in one of three ways, depending on the version of LeRobot."""
    info, video_info = feature.get('info') or {}, feature.get('video_info') or {}
    marks = (info.get('is_depth_map'), info.get('video.is_depth_map'), video_info.get('video.is_depth_map'))
    return any(marks)


def _episodes_of_2(root: Path, info: dict[str, Any], videos: list[str]) -> list[DatasetEpisode]:
    """A file of rows and one video a camera for each episode."""
    episodes = []
    for entry in _read_lines(root / 'meta' / 'episodes.jsonl'):
        index = int(entry['episode_index'])
        place = {'episode_chunk': index // int(info['chunks_size']), 'episode_index': index}
        episodes.append(DatasetEpisode(
            index, int(entry['length']), tuple(entry['tasks']), root / info['data_path'].format(**place),
            {name: (root / info['video_path'].format(video_key=name, **place), 0.0) for name in videos}))
    return sorted(episodes, key=lambda episode: episode.index)


def _episodes_of_3(root: Path, info: dict[str, Any], videos: list[str]) -> list[DatasetEpisode]:
    """Many episodes in one file of rows, and in one video of each camera."""
    columns = ['episode_index', 'length', 'tasks', 'data/chunk_index', 'data/file_index']
    for name in videos:
        columns += [f'videos/{name}/{what}' for what in ('chunk_index', 'file_index', 'from_timestamp')]
    parquet = import_parquet()
    episodes = []
    for file in sorted((root / 'meta' / 'episodes').glob('*/*.parquet')):
        try:
            rows = parquet.ParquetFile(file).read(columns=columns).to_pylist()
        except Exception as error:  # pyarrow's own, OSError and more: what is damaged may be anything
            raise unreadable(file, error) from error
        for row in rows:
            place = {'chunk_index': row['data/chunk_index'], 'file_index': row['data/file_index']}
            episodes.append(DatasetEpisode(
                int(row['episode_index']), int(row['length']), tuple(row['tasks']),
                root / info['data_path'].format(**place),
                {name: _video_of_3(root, info, name, row) for name in videos}))
    return sorted(episodes, key=lambda episode: episode.index)


def _video_of_3(root: Path, info: dict[str, Any], name: str, row: dict[str, Any]) -> tuple[Path, float]:
    place = {what: row[f'videos/{name}/{what}'] for what in ('chunk_index', 'file_index')}
    file = root / info['video_path'].format(video_key=name, **place)
    return file, float(row[f'videos/{name}/from_timestamp'])


def _read_lines(file: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in file.read_text(encoding='utf-8').splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise RecordingError(f'{file}: cannot be read ({one_line(str(error), 200)}); {ALLOWED}') from None
