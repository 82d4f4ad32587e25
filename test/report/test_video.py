"""The video with the verdicts in it: what plays, when, and that a half one is never left."""

from __future__ import annotations

import math
from pathlib import Path

import av
import numpy as np
import pytest

from densereward_ros.report import video
from densereward_ros.report.timeline import FAILURE, SUCCESS
from densereward_ros.report.video import OverlayVideo
from densereward_ros.types import Frame, ImageError, Reason, Rule, Window
from made_scores import episode, rising


def window(scored, i: int, size=(96, 128)) -> Window:
    """Three frames, 0.2 s apart, the newest of which is the i-th verdict's."""
    newest = scored.frames[i].stamp_ns
    image = np.full((*size, 3), (60, 60 + i % 128, 120), np.uint8)
    return Window('', '', tuple(Frame(newest - back * 200_000_000, 0, lambda: image) for back in (2, 1, 0)))


def written(file: Path, scored, **options) -> bool:
    """Whether a video was made of all verdicts of an episode."""
    film = OverlayVideo(file, scored)
    for i, frame in enumerate(scored.frames):
        film.add(window(scored, i, **options), frame)
    return film.close()


def played(file: Path):
    """The stream's facts, and its pictures with their times."""
    with av.open(str(file)) as container:
        stream = container.streams.video[0]
        frames = [(frame.time, frame.to_ndarray(format='rgb24')) for frame in container.decode(stream)]
        context = stream.codec_context
        size = context.width, context.height
        return context.name, context.pix_fmt, size, container.duration / 1e6, frames


def has(picture: np.ndarray, colour: str) -> int:
    """How many pixels have about that colour."""
    wanted = [int(colour[i:i + 2], 16) for i in (1, 3, 5)]
    return int((np.abs(picture.astype(int) - wanted).max(axis=2) < 30).sum())


def test_the_video_has_the_times_of_the_episode(tmp_path):
    """H.264 that every player knows, ready to stream; the event is seen from its moment on."""
    scored = episode('x', rising(30), {15: Reason.MISS})
    assert written(tmp_path / 'a' / 'x.mp4', scored)
    name, pixels, (width, height), seconds, frames = played(tmp_path / 'a' / 'x.mp4')
    assert (name, pixels, width, height % 2) == ('h264', 'yuv420p', 960, 0)
    assert frames[0][0] == 0.0  # the first verdict is there from the start
    assert [time for time, _ in frames[1:30]] == pytest.approx([frame.seconds for frame in scored.frames[1:]])
    assert seconds == pytest.approx(scored.frames[-1].seconds + 1.0, abs=0.1)
    at = next(i for i, (time, _) in enumerate(frames) if time >= scored.events[0].seconds - 1e-6)
    assert has(frames[at][1], FAILURE) > 500 and has(frames[at - 3][1], FAILURE) == 0
    assert has(frames[at - 3][1], SUCCESS) > 500
    data = (tmp_path / 'a' / 'x.mp4').read_bytes()
    assert 0 < data.find(b'moov') < data.find(b'mdat')
    assert [file.name for file in (tmp_path / 'a').iterdir()] == ['x.mp4']


def test_where_the_encoder_is_missing(tmp_path, monkeypatch):
    """As in a build of FFmpeg without x264: MPEG-4, which PyAV always has."""
    monkeypatch.setattr(video, 'ENCODERS', ('no such encoder', 'mpeg4'))
    assert written(tmp_path / 'x.mp4', episode('x', rising(5)))
    name, pixels, _, _, frames = played(tmp_path / 'x.mp4')
    assert (name, pixels, len(frames)) == ('mpeg4', 'yuv420p', 6)


def test_malformed_replies_leave_the_picture_standing(tmp_path):
    """Nothing is drawn for them; of an episode without a verdict there is no video."""
    scored = episode('x', [0.2, None, None, 0.4])
    assert written(tmp_path / 'x.mp4', scored)
    assert [time for time, _ in played(tmp_path / 'x.mp4')[-1][:2]] == pytest.approx([0.0, 1.0])
    assert not written(tmp_path / 'none.mp4', episode('none', [None] * 3))
    assert [file.name for file in tmp_path.iterdir()] == ['x.mp4']


def test_a_clock_that_jumps_back(tmp_path):
    """The video goes on, a step later."""
    scored = episode('x', rising(6))
    film = OverlayVideo(tmp_path / 'x.mp4', scored)
    for i in (3, 4, 0, 1, 2):
        film.add(window(scored, i), scored.frames[i])
    assert film.close()
    times = [time for time, _ in played(tmp_path / 'x.mp4')[-1]]
    assert times == pytest.approx([0.0, 1.2, 1.4, 1.6, 1.8, 2.8])


@pytest.mark.parametrize('size', [(1080, 1920), (33, 501), (1, 1)])
def test_any_camera(tmp_path, size):
    """Large, odd and tiny; a model without words; a task of two lines makes another height."""
    scored = episode('x', [-1e6, math.pi, 0.0], {1: Reason.FAILURE}, Rule.REWARD_DROP, words=False,
                     task='a task that is long enough for a second line of it ' * 2)
    assert written(tmp_path / 'x.mp4', scored, size=size)
    assert len(played(tmp_path / 'x.mp4')[-1]) == 4


def test_nothing_is_left_of_a_video_that_is_not_finished(tmp_path):
    """An image that cannot be used, in the middle."""
    scored = episode('x', rising(3))
    film = OverlayVideo(tmp_path / 'x.mp4', scored)
    film.add(window(scored, 0), scored.frames[0])

    def broken():
        raise ImageError('not an image')

    with pytest.raises(ImageError):
        film.add(Window('', '', (Frame(0, 0, broken),)), scored.frames[1])
    film.discard()
    assert list(tmp_path.iterdir()) == []
