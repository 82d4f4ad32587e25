"""Camera: what became of the images of one topic."""

from __future__ import annotations

import time

import numpy as np
import pytest

from densereward_ros.frames.window import Arrival
from densereward_ros.ros.cameras import Camera
from densereward_ros.types import Frame, Reason, Verdict

TOPIC = '/camera/image_raw'
MS = 1_000_000


def frame(stamp_ms: float, received_ns: int | None = None) -> Frame:
    """A frame that has just arrived."""
    received_ns = time.monotonic_ns() if received_ns is None else received_ns
    return Frame(round(stamp_ms * MS), received_ns, lambda: np.zeros((2, 2, 3), np.uint8))


def filled(frame_interval: float = 0.2, max_frame_age: float = 1.0) -> Camera:
    """A camera with one window to take."""
    camera = Camera(TOPIC, frame_interval, max_frame_age)
    assert [camera.add(frame(t)) for t in (0, 200, 400)] == [False, False, True]
    return camera


def test_a_window_carries_topic_task_and_frames():
    """take() is where frames become a question: which camera, which task, which three frames."""
    camera = filled()
    window = camera.take('stack the cup')
    assert (window.camera, window.task) == (TOPIC, 'stack the cup')
    assert [f.stamp_ns for f in window.frames] == [0, 200 * MS, 400 * MS]
    assert camera.take('stack the cup') is None


def test_add_says_whether_there_is_a_window_to_score():
    """The worker is woken by this: True exactly when a new window is complete."""
    camera = filled()
    camera.take('')
    assert [camera.add(frame(t)) for t in (450, 600, 500)] == [False, True, True]
    camera.take('')
    assert camera.add(frame(550)) is False


def test_every_arrival_is_counted_by_its_fate():
    """The counts of the diagnostics: kept, between two, out of order, restarted after a jump."""
    camera = filled()
    for stamp_ms in (450, 400, 300, 600, -94_000):
        camera.add(frame(stamp_ms))
    assert camera.arrivals == {
        Arrival.KEPT: 4, Arrival.BETWEEN: 1, Arrival.OUT_OF_ORDER: 2, Arrival.RESTARTED: 1}


def test_a_window_that_a_newer_one_replaces_is_counted_as_skipped():
    """The model was too slow for it; a window that was taken, or never complete, was not skipped."""
    camera = filled()
    camera.add(frame(600))
    assert camera.skipped_windows == 1
    camera.add(frame(650))
    assert camera.skipped_windows == 1
    camera.take('')
    camera.add(frame(800))
    assert camera.skipped_windows == 1
    camera.add(frame(-94_000))
    assert camera.skipped_windows == 2


def test_an_undecodable_frame_is_forgotten_and_said():
    """The others stay: one more good frame makes a window again. The old verdict no longer stands."""
    camera = filled()
    window = camera.take('')
    camera.last_verdict = Verdict(0.5, Reason.CORRECT)
    camera.drop(window.frames[1], 'the data are 10 bytes')
    assert camera.undecodable == 1
    assert camera.last_image_error == 'the data are 10 bytes'
    assert camera.last_verdict is None
    assert camera.take('') is None
    assert camera.add(frame(600)) is True
    assert [f.stamp_ns for f in camera.take('').frames] == [0, 400 * MS, 600 * MS]


def test_a_new_episode_forgets_frames_and_verdict_but_not_the_counts():
    """No window reaches back into the last episode; the counts are those of the session."""
    camera = filled()
    camera.last_verdict = Verdict(0.5, Reason.CORRECT)
    segment = camera.take('').segment
    camera.new_episode()
    assert camera.last_verdict is None
    assert camera.take('') is None
    assert camera.arrivals[Arrival.KEPT] == 3
    assert [camera.add(frame(t)) for t in (600, 800, 1000)] == [False, False, True]
    assert camera.take('').segment == segment + 1


def test_a_window_too_old_is_not_given_out():
    """max_frame_age counts from arrival, whatever the stamps say."""
    camera = Camera(TOPIC, 0.2, 1.0)
    long_ago = time.monotonic_ns() - 1500 * MS
    for stamp_ms in (0, 200, 400):
        camera.add(frame(stamp_ms, long_ago))
    assert camera.take('') is None
    assert camera.starved()


@pytest.mark.parametrize(('stamps_ms', 'starved'), [
    ((0, 200, 400), False),
    ((0, 200, 400, -94_000), False),
    ((0, 200, 400, -94_000, -93_800, -93_600), False),
    ((0, 2000), False),
    ((0, 2000, 4000), True),
    ((0, 90_000, 100, 90_100), True),
])
def test_a_camera_starves_when_frames_come_but_never_a_window(stamps_ms, starved):
    """One jump is life (a looped bag); jump upon jump is a camera too slow, or two on one topic."""
    camera = Camera(TOPIC, 0.2, 1.0)
    for stamp_ms in stamps_ms:
        camera.add(frame(stamp_ms))
    assert camera.starved() is starved
    camera.new_episode()
    assert not camera.starved()


def test_age_and_rate_count_every_image_that_arrives():
    """They watch the topic, whether or not a frame is of use; before the first there is no age."""
    camera = Camera(TOPIC, 0.2, 1.0)
    assert camera.age_s() is None
    received_ns = camera.mark_received()
    assert abs(time.monotonic_ns() - received_ns) < 50 * MS
    time.sleep(0.05)
    assert camera.age_s() == pytest.approx(0.05, abs=0.04)
    assert camera.received.count == 1
