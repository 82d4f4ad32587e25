"""FrameWindow: which frames a reward model sees, and when."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.frames.window import Arrival, FrameWindow, Readiness
from densereward_ros.types import Frame

MS = 1_000_000


def frame(stamp_ms: float, received_ms: float | None = None) -> Frame:
    """A black frame; it arrives when it was taken unless told otherwise."""
    received_ms = stamp_ms if received_ms is None else received_ms
    return Frame(round(stamp_ms * MS), round(received_ms * MS), lambda: np.zeros((2, 2, 3), np.uint8))


def stamps_ms(frames) -> list[float]:
    """The stamps of frames in milliseconds."""
    return [f.stamp_ns / MS for f in frames]


def test_three_frames_at_the_spacing_make_a_window():
    """A 10 Hz camera and a 0.2 s spacing: every second frame, oldest first."""
    window = FrameWindow(0.2, 1.0)
    arrivals = [window.add(frame(t)) for t in range(0, 500, 100)]
    assert arrivals == [Arrival.KEPT, Arrival.BETWEEN, Arrival.KEPT, Arrival.BETWEEN, Arrival.KEPT]
    assert stamps_ms(window.take(400 * MS)) == [0, 200, 400]


def test_zero_spacing_means_frames_as_they_arrive():
    """frame_interval 0 is the last three frames, as in the model card's example."""
    window = FrameWindow(0.0, 1.0)
    for t in (0, 33, 66, 100):
        assert window.add(frame(t)) is Arrival.KEPT
    assert stamps_ms(window.take(100 * MS)) == [33, 66, 100]


def test_jitter_does_not_cost_a_camera_period():
    """A frame some milliseconds early is the one meant; waiting for the next would space by 0.3 s."""
    window = FrameWindow(0.2, 1.0)
    for t in (0, 97, 195, 301, 392):
        window.add(frame(t))
    assert stamps_ms(window.take(392 * MS)) == [0, 195, 392]


def test_a_window_is_given_out_once():
    """The same three frames are never scored twice; one new kept frame makes a new window."""
    window = FrameWindow(0.2, 1.0)
    for t in (0, 200, 400):
        window.add(frame(t))
    assert window.take(400 * MS) is not None
    assert window.readiness(401 * MS) is Readiness.ALREADY_TAKEN
    assert window.take(401 * MS) is None
    window.add(frame(500))
    assert window.take(500 * MS) is None
    window.add(frame(600))
    assert stamps_ms(window.take(600 * MS)) == [200, 400, 600]


@pytest.mark.parametrize(('age_ms', 'ready'), [(1000, True), (1001, False)])
def test_a_window_older_than_the_limit_is_not_given_out(age_ms, ready):
    """The newest frame may be exactly max_frame_age old, measured from its arrival."""
    window = FrameWindow(0.2, 1.0)
    for t in (0, 200, 400):
        window.add(frame(t))
    assert (window.take((400 + age_ms) * MS) is not None) is ready


def test_age_is_measured_from_arrival_not_from_stamps():
    """A camera whose clock is an hour behind is not stale."""
    window = FrameWindow(0.2, 1.0)
    for t in (0, 200, 400):
        window.add(frame(t, received_ms=3_600_000 + t))
    assert window.take(3_600_500 * MS) is not None


def test_a_frame_that_was_held_up_is_stale_although_its_stamp_is_in_step():
    """Frames whose stamps are 0.2 s apart but which arrived seconds apart do not make a window."""
    window = FrameWindow(0.2, 1.0)
    window.add(frame(0, 0))
    window.add(frame(200, 5000))
    window.add(frame(400, 5200))
    assert window.readiness(5200 * MS) is Readiness.STALE


def test_out_of_order_and_repeated_frames_are_dropped():
    """A late frame never enters the window, and a repeated one makes no new window."""
    window = FrameWindow(0.0, 1.0)
    for t in (0, 100, 200):
        window.add(frame(t))
    assert window.take(200 * MS) is not None
    assert window.add(frame(150, 210)) is Arrival.OUT_OF_ORDER
    assert window.add(frame(200, 220)) is Arrival.OUT_OF_ORDER
    assert window.take(220 * MS) is None


