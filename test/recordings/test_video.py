"""Video files: pictures, times, and what is refused."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from clips import colour_of, write_clip
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.opening import open_recording


def test_pictures_and_times(tmp_path):
    """Every frame arrives in order, as RGB in its own colours, at the video's own times."""
    video = open_recording(write_clip(tmp_path / 'clip.mp4', 12, rate=8))
    assert video.name == 'clip.mp4'
    assert video.rate == pytest.approx(8.0)
    frames = list(video.frames())
    assert [seconds for seconds, _ in frames] == pytest.approx([index / 8 for index in range(12)])
    for index, (_, image) in enumerate(frames):
        assert image.shape == (48, 64, 3) and image.dtype == np.uint8 and image.flags.c_contiguous
        assert np.abs(image.reshape(-1, 3).mean(0) - colour_of(index)).max() < 6


def test_uneven_times(tmp_path):
    """The file's time stamps count, not its average rate; a rate that is given replaces them."""
    path = write_clip(tmp_path / 'uneven.mkv', 4, rate=10, ticks=[0, 1, 5, 20])
    assert [seconds for seconds, _ in open_recording(path).frames()] == pytest.approx([0, 0.1, 0.5, 2.0])
    even = open_recording(path, rate=4.0)
    assert even.rate == 4.0
    assert [seconds for seconds, _ in even.frames()] == pytest.approx([0, 0.25, 0.5, 0.75])


def test_read_again(tmp_path):
    """frames() starts over at each call, also while another pass is under way."""
    video = open_recording(write_clip(tmp_path / 'clip.mp4', 5, rate=10))
    first = video.frames()
    next(first)
    assert len(list(video.frames())) == 5
    assert len(list(first)) == 4


@pytest.mark.parametrize('name, content, words', [
    ('empty.mp4', b'', 'the file is empty'),
    ('noise.mp4', bytes(range(256)) * 80, 'not a video'),
    ('text.txt', b'a video would be nice\n' * 40, 'not a video'),
])
def test_refused(tmp_path, name, content, words):
    """A file that is no video is refused when it is opened, in one line that names it and what is allowed."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordingError) as error:
        open_recording(tmp_path / name)
    text = str(error.value)
    assert str(tmp_path / name) in text and words in text and 'allowed is a video file' in text
    assert '\n' not in text


def test_single_picture_refused(tmp_path):
    """FFmpeg would read a photograph as a video of one frame."""
    Image.new('RGB', (32, 24)).save(tmp_path / 'photo.png')
    with pytest.raises(RecordingError, match='not a video'):
        open_recording(tmp_path / 'photo.png')


def test_missing_and_unnamed(tmp_path):
    """A path that is not there, and no path at all."""
    with pytest.raises(RecordingError, match='no such file or folder'):
        open_recording(tmp_path / 'none.mp4')
    with pytest.raises(RecordingError, match='no source given'):
        open_recording('')


def test_real_videos(video_folder):
    """Real recordings of robots: every frame of them, in order."""
    lengths = {}
    for path in sorted(video_folder.glob('*.mp4')):
        video = open_recording(path)
        frames = list(video.frames())
        times = [seconds for seconds, _ in frames]
        assert times[0] == 0.0 and times == sorted(times)
        assert times[-1] == pytest.approx((len(frames) - 1) / video.rate, abs=0.5 / video.rate)
        assert all(image.std() > 10 for _, image in frames)
        lengths[path.name] = len(frames)
    assert lengths and min(lengths.values()) > 10


@pytest.mark.timeout(30)
def test_damaged_real_video(video_folder, tmp_path):
    """Damage in the middle stops the reading with one line that says where; nothing hangs."""
    content = sorted(video_folder.glob('*.mp4'))[0].read_bytes()
    third = len(content) // 3
    path = tmp_path / 'damaged.mp4'
    path.write_bytes(content[:third] + os.urandom(third) + content[2 * third:])
    count = 0
    with pytest.raises(RecordingError, match=r'damaged|not a video|holds no') as error:
        for _ in open_recording(path).frames():
            count += 1
    assert '\n' not in str(error.value)
    gc.collect()


def test_a_log_level_set_by_others_blocks_nothing(video_folder):
    """torchvision sets one when it is imported: closing a file in the middle then waited for ever."""
    script = f"""
import av
from densereward_ros.recordings.video import Video
videos = [Video(path) for path in {sorted(map(str, video_folder.glob('*.mp4')))!r}]
for _ in range(100):
    for video in videos:
        av.logging.set_level(av.logging.ERROR)
        next(video.frames())
"""
    subprocess.run([sys.executable, '-c', script], check=True, timeout=60)
