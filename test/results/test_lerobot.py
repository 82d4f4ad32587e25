"""Scores as columns of a LeRobot dataset: values, and that nothing else changes."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from clips import picture
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.lerobot_layout import Dataset, DatasetEpisode
from densereward_ros.recordings.opening import open_episodes
from densereward_ros.results import lerobot
from densereward_ros.results.lerobot import write_lerobot
from densereward_ros.results.rows import ScoredEpisode, ScoredFrame
from densereward_ros.types import Reason
from recordings_made import CAMERA, make_lerobot

WRIST = 'observation.images.wrist'
NAN = math.nan
OURS = ['densereward.reward', 'densereward.reason', 'densereward.scored']
LAYOUTS = pytest.mark.parametrize('version', ['2.0', '2.1', '3.0'])


def dataset(path: Path, version: str = '3.0', **options) -> Path:
    """Three episodes, of 5, 7 and 4 frames."""
    episodes = [[picture(i) for i in range(count)] for count in (5, 7, 4)]
    return make_lerobot(path, episodes, version=version, **options)


def scores(source: Path, rewards: dict[int, dict[int, float | None]], camera: str = CAMERA):
    """Scored episodes. rewards: episode -> frame -> reward; the reason of an odd frame is a miss."""
    return [
        ScoredEpisode(
            episode.name, episode.source, camera, episode.task, episode.labels, tuple(
                ScoredFrame(
                    frame, frame * 10**8, frame / 10, 0, reward, Reason.MISS if frame % 2 else Reason.CORRECT,
                    malformed='' if reward is not None else 'no number')
                for frame, reward in rewards[episode.index].items()), (), episode.index)
        for episode in open_episodes(source, topics=[camera]) if episode.index in rewards]


def table(root: Path) -> pyarrow.Table:
    """All rows of a dataset, as programs that train read them."""
    files = sorted((root / 'data').glob('*/*.parquet'))
    return pyarrow.concat_tables([parquet.read_table(file) for file in files])


@LAYOUTS
@pytest.mark.parametrize('images', [False, True])
def test_the_reward_is_held_until_the_next(tmp_path, version, images):
    """Row by row: NaN before the first, a malformed reply changes nothing, and episodes do not mix."""
    source = dataset(tmp_path / 'set', version, images=images)
    rewards = {0: {2: 0.25, 3: None, 4: 0.5}, 2: {0: 0.75, 1: 0.125}}
    write_lerobot(source, scores(source, rewards), tmp_path / 'out' / 'set')
    before, after = table(source), table(tmp_path / 'out' / 'set')
    assert after.column_names == before.column_names + OURS
    assert after.select(before.column_names).equals(before)
    assert [str(after.schema.field(name).type) for name in OURS] == ['float', 'int64', 'bool']
    np.testing.assert_array_equal(
        after.column('densereward.reward').to_numpy(),
        [NAN, NAN, 0.25, 0.25, 0.5, *[NAN] * 7, 0.75, 0.125, 0.125, 0.125])
    assert after.column('densereward.reason').to_pylist() == [0, 0, 1, 1, 1, *[0] * 7, 1, 2, 2, 2]
    assert after.column('densereward.scored').to_pylist() == [
        i in (2, 4, 12, 13) for i in range(16)]
    assert after.column('densereward.reward').null_count == 0


@LAYOUTS
def test_the_description_names_the_columns_and_all_else_stays(tmp_path, version):
    """What was in meta/ is there, byte for byte but for the features; the videos take no room."""
    source = dataset(tmp_path / 'set', version)
    write_lerobot(source, scores(source, {0: {2: 0.5}}), tmp_path / 'out')
    before, after = (json.loads((root / 'meta/info.json').read_text()) for root in (source, tmp_path / 'out'))
    ours = {name: after['features'].pop(name) for name in OURS}
    assert after == before
    assert ours == {name: {'dtype': kind, 'shape': [1], 'names': None}
                    for name, kind in zip(OURS, ('float32', 'int64', 'bool'))}
    files = sorted(file.relative_to(source) for file in source.rglob('*') if file.is_file())
    assert files == sorted(
        file.relative_to(tmp_path / 'out') for file in (tmp_path / 'out').rglob('*') if file.is_file())
    for file in files:
        old, new = source / file, tmp_path / 'out' / file
        assert old.samefile(new) == (file.parts[0] == 'videos')
        if file.parts[0] != 'data' and file.name != 'info.json':
            assert old.read_bytes() == new.read_bytes()
    stored = [parquet.ParquetFile(root / file).metadata for file in files if file.parts[0] == 'data'
              for root in (source, tmp_path / 'out')]
    assert {metadata.row_group(0).column(0).compression for metadata in stored} == {'SNAPPY'}


@LAYOUTS
def test_the_copy_is_a_dataset_that_gives_the_same_episodes(tmp_path, version):
    """It opens as the original does, frame by frame."""
    source = dataset(tmp_path / 'set', version, success=[True, False, True])
    write_lerobot(source, scores(source, {1: {2: 0.5}}), tmp_path / 'out' / 'set')
    for before, after in zip(open_episodes(source), open_episodes(tmp_path / 'out' / 'set'), strict=True):
        assert (before.name, before.task, before.labels) == (after.name, after.task, after.labels)
        for old, new in zip(before.frames(), after.frames(), strict=True):
            assert old.stamp_ns == new.stamp_ns and np.array_equal(old.image, new.image)


@pytest.mark.parametrize('version', ['2.1', '3.0'])
def test_each_of_several_cameras_has_its_own_columns(tmp_path, version):
    """In the order of the dataset; a camera that was not scored has none."""
    source = dataset(tmp_path / 'set', version, cameras=(CAMERA, 'observation.images.top', WRIST))
    both = scores(source, {0: {4: 0.5}}, WRIST) + scores(source, {0: {3: 0.25}, 1: {6: 1.0}})
    write_lerobot(source, both, tmp_path / 'out')
    after = table(tmp_path / 'out')
    names = [f'{name}.{camera}' for camera in ('front', 'wrist') for name in OURS]
    assert after.column_names[-6:] == names
    assert set(names) < set(json.loads((tmp_path / 'out/meta/info.json').read_text())['features'])
    front, wrist = (after.column(name).to_numpy() for name in names[::3])
    np.testing.assert_array_equal(front[:5], [NAN, NAN, NAN, 0.25, 0.25])
    np.testing.assert_array_equal(wrist[:5], [NAN, NAN, NAN, NAN, 0.5])
    assert front[11] == 1.0 and np.isnan(wrist[5:]).all()


def test_columns_of_an_earlier_run_are_replaced(tmp_path):
    """Scoring a scored dataset again gives three columns, not six, and takes the old place in one step."""
    source = dataset(tmp_path / 'set')
    write_lerobot(source, scores(source, {0: {2: 0.5}}), tmp_path / 'one' / 'set')
    again = tmp_path / 'one' / 'set'
    write_lerobot(again, scores(again, {0: {2: 0.25}}), tmp_path / 'two')
    write_lerobot(again, scores(again, {0: {2: 0.75}}), tmp_path / 'two')
    after = table(tmp_path / 'two')
    assert after.column_names == table(source).column_names + OURS
    assert after.column('densereward.reward')[2].as_py() == 0.75
    assert sorted(os.listdir(tmp_path)) == ['one', 'set', 'two']


def test_hugging_face_finds_the_columns_in_its_own_list(tmp_path):
    """Its datasets library writes the features into the files of rows, and older releases trust that list."""
    source = dataset(tmp_path / 'set')
    file = source / 'data/chunk-000/file-000.parquet'
    listed = {'index': {'dtype': 'int64', '_type': 'Value'}}
    rows = parquet.read_table(file)
    parquet.write_table(rows.replace_schema_metadata(
        {'huggingface': json.dumps({'info': {'features': listed}}), 'other': 'kept'}), file)
    write_lerobot(source, scores(source, {0: {2: 0.5}}), tmp_path / 'out')
    metadata = parquet.read_schema(tmp_path / 'out/data/chunk-000/file-000.parquet').metadata
    assert metadata[b'other'] == b'kept'
    assert json.loads(metadata[b'huggingface'])['info']['features'] == listed | {
        name: {'dtype': kind, '_type': 'Value'} for name, kind in zip(OURS, ('float32', 'int64', 'bool'))}


def test_row_groups_that_split_and_mix_episodes(tmp_path):
    """As other writers make them: groups of three rows, each written as it was."""
    source = dataset(tmp_path / 'set')
    file = source / 'data/chunk-000/file-000.parquet'
    parquet.write_table(parquet.read_table(file), file, row_group_size=3, compression='zstd')
    write_lerobot(source, scores(source, {0: {1: 0.5}, 1: {6: 0.25}}), tmp_path / 'out')
    copy = parquet.ParquetFile(tmp_path / 'out/data/chunk-000/file-000.parquet')
    assert copy.metadata.num_row_groups == 6 and copy.metadata.row_group(0).column(0).compression == 'ZSTD'
    rewards = copy.read().column('densereward.reward').to_numpy()
    np.testing.assert_array_equal(rewards, [NAN, *[0.5] * 4, *[NAN] * 6, 0.25, *[NAN] * 4])


@given(
    st.lists(st.tuples(st.integers(0, 8), st.none() | st.floats(0, 1, width=32)), unique_by=lambda p: p[0]),
    st.lists(st.integers(1, 9)))
def test_any_scores_are_held_row_by_row(pairs, cuts):
    """Against the plainest way to do it, for rows that come in pieces of any size."""
    frames = tuple(
        ScoredFrame(i, 0, 0.0, 0, reward, Reason(1 + i % 6)) for i, reward in sorted(pairs))
    episodes = (DatasetEpisode(4, 9, ('a',), Path('a'), {}), DatasetEpisode(7, 2, ('a',), Path('a'), {}))
    columns = lerobot._Columns(Dataset(Path('a'), 10.0, (CAMERA,), False, episodes), {CAMERA: {4: frames}})
    indices = np.array([4] * 9 + [7] * 2)
    pieces = [piece for piece in np.split(indices, sorted(set(cuts))) if piece.size]
    rewards, reasons, scored = (np.concatenate(column) for column in zip(*map(columns.next, pieces)))
    newest, by_frame = (NAN, 0), {frame.frame: frame for frame in frames}
    for row in range(9):
        frame = by_frame.get(row)
        valid = frame is not None and frame.reward is not None
        if valid:
            newest = (frame.reward, int(frame.reason))
        np.testing.assert_array_equal((rewards[row], reasons[row]), newest)
        assert scored[row] == valid
    assert np.isnan(rewards[9:]).all() and not reasons[9:].any() and not scored[9:].any()


def test_links_where_no_hard_ones_are_possible(tmp_path, monkeypatch):
    """To another disk; a dataset of the hub's cache, which is links itself, leads to the real file."""
    source = dataset(tmp_path / 'set')
    blob = tmp_path / 'blob'
    video = source / 'videos' / CAMERA / 'chunk-000/file-000.mp4'
    video.rename(blob)
    video.symlink_to(blob)

    def refuse(*_arguments):
        raise OSError(18, 'Invalid cross-device link')

    monkeypatch.setattr(os, 'link', refuse)
    write_lerobot(source, scores(source, {0: {2: 0.5}}), tmp_path / 'out')
    link = tmp_path / 'out' / video.relative_to(source)
    assert Path(os.readlink(link)) == blob and link.read_bytes() == blob.read_bytes()