@pytest.mark.parametrize('stamp_ms', [-94_000, 10_000])
def test_a_clock_jump_empties_the_window(stamp_ms):
    """A looped bag or a stepped clock starts a new window of frames from the new time alone."""
    window = FrameWindow(0.2, 1.0)
    for t in (0, 200, 400):
        window.add(frame(t))
    segment = window.segment
    assert window.add(frame(stamp_ms, 600)) is Arrival.RESTARTED
    assert window.segment == segment + 1
    assert window.readiness(600 * MS) is Readiness.FILLING
    window.add(frame(stamp_ms + 200, 800))
    window.add(frame(stamp_ms + 400, 1000))
    assert stamps_ms(window.take(1000 * MS)) == [stamp_ms, stamp_ms + 200, stamp_ms + 400]


def test_clear_starts_a_new_episode():
    """After clear() nothing of the old episode is left, even for a window that was ready."""
    window = FrameWindow(0.2, 1.0)
    for t in (0, 200, 400):
        window.add(frame(t))
    window.clear()
    assert window.take(400 * MS) is None
    window.add(frame(600))
    assert window.readiness(600 * MS) is Readiness.FILLING


def test_a_dropped_frame_is_replaced_by_the_next():
    """A frame that cannot be decoded leaves, and the window fills again from what follows."""
    window = FrameWindow(0.2, 1.0)
    bad = frame(200)
    for f in (frame(0), bad, frame(400)):
        window.add(f)
    assert window.take(400 * MS) is not None
    window.drop(bad)
    assert window.readiness(410 * MS) is Readiness.FILLING
    window.add(frame(600))
    assert stamps_ms(window.take(600 * MS)) == [0, 400, 600]


@pytest.mark.parametrize(
    ('interval', 'age', 'name'), [(-0.1, 1.0, 'frame_interval'), (0.2, 0.0, 'max_frame_age'),
                                  (float('nan'), 1.0, 'frame_interval')]
)
def test_wrong_settings_are_refused_by_name(interval, age, name):
    """The error names the setting."""
    with pytest.raises(ValueError, match=name):
        FrameWindow(interval, age)


@given(
    interval_ms=st.sampled_from([0, 50, 200, 1000]),
    arrivals=st.lists(
        st.tuples(st.integers(-3000, 3000), st.integers(0, 1500), st.booleans()), max_size=60
    ),
)
def test_whatever_arrives_windows_are_ordered_spaced_young_and_never_repeated(interval_ms, arrivals):
    """Stamps that wander, repeat and jump: every window given out keeps all four promises."""
    window = FrameWindow(interval_ms / 1000, 1.0)
    stamp_ms, now_ms, seen = 10_000, 0, set()
    for step_ms, wait_ms, ask in arrivals:
        stamp_ms += step_ms
        now_ms += wait_ms
        window.add(frame(stamp_ms, now_ms))
        if not ask:
            continue
        frames = window.take(now_ms * MS)
        if frames is None:
            continue
        stamps = stamps_ms(frames)
        assert len(stamps) == 3
        assert all(0.9 * interval_ms <= late - early <= 1000 + interval_ms and late > early
                   for early, late in pairwise(stamps))
        for steps_back, f in enumerate(reversed(frames)):
            assert now_ms - f.received_ns / MS <= 1000 + steps_back * interval_ms
        identity = tuple(id(f) for f in frames)
        assert identity not in seen
        seen.add(identity)


@given(jitter_ms=st.lists(st.integers(0, 900), min_size=30, max_size=30))
def test_arrival_jitter_does_not_change_which_frames_are_kept(jitter_ms):
    """The same stamps give the same kept frames, however the transport delays them."""
    def kept(delays):
        window = FrameWindow(0.2, 1.0)
        return [t for t, delay in zip(range(0, 3000, 100), delays, strict=True)
                if window.add(frame(t, t + delay)) is Arrival.KEPT]

    assert kept(jitter_ms) == kept([0] * 30)
