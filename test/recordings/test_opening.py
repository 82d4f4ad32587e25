"""Any recording becomes episodes with names, tasks, stamps and pictures."""

from __future__ import annotations

import numpy as np
import pytest

from clips import colour_of, picture, write_clip, write_images
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.opening import open_episodes
from recordings_made import make_bag, make_lerobot


def test_a_video_is_one_episode(tmp_path):
    """Named after its file; stamps are the file's times from 0, and frames arrive at their stamps."""
    path = write_clip(tmp_path / 'run 7.mp4', 6, rate=8)
    episode, = open_episodes(path, ' stack the cup\n')
    assert (episode.name, episode.source, episode.camera) == ('run_7', str(path), '')
    assert (episode.task, episode.count, episode.index) == ('stack the cup', 6, None)
    for _ in range(2):
        frames = list(episode.frames())
        assert [frame.stamp_ns for frame in frames] == [i * 125_000_000 for i in range(6)]
        assert all(frame.received_ns == frame.stamp_ns for frame in frames)
        for index, frame in enumerate(frames):
            assert np.abs(frame.image.reshape(-1, 3).mean(0) - colour_of(index)).max() < 6
    slow, = open_episodes(path, 'stack', rate=4.0)
    assert [frame.stamp_ns for frame in slow.frames()] == [i * 250_000_000 for i in range(6)]


def test_a_folder_of_images_is_one_episode(tmp_path):
    """With as many frames as it has files, at the rate that is given."""
    episode, = open_episodes(write_images(tmp_path / 'run.1', 12), 'stack', rate=10.0)
    assert (episode.name, episode.count) == ('run.1', 12)
    frames = list(episode.frames())
    assert [frame.stamp_ns for frame in frames] == [i * 100_000_000 for i in range(12)]
    assert all((frame.image == colour_of(i)).all() for i, frame in enumerate(frames))
    with pytest.raises(RecordingError, match='the rate given is 0'):
        open_episodes(tmp_path / 'run.1', 'stack')


@pytest.mark.parametrize('make', [
    lambda path: write_clip(path.with_suffix('.mp4'), 3, rate=8),
    lambda path: write_images(path, 3),
    lambda path: make_bag(path, [picture(0)]),
])
@pytest.mark.parametrize('task', ['', ' \n'])
def test_a_recording_without_a_task_is_refused(tmp_path, make, task):
    """Only a LeRobot dataset brings its own."""
    with pytest.raises(RecordingError, match=r'run.*: no task is given; allowed is one line of text'):
        open_episodes(make(tmp_path / 'run'), task, rate=1.0)


def test_a_dataset_and_a_bag_are_told_by_what_is_in_them(tmp_path):
    """Both are folders."""
    dataset = open_episodes(make_lerobot(tmp_path / 'set', [[picture(i) for i in range(3)]]))
    bag = open_episodes(make_bag(tmp_path / 'bag', [picture(i) for i in range(3)]), 'stack')
    assert [episode.name for episode in dataset + bag] == ['set-episode_000000-front', 'bag-camera_image_raw']
    assert [episode.index for episode in dataset + bag] == [0, None]


def test_what_is_not_there_is_refused(tmp_path):
    """With what could have been."""
    with pytest.raises(RecordingError, match='none: no such file .* a bag and a LeRobot dataset'):
        open_episodes(tmp_path / 'none', 'stack')
    with pytest.raises(RecordingError, match='no source given'):
        open_episodes('', 'stack')
