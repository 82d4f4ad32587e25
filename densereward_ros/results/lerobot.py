"""Scores as columns of a LeRobot dataset, where training code finds them."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Sequence

from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.lerobot import short_names
from densereward_ros.recordings.lerobot_layout import (
    INFO,
    Dataset,
    import_parquet,
    is_dataset,
    read_dataset,
    read_info,
    unreadable,
)
from densereward_ros.results.rows import ScoredEpisode, ScoredFrame
from densereward_ros.text import one_line

if TYPE_CHECKING:
    import numpy as np
    import pyarrow

# By name, their types in a dataset's description, which are those of NumPy too.
COLUMNS = {'densereward.reward': 'float32', 'densereward.reason': 'int64', 'densereward.scored': 'bool'}
# What programs write into stays apart from the original; the rest is large, and only ever replaced.
COPIED = ('data', 'meta')


def write_lerobot(source: str | Path, episodes: Iterable[ScoredEpisode], folder: Path) -> None:
    """Write a copy of a dataset with three more columns, or three of each camera where several were scored.

    densereward.reward: the newest valid reward at that row, NaN before the first and in episodes that were
    not scored. densereward.reason: what came with it, as Reason, 0 before. densereward.scored: true where the
    model gave a valid reward for that very row. The columns of several cameras have the last part of the
    camera's name behind theirs: densereward.reward.front.

    Rows, their order and all other columns stay as they are. Data and descriptions are copied; videos and
    pictures are hard links, or symbolic ones to another file system. Columns of an earlier run are replaced.

    folder: appears in one step, in place of a dataset that is there. Raises RecordingError, OSError.
    """
    root = Path(source)
    dataset, info = read_dataset(root), read_info(root)
    scores = _by_camera(dataset, episodes)
    types = _types(dataset, list(scores))
    _check_place(root, folder)
    with _in_one_step(folder) as part:
        _copy_all_but_data(root, part)
        for file in _data_files(dataset):
            copy = part / file.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            _write_data(file, copy, types, _Columns(dataset, scores))
        features = {name: value for name, value in info['features'].items() if not _is_ours(name)}
        features |= {name: {'dtype': kind, 'shape': [1], 'names': None} for name, kind in types.items()}
        text = json.dumps({**info, 'features': features}, indent=4, ensure_ascii=False)
        (part / INFO).write_text(text + '\n', encoding='utf-8')


def _by_camera(
    dataset: Dataset, episodes: Iterable[ScoredEpisode]
) -> dict[str, dict[int, tuple[ScoredFrame, ...]]]:
    """Camera column -> episode -> frames; the cameras in the order of the dataset."""
    lengths = {episode.index: episode.length for episode in dataset.episodes}
    scores: dict[str, dict[int, tuple[ScoredFrame, ...]]] = {}
    for episode in episodes:
        if episode.camera not in dataset.cameras or episode.index not in lengths:
            raise RecordingError(
                f'{dataset.root}: no episode {episode.index} of {episode.camera!r}, which was scored as '
                f'{episode.name}; allowed are the scores of this dataset')
        if episode.frames and max(frame.frame for frame in episode.frames) >= lengths[episode.index]:
            raise RecordingError(
                f'{dataset.root}: {episode.name} was scored up to frame {episode.frames[-1].frame}, but has '
                f'{lengths[episode.index]} frames; allowed are the scores of this dataset')
        scores.setdefault(episode.camera, {})[episode.index] = episode.frames
    if not scores:
        raise RecordingError(f'{dataset.root}: nothing of it was scored; allowed is at least one episode')
    return {camera: scores[camera] for camera in dataset.cameras if camera in scores}


def _types(dataset: Dataset, cameras: Sequence[str]) -> dict[str, str]:
    """The new columns, camera by camera, and their types."""
    short = dict(zip(dataset.cameras, short_names(dataset.cameras)))
    ends = [f'.{short[camera]}' for camera in cameras] if len(cameras) > 1 else ['']
    return {f'{name}{end}': kind for end in ends for name, kind in COLUMNS.items()}


def _is_ours(name: str) -> bool:
    return any(name == column or name.startswith(f'{column}.') for column in COLUMNS)


class _Columns:
    """The values of the new columns, in the order of the rows of one file."""

    def __init__(self, dataset: Dataset, scores: dict[str, dict[int, tuple[ScoredFrame, ...]]]) -> None:
        self._lengths = {episode.index: episode.length for episode in dataset.episodes}
        self._scores = scores
        self._seen: Counter[int] = Counter()

    def next(self, indices: np.ndarray) -> list[np.ndarray]:
        """Column by column, for the next rows; these belong to the episodes of such indices."""
        import numpy as np

        parts = []
        for run in np.split(indices, np.flatnonzero(np.diff(indices)) + 1):
            if run.size:
                index, start = int(run[0]), self._seen[int(run[0])]
                self._seen[index] += run.size
                parts.append([column[start:start + run.size] for column in self._of_episode(index)])
        return [np.concatenate(columns) for columns in zip(*parts)]

    def _of_episode(self, index: int) -> list[np.ndarray]:
        import numpy as np

        columns = []
        for frames in self._scores.values():
            rewards, reasons, scored = (
                np.full(self._lengths[index], start, kind)
                for start, kind in zip((math.nan, 0, False), COLUMNS.values()))
            valid = [frame for frame in frames.get(index, ()) if frame.reward is not None]
            for frame, end in zip(valid, [*(after.frame for after in valid[1:]), len(rewards)]):
                rewards[frame.frame:end], reasons[frame.frame:end] = frame.reward, int(frame.reason)
                scored[frame.frame] = True
            columns += [rewards, reasons, scored]
        return columns


def _data_files(dataset: Dataset) -> list[Path]:
    """Every file of rows, as programs that read a dataset take all that they find."""
    found = (dataset.root / 'data').rglob('*.parquet')
    return sorted({*found, *(episode.data for episode in dataset.episodes)})


def _write_data(file: Path, copy: Path, types: dict[str, str], columns: _Columns) -> None:
    """Copy a file of rows, group by group, with the new columns."""
    import pyarrow

    parquet = import_parquet()
    try:
        with parquet.ParquetFile(file) as stored:
            old = [name for name in stored.schema_arrow.names if not _is_ours(name)]
            schema = _with_columns(stored.schema_arrow, types)
            with parquet.ParquetWriter(copy, schema, compression=_compression(stored)) as writer:
                for group in range(stored.num_row_groups):
                    table = stored.read_row_group(group).select(old)
                    if table.num_rows == 0:
                        continue
                    values = columns.next(table.column('episode_index').to_numpy())
                    for name, column in zip(types, values, strict=True):
                        table = table.append_column(name, pyarrow.array(column))
                    writer.write_table(table.cast(schema), row_group_size=table.num_rows)
    except (pyarrow.ArrowException, OSError) as error:
        if getattr(error, 'errno', None):  # of the system, such as a full disk; what is damaged has none
            raise
        raise unreadable(file, error) from error
    except (KeyError, ValueError) as error:
        raise RecordingError(
            f'{file}: has not the rows and columns that the dataset says it has '
            f'({one_line(str(error), 200)})') from error


def _with_columns(schema: pyarrow.Schema, types: dict[str, str]) -> pyarrow.Schema:
    """The schema with the new columns, also where Hugging Face keeps its own list of them."""
    import pyarrow

    fields = [field for field in schema if not _is_ours(field.name)]
    fields += [pyarrow.field(name, pyarrow.type_for_alias(kind)) for name, kind in types.items()]
    metadata = dict(schema.metadata or {})
    listed = json.loads(metadata.get(b'huggingface', b'{}'))
    features = listed.get('info', {}).get('features')
    if features:
        features |= {name: {'dtype': kind, '_type': 'Value'} for name, kind in types.items()}
        listed['info']['features'] = {
            name: features[name] for name in features if name in types or not _is_ours(name)}
        metadata[b'huggingface'] = json.dumps(listed).encode()
    return pyarrow.schema(fields, metadata)


def _compression(stored: Any) -> str:
    if stored.num_row_groups == 0:
        return 'snappy'
    return stored.metadata.row_group(0).column(0).compression.replace('UNCOMPRESSED', 'NONE')


def _copy_all_but_data(root: Path, part: Path) -> None:
    for file in sorted(root.rglob('*')):
        place = file.relative_to(root)
        # Hidden: of git or a download, and no part of the dataset.
        if file.is_dir() or place.parts[0].startswith('.') or (
                place.parts[0] == 'data' and file.suffix == '.parquet'):
            continue
        (part / place).parent.mkdir(parents=True, exist_ok=True)
        if len(place.parts) == 1 or place.parts[0] in COPIED:
            shutil.copyfile(file, part / place)
        else:
            _link(file.resolve(), part / place)


def _link(file: Path, link: Path) -> None:
    try:
        os.link(file, link)
    except OSError:  # another file system, or one without hard links
        link.symlink_to(file)


def _check_place(root: Path, folder: Path) -> None:
    whole, place = root.resolve(), folder.resolve()
    if place == whole or whole in place.parents or place in whole.parents:
        raise RecordingError(
            f'{folder}: lies in the dataset {root}, or around it; allowed is a place beside it')
    if folder.exists() and not is_dataset(folder):
        raise RecordingError(
            f'{folder}: is there, and no LeRobot dataset; allowed is a new folder, or a dataset to replace')


@contextmanager
def _in_one_step(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes the place of `folder` when all went well."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    part, old = (folder.with_name(f'.{folder.name}.{what}') for what in ('part', 'old'))
    shutil.rmtree(part, ignore_errors=True)  # left by a run that was killed
    try:
        part.mkdir()
        yield part
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
            os.rename(folder, old)
        os.rename(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
