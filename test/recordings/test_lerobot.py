"""LeRobot datasets of all versions: pictures, tasks, stamps, labels, and what is refused."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from clips import colour_of, picture
from densereward_ros.recordings import lerobot
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.opening import open_episodes
from densereward_ros.recordings.video import decoded_at
from densereward_ros.types import ImageError
from recordings_made import CAMERA, file_bytes, make_lerobot, write_video

pytestmark = pytest.mark.slow  # together they take long

WRIST = 'observation.images.wrist'
LAYOUTS = pytest.mark.parametrize('version', ['2.0', '2.1', '3.0'])
COUNTS = (5, 14, 4)
# Each episode begins where the one before it ended, so that a frame of another one is seen.
STARTS = (0, 5, 19)


def dataset(path: Path, version: str = '3.0', **options) -> Path:
    """Three episodes whose frames are numbered through."""
    episodes = [[picture(start + i) for i in range(count)] for start, count in zip(STARTS, COUNTS)]
    return make_lerobot(path, episodes, version=version, **options)


def edit_info(root: Path, **values) -> None:
    """Replace entries of meta/info.json."""
    file = root / 'meta/info.json'
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def edit_rows(file: Path, **columns) -> None:
    """Replace columns of a file of rows; None takes one out."""
    rows = parquet.read_table(file)
    for name, values in columns.items():
        name = name.replace('__', '.')
        index = rows.column_names.index(name)
        rows = rows.drop_columns([name]) if values is None else rows.set_column(index, name, [values])
    parquet.write_table(rows, file)


@LAYOUTS
@pytest.mark.parametrize('images', [False, True])
def test_every_episode_of_every_camera(tmp_path, version, images):
    """Its own frames and no others, at the times of the dataset, upside down for the second camera."""
    root = dataset(tmp_path / 'my set', version, images=images, cameras=(CAMERA, WRIST), tasks=('a', 'b'))
    episodes = open_episodes(root)
    assert [episode.name for episode in episodes] == [
        f'my_set-episode_{index:06d}-{camera}' for index in range(3) for camera in ('front', 'wrist')]
    assert [episode.camera for episode in episodes] == [CAMERA, WRIST] * 3
    assert [(episode.index, episode.count) for episode in episodes[::2]] == list(enumerate(COUNTS))
    assert [episode.task for episode in episodes] == ['a', 'a', 'b', 'b', 'a', 'a']
    assert {episode.source for episode in episodes} == {str(root)}
    for episode in episodes:
        assert (episode.labels.success, episode.labels.failures) == (None, None)
        for _ in range(2):
            frames = list(episode.frames())
            assert len(frames) == COUNTS[episode.index]
            for number, frame in enumerate(frames):
                assert frame.stamp_ns == pytest.approx(number * 1e8, abs=100)
                assert frame.received_ns == frame.stamp_ns
                colour = colour_of(STARTS[episode.index] + number)
                assert np.abs(frame.image.reshape(-1, 3).mean(0) - colour).max() <= (0 if images else 5)


@LAYOUTS
def test_only_these_cameras(tmp_path, version):
    """By the names of their columns; another one is refused with those that there are."""
    root = dataset(tmp_path / 'set', version, cameras=(CAMERA, WRIST))
    picked = open_episodes(root, topics=[WRIST])
    assert [episode.name for episode in picked] == [f'set-episode_{index:06d}-wrist' for index in range(3)]
    with pytest.raises(RecordingError, match=(
            'set: wrist is no colour camera in it; allowed: observation.images.front, observation.images.w')):
        open_episodes(root, topics=['wrist'])


def test_cameras_that_share_their_last_word_keep_the_whole(tmp_path):
    """So that one can tell which is which."""
    root = dataset(tmp_path / 'set', cameras=('left.rgb', 'right.rgb'))
    assert [episode.name for episode in open_episodes(root)[:2]] == [
        'set-episode_000000-left.rgb', 'set-episode_000000-right.rgb']


@LAYOUTS
def test_tasks(tmp_path, version):
    """The user's replaces the dataset's; several of one episode are asked about together; none is refused."""
    root = dataset(tmp_path / 'set', version, tasks=(' stack the cup ', 'open the drawer'))
    assert [episode.task for episode in open_episodes(root)] == [
        'stack the cup', 'open the drawer', 'stack the cup']
    assert {episode.task for episode in open_episodes(root, ' pour ')} == {'pour'}
    edit_tasks(root, version, ['reach', ' ', 'grasp'])
    assert open_episodes(root)[1].task == 'reach; grasp'
    edit_tasks(root, version, [])
    with pytest.raises(RecordingError, match='episode 1 has no task; give one'):
        open_episodes(root)
    assert open_episodes(root, 'pour')[1].task == 'pour'


def edit_tasks(root: Path, version: str, tasks: list[str]) -> None:
    """Replace the tasks of episode 1."""
    if version == '3.0':
        file = root / 'meta/episodes/chunk-000/file-000.parquet'
        rows = parquet.read_table(file).to_pylist()
        rows[1]['tasks'] = tasks
        parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    else:
        file = root / 'meta/episodes.jsonl'
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        lines[1]['tasks'] = tasks
        file.write_text('\n'.join(json.dumps(line) for line in lines))


@LAYOUTS
def test_success_is_any_row_that_says_so(tmp_path, version):
    """Both cameras of an episode have its label; what cannot be read has none."""
    root = dataset(tmp_path / 'set', version, cameras=(CAMERA, WRIST), success=[True, False, True])
    assert [episode.labels.success for episode in open_episodes(root)] == [
        True, True, False, False, True, True]
    if version != '3.0':
        (root / 'data/chunk-000/episode_000001.parquet').write_bytes(b'damaged')
        assert [episode.labels.success for episode in open_episodes(root)][::2] == [True, None, True]


def test_a_file_that_breaks_off_labels_nothing(tmp_path, monkeypatch):
    """The rows that could be read of an episode may not be those that say success."""
    root = dataset(tmp_path / 'set', success=[True, True, True])
    rows = lerobot._rows

    def break_off(file, columns, index):
        for number, row in enumerate(rows(file, columns, index)):
            if number == 8 and index is None:
                raise RecordingError(f'{file}: cannot be read')
            yield row

    monkeypatch.setattr(lerobot, '_rows', break_off)
    assert [episode.labels.success for episode in open_episodes(root)] == [None] * 3


def test_rows_of_one_file_are_found_among_groups(tmp_path):
    """Row groups of any size, with and without statistics, and episodes in several files."""
    root = dataset(tmp_path / 'set', images=True)
    file = root / 'data/chunk-000/file-000.parquet'
    for options in ({'row_group_size': 3}, {'row_group_size': 3, 'write_statistics': False}):
        parquet.write_table(parquet.read_table(file), file, **options)
        for episode in open_episodes(root):
            colours = [tuple(frame.image[0, 0]) for frame in episode.frames()]
            start = STARTS[episode.index]
            assert colours == [colour_of(start + i) for i in range(COUNTS[episode.index])]


def test_depth_cameras_are_left_out(tmp_path):
    """Marked in one of three ways."""
    cameras = (CAMERA, 'depth.a', 'depth.b', 'depth.c')
    root = dataset(tmp_path / 'set', cameras=cameras)
    features = json.loads((root / 'meta/info.json').read_text())['features']
    features['depth.a']['info'] = {'is_depth_map': True}
    features['depth.b']['info'] = {'video.is_depth_map': True}
    features['depth.c']['video_info'] = {'video.is_depth_map': True}
    features[CAMERA]['info'] = {'is_depth_map': False}
    edit_info(root, features=features)
    assert {episode.camera for episode in open_episodes(root)} == {CAMERA}
    with pytest.raises(RecordingError, match='depth.a is no colour camera'):
        open_episodes(root, topics=['depth.a'])
    edit_info(root, features={name: value for name, value in features.items() if name != CAMERA})
    with pytest.raises(RecordingError, match='no camera|no colour camera'):
        open_episodes(root)


def test_images_that_are_files(tmp_path):
    """As the oldest datasets keep them: the rows have a path only; a file that is gone costs its frame."""
    root = dataset(tmp_path / 'set', '2.0', images=True)
    file = root / 'data/chunk-000/episode_000002.parquet'
    paths = [f'images/{CAMERA}/episode_000002/frame_{i:06d}.png' for i in range(4)]
    (root / paths[0]).parent.mkdir(parents=True)
    for i in (0, 1, 3):
        (root / paths[i]).write_bytes(file_bytes(picture(i), 'png'))
    kind = parquet.read_schema(file).field(CAMERA).type
    edit_rows(file, **{CAMERA.replace('.', '__'): pyarrow.array(
        [{'bytes': None, 'path': path} for path in paths[:3]] + [None], kind)})
    first, second, third, fourth = open_episodes(root)[2].frames()
    assert tuple(first.image[0, 0]) == colour_of(0) and tuple(second.image[0, 0]) == colour_of(1)
    for frame in (third, fourth):
        with pytest.raises(ImageError, match='allowed: bytes, or the path of a file'):
            frame.image  # noqa: B018


def test_a_video_that_ends_early(tmp_path):
    """What is there comes first; then one line says where it ended."""
    root = dataset(tmp_path / 'set', '2.1')
    video = root / 'videos/chunk-000' / CAMERA / 'episode_000001.mp4'
    write_video(video, [picture(5 + i) for i in range(6)], 10)
    frames = open_episodes(root)[1].frames()
    for number in range(6):
        assert np.abs(next(frames).image.reshape(-1, 3).mean(0) - colour_of(5 + number)).max() <= 5
    with pytest.raises(RecordingError, match='episode_000001.mp4: ends after frame 6 of 14, at 0.600 s'):
        next(frames)
    assert len(list(open_episodes(root)[2].frames())) == 4


def test_frames_are_the_nearest_ones(tmp_path):
    """Also in a video of another rate, from a time in its middle; one that is too far away is an error."""
    video = write_video(tmp_path / 'clip.mp4', [picture(i) for i in range(60)], 30)

    def numbers(times, tolerance=0.05):
        colours = [decode().reshape(-1, 3).mean(0) for decode in decoded_at(video, times, tolerance)]
        return [min(range(60), key=lambda i: (round(np.abs(colour - colour_of(i)).max()), abs(i / 30 - time)))
                for colour, time in zip(colours, times, strict=True)]

    assert numbers([i / 10 for i in range(8)]) == [3 * i for i in range(8)]
    assert numbers([1.0, 1.1, 1.21, 1.29]) == [30, 33, 36, 39]
    assert numbers([0.5, 0.5, 1.966]) == [15, 15, 59]
    assert numbers([]) == []
    with pytest.raises(RecordingError, match=r'no frame at 0.517 s, the nearest is at 0.5'):
        numbers([0.5, 0.517], 0.01)
    with pytest.raises(RecordingError, match='ends after frame 1 of 2, at 2.100 s'):
        numbers([1.9, 2.1])


@LAYOUTS
def test_files_that_are_gone_or_damaged_cost_their_own_episodes(tmp_path, version):
    """One line when the frames are read; the other episodes of version 2 stay whole."""
    root = dataset(tmp_path / 'set', version)
    videos, rows = sorted(root.rglob('*.mp4')), sorted((root / 'data').rglob('*.parquet'))
    mine = -1 if version == '3.0' else 1
    content = videos[mine].read_bytes()
    for damage, words in (
            (lambda: videos[mine].unlink(), 'no such file; the video of episode 1 belongs there'),
            (lambda: videos[mine].write_bytes(os.urandom(2000)), 'damaged after frame 0 of 14'),
            (lambda: videos[mine].write_bytes(b''), 'damaged after frame 0 of 14'),
            (lambda: rows[mine].write_bytes(rows[mine].read_bytes()[:-9]), 'parquet: cannot be read'),
            (rows[mine].unlink, 'parquet: cannot be read')):
        damage()
        episodes = open_episodes(root)
        with pytest.raises(RecordingError, match=words) as error:
            list(episodes[1].frames())
        assert str(root) in str(error.value) and '\n' not in str(error.value)
        if version != '3.0':
            assert len(list(episodes[0].frames())) == 5
        elif videos[mine].suffix == '.mp4' and rows[mine].exists():
            videos[mine].write_bytes(content)


@LAYOUTS
def test_rows_that_do_not_fit_are_refused(tmp_path, version):
    """Fewer than the dataset says, or without times: rewards would end up on the wrong rows."""
    root = dataset(tmp_path / 'set', version)
    file = sorted((root / 'data').rglob('*.parquet'))[0]
    rows = parquet.read_table(file)
    parquet.write_table(rows.slice(1), file)
    with pytest.raises(RecordingError, match='holds 4 rows of episode 0, of which .* it has 5'):
        list(open_episodes(root)[0].frames())
    parquet.write_table(rows.drop_columns(['timestamp']), file)
    with pytest.raises(RecordingError, match='has no column timestamp'):
        list(open_episodes(root)[0].frames())


@pytest.mark.parametrize(('values', 'words'), [
    ({'codebase_version': 'v1.6'}, "codebase_version is 'v1.6'; allowed is a LeRobot dataset of version v2"),
    ({'codebase_version': 'v4.0'}, "codebase_version is 'v4.0'"),
    ({'codebase_version': None}, 'codebase_version is None'),
    ({'fps': 0}, 'fps is 0.0; allowed is a number above 0'),
    ({'fps': 'fast'}, 'does not fit together'),
    ({'features': []}, 'does not fit together'),
    ({'features': {}}, 'no camera among its columns'),
    ({'video_path': None}, 'does not fit together'),
    ({'data_path': 'data/{nobody}.parquet'}, r"does not fit together \(KeyError: 'nobody'"),
])
@pytest.mark.parametrize('version', ['2.1', '3.0'])
def test_a_description_that_is_wrong_is_told(tmp_path, version, values, words):
    """In one line, with what is allowed."""
    root = dataset(tmp_path / 'set', version)
    edit_info(root, **values)
    with pytest.raises(RecordingError, match=words) as error:
        open_episodes(root)
    assert '\n' not in str(error.value) and 'allowed' in str(error.value)


@pytest.mark.parametrize(('name', 'content', 'version'), [
    ('info.json', '{', '3.0'), ('info.json', '[1]', '2.1'),
    ('episodes.jsonl', '{"episode_index": 0}\n', '2.1'), ('episodes.jsonl', 'no json', '2.0'),
    ('episodes.jsonl', '', '2.1'), ('episodes.jsonl', None, '2.1'),
    ('episodes/chunk-000/file-000.parquet', 'PAR1', '3.0'),
    ('episodes/chunk-000/file-000.parquet', None, '3.0'),
])
def test_broken_files_under_meta_are_told(tmp_path, name, content, version):
    """Cut off, empty or gone."""
    root = dataset(tmp_path / 'set', version)
    if content is None:
        (root / 'meta' / name).unlink()
    else:
        (root / 'meta' / name).write_text(content)
    words = 'cannot be read|does not fit|holds no episode|version is'
    with pytest.raises(RecordingError, match=words) as error:
        open_episodes(root)
    assert str(root) in str(error.value) and '\n' not in str(error.value)


def test_a_missing_library_is_told(tmp_path, monkeypatch):
    """By its name."""
    root = dataset(tmp_path / 'set')
    monkeypatch.setitem(sys.modules, 'pyarrow', None)
    with pytest.raises(RecordingError, match=r'needs the Python package pyarrow \(.*\): pip install pyarrow'):
        open_episodes(root)


@pytest.mark.parametrize(('images', 'count'), [(False, 150), (True, 60)])
def test_memory_stays_flat(tmp_path, images, count):
    """A long episode needs no more than a short one: 34 or 14 MB of pictures pass through less than 10."""
    noise = np.random.default_rng(0).integers(0, 255, (240, 640, 3), np.uint8)
    frames = [noise[:, i % 320:i % 320 + 320] for i in range(count)]
    root = make_lerobot(tmp_path / 'set', [frames], images=images)
    if images:  # pyarrow reads whole pages, so these must be smaller than the episode
        file = root / 'data/chunk-000/file-000.parquet'
        parquet.write_table(
            parquet.read_table(file), file, use_dictionary=False, write_batch_size=4, data_page_size=2**20)
    episode, = open_episodes(root)
    next(episode.frames())
    before, arrow = pyarrow.total_allocated_bytes(), 0
    tracemalloc.start()
    for frame in episode.frames():
        assert frame.image.shape == (240, 320, 3)
        arrow = max(arrow, pyarrow.total_allocated_bytes() - before)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000 and arrow < 10_000_000


@pytest.mark.parametrize('version', ['2.1', '3.0'])
@pytest.mark.parametrize('images', [False, True])
def test_real_videos_as_a_dataset(video_folder, tmp_path, version, images):
    """Recordings of robots as the episodes of one small dataset: as many frames, and the same pictures."""
    shown = []
    for path in sorted(video_folder.glob('*.mp4')):
        video, = open_episodes(path, 'stack')
        # One size for all, as a dataset has.
        shown.append([frame.image[:240:2, :320:2].copy() for frame in video.frames()])
    size = np.min([frames[0].shape for frames in shown], axis=0) // 2 * 2
    shown = [[image[:size[0], :size[1]] for image in frames] for frames in shown]
    root = make_lerobot(tmp_path / 'set', shown, version=version, images=images, fps=5)
    for episode, images_of in zip(open_episodes(root), shown, strict=True):
        assert episode.count == len(images_of)
        for number, frame in enumerate(episode.frames()):
            assert frame.stamp_ns == pytest.approx(number * 2e8, abs=1000)
            error = np.abs(frame.image.astype(int) - images_of[number])
            assert error.max() == 0 if images else error.mean() < 6
