"""Windows of a recording: those that a camera with the same frames would have given."""

from __future__ import annotations

import pytest

from clips import colour_of, write_images
from densereward_ros.recordings.opening import open_recording
from densereward_ros.recordings.windows import windows_of


@pytest.mark.parametrize(
    ('interval', 'frames'),
    [(0.2, [(0, 2, 4), (2, 4, 6), (4, 6, 8)]), (0.0, [(i, i + 1, i + 2) for i in range(7)])])
def test_windows_of_a_folder(tmp_path, interval, frames):
    """Nine images at 10 Hz: at 0.2 s every second one counts; at 0.0 s each; every window comes once."""
    recording = open_recording(write_images(tmp_path / 'clip', 9), 10.0)
    windows = list(windows_of(recording, 'stack the cups', interval))
    assert [
        tuple(round(frame.stamp_ns / 1e8) for frame in window.frames) for window in windows] == frames
    for window, indices in zip(windows, frames):
        assert (window.camera, window.task) == ('clip', 'stack the cups')
        assert [tuple(frame.image[0, 0]) for frame in window.frames] == [colour_of(i) for i in indices]
