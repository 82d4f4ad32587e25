"""LeRobot datasets: one episode for each of theirs and each camera. The lerobot package is not needed."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Iterator, Sequence

from densereward_ros.frames.compressed import decode_compressed
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.episode import Episode, Labels
from densereward_ros.recordings.lerobot_layout import (
    SUCCESS,
    Dataset,
    DatasetEpisode,
    import_parquet,
    read_dataset,
    unreadable,
)
from densereward_ros.recordings.names import path_name, unique_names
from densereward_ros.recordings.video import decoded_at
from densereward_ros.types import Frame, ImageError

NS_PER_S = 1_000_000_000
ROWS = 8  # that are read at once; of images, so they are few
BUFFER = 2**20


def lerobot_episodes(root: Path, source: str, task: str = '', topics: Sequence[str] = ()) -> list[Episode]:
    """One episode for each of the dataset and each camera.

    task: in place of the dataset's own, where it is not empty. topics: only these camera columns. An episode
    of several tasks is asked about all of them. Raises RecordingError.
    """
    dataset = read_dataset(root)
    for topic in topics:
        if topic not in dataset.cameras:
            raise RecordingError(
                f'{root}: {topic} is no colour camera in it; allowed: {", ".join(dataset.cameras)}')
    success = _success(dataset)
    cameras = dict(zip(dataset.cameras, short_names(dataset.cameras)))
    seen = [(episode, camera) for episode in dataset.episodes for camera in topics or dataset.cameras]
    names = unique_names(
        path_name(root.resolve().name, f'episode_{episode.index:06d}', cameras[camera])
        for episode, camera in seen)
    return [
        Episode(
            name, source, camera, task or _task_of(root, episode),
            functools.partial(_frames, dataset, episode, camera), episode.length,
            Labels(success=success.get(episode.index)), episode.index)
        for name, (episode, camera) in zip(names, seen)]


def short_names(cameras: Sequence[str]) -> list[str]:
    """What tells the cameras apart: the last part of their columns where that does, the whole otherwise."""
    last = [camera.rsplit('.', 1)[-1] for camera in cameras]
    return last if len(set(last)) == len(last) else list(cameras)


def _task_of(root: Path, episode: DatasetEpisode) -> str:
    tasks = [task.strip() for task in episode.tasks if task.strip()]
    if not tasks:
        raise RecordingError(
            f'{root}: episode {episode.index} has no task; give one that replaces those of the dataset')
    return '; '.join(tasks)


def _success(dataset: Dataset) -> dict[int, bool]:
    """By episode: whether any of its rows says success. Those of a file that cannot be read are left out."""
    result: dict[int, bool] = {}
    if not dataset.has_success:
        return result
    for file in dict.fromkeys(episode.data for episode in dataset.episodes):
        found: dict[int, bool] = {}
        try:
            for row in _rows(file, [SUCCESS], None):
                value, index = row[SUCCESS], row['episode_index']
                said = any(value) if isinstance(value, list) else bool(value)
                found[index] = found.get(index, False) or said
        except RecordingError:  # which reading the frames of these episodes will raise again
            continue
        result |= found
    return result


def _frames(dataset: Dataset, episode: DatasetEpisode, camera: str) -> Iterator[Frame]:
    """Stamps are those of the dataset, and a frame arrives at its stamp."""
    if camera in episode.videos:
        pictures = _from_video(dataset, episode, *episode.videos[camera])
    else:
        pictures = _from_rows(dataset, episode, camera)
    for seconds, decode in pictures:
        now_ns = round(seconds * NS_PER_S)
        yield Frame(now_ns, now_ns, decode)


def _from_video(
    dataset: Dataset, episode: DatasetEpisode, file: Path, start_s: float
) -> Iterator[tuple[float, Any]]:
    seconds = [row['timestamp'] for row in _rows_of(episode, [])]
    if not file.is_file():
        raise RecordingError(f'{file}: no such file; the video of episode {episode.index} belongs there')
    times = [start_s + second for second in seconds]
    for second, decode in zip(seconds, decoded_at(file, times, 0.5 / dataset.fps), strict=True):
        yield second, decode


def _from_rows(dataset: Dataset, episode: DatasetEpisode, camera: str) -> Iterator[tuple[float, Any]]:
    for row in _rows_of(episode, [camera]):
        yield row['timestamp'], functools.partial(_decode, dataset.root, row[camera])


def _decode(root: Path, stored: Any) -> Any:
    """The picture of an image column: the bytes of a file or, in old datasets, the path of one."""
    data, path = (stored.get('bytes'), stored.get('path')) if isinstance(stored, dict) else (None, None)
    if data is None:
        try:
            data = (root / path).read_bytes()
        except (OSError, TypeError, ValueError) as error:
            raise ImageError(
                f'the image is {str(stored)[:100]}, allowed: bytes, or the path of a file ({error})'
            ) from None
    return decode_compressed(data)


def _rows_of(episode: DatasetEpisode, columns: list[str]) -> Iterator[dict[str, Any]]:
    count = 0
    for row in _rows(episode.data, ['timestamp', *columns], episode.index):
        count += 1
        yield row
    if count != episode.length:
        raise RecordingError(
            f'{episode.data}: holds {count} rows of episode {episode.index}, of which the dataset says that '
            f'it has {episode.length}')


def _rows(file: Path, columns: list[str], index: int | None) -> Iterator[dict[str, Any]]:
    """Yield these columns and episode_index, of one episode or of all."""
    parquet = import_parquet()
    from pyarrow import compute

    try:
        # Buffered, it is read page by page; otherwise all images of a row group would be in memory.
        with parquet.ParquetFile(file, buffer_size=BUFFER, pre_buffer=False) as stored:
            missing = [name for name in columns if name not in stored.schema_arrow.names]
            if missing:
                raise RecordingError(f'{file}: has no column {", ".join(missing)}')
            groups = [
                group for group in range(stored.num_row_groups)
                if index is None or _may_hold(stored.metadata.row_group(group), index)]
            names = ['episode_index', *columns]
            for batch in stored.iter_batches(ROWS, groups, names, use_threads=False):
                if index is not None:
                    batch = batch.filter(compute.equal(batch.column('episode_index'), index))
                yield from batch.to_pylist()
    except RecordingError:
        raise
    except Exception as error:  # pyarrow's own, OSError and more: what is damaged may be anything
        raise unreadable(file, error) from error


def _may_hold(group: Any, index: int) -> bool:
    """False where the statistics of a row group tell that the episode is not in it."""
    for column in range(group.num_columns):
        if group.column(column).path_in_schema == 'episode_index':
            known = group.column(column).statistics
            return known is None or not known.has_min_max or known.min <= index <= known.max
    return True