def test_a_failure_leaves_nothing_and_the_old_copy(tmp_path, monkeypatch):
    """A full disk in the middle: the copy of an earlier run stays whole."""
    source = dataset(tmp_path / 'set', '2.1')
    episodes = scores(source, {0: {2: 0.5}})
    write_lerobot(source, episodes, tmp_path / 'out')
    before = {file: file.read_bytes() for file in (tmp_path / 'out').rglob('*') if file.is_file()}
    write, calls = lerobot._write_data, []

    def fail_at_the_second(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise OSError(28, 'No space left on device')
        return write(*arguments)

    monkeypatch.setattr(lerobot, '_write_data', fail_at_the_second)
    with pytest.raises(OSError, match='No space left'):
        write_lerobot(source, episodes, tmp_path / 'out')
    assert {file: file.read_bytes() for file in (tmp_path / 'out').rglob('*') if file.is_file()} == before
    assert sorted(os.listdir(tmp_path)) == ['out', 'set']


def test_what_is_no_place_for_a_copy_is_refused(tmp_path):
    """The dataset itself, what is in it or around it, and a folder of something else."""
    source = dataset(tmp_path / 'sets' / 'set')
    episodes = scores(source, {0: {2: 0.5}})
    for folder in (source, source / 'out', tmp_path / 'sets'):
        with pytest.raises(RecordingError, match='lies in the dataset'):
            write_lerobot(source, episodes, folder)
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out' / 'thesis.tex').write_text('the only copy')
    with pytest.raises(RecordingError, match='is there, and no LeRobot dataset'):
        write_lerobot(source, episodes, tmp_path / 'out')
    assert (tmp_path / 'out' / 'thesis.tex').exists()


def test_scores_of_another_dataset_are_refused(tmp_path):
    """Rewards on the wrong rows would look like any others."""
    source = dataset(tmp_path / 'set')
    other = make_lerobot(tmp_path / 'other', [[picture(i) for i in range(9)]] * 4, cameras=(CAMERA, WRIST))
    for wrong, words in (
            (scores(other, {3: {2: 0.5}}), "no episode 3 of 'observation.images.front'"),
            (scores(other, {0: {2: 0.5}}, WRIST), "no episode 0 of 'observation.images.wrist'"),
            (scores(other, {0: {8: 0.5}}), 'was scored up to frame 8, but has 5 frames'),
            ([], 'nothing of it was scored')):
        with pytest.raises(RecordingError, match=words):
            write_lerobot(source, wrong, tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('damage', [
    lambda file: file.write_bytes(b'PAR1' + bytes(100)),
    lambda file: file.write_bytes(file.read_bytes()[:-50]),
    lambda file: parquet.write_table(parquet.read_table(file).drop_columns(['episode_index']), file),
    lambda file: parquet.write_table(pyarrow.concat_tables([parquet.read_table(file)] * 2), file),
])
def test_damaged_rows_are_told_in_one_line(tmp_path, damage):
    """With the file; and no half of a dataset is left."""
    source = dataset(tmp_path / 'set', '2.1')
    episodes = scores(source, {0: {2: 0.5}})
    damage(source / 'data/chunk-000/episode_000001.parquet')
    with pytest.raises(RecordingError, match=r'_000001.parquet: (cannot be read|has not the)') as error:
        write_lerobot(source, episodes, tmp_path / 'out')
    assert '\n' not in str(error.value)
    assert os.listdir(tmp_path) == ['set']


def test_hidden_folders_and_other_files(tmp_path):
    """What git or a download keeps is no part of the dataset; a README and files of rows elsewhere are."""
    source = dataset(tmp_path / 'set', '2.1')
    (source / '.git').mkdir()
    (source / '.git' / 'config').write_text('secret')
    (source / 'README.md').write_text('about')
    extra = source / 'data/chunk-000/episode_000009.parquet'
    shutil.copy(source / 'data/chunk-000/episode_000000.parquet', extra)
    rows = parquet.read_table(extra)
    index = rows.column_names.index('episode_index')
    parquet.write_table(rows.set_column(index, 'episode_index', pyarrow.array([9] * 5)), extra)
    with pytest.raises(RecordingError, match=r'episode_000009.parquet: has not the rows'):
        write_lerobot(source, scores(source, {0: {2: 0.5}}), tmp_path / 'out')
    extra.unlink()
    write_lerobot(source, scores(source, {0: {2: 0.5}}), tmp_path / 'out')
    assert not (tmp_path / 'out' / '.git').exists()
    assert not (tmp_path / 'out' / 'README.md').samefile(source / 'README.md')
