"""Windows and verdicts of a recording are those that the node would have seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.frames.window import FrameWindow
from densereward_ros.recordings.episode import Episode
from densereward_ros.recordings.judging import judge
from densereward_ros.recordings.windows import windows_of
from densereward_ros.types import Frame, ImageError, MalformedReply, Reason, Verdict

NS_PER_S = 1_000_000_000


def episode(times, stamps=None, bad=()) -> Episode:
    """Numbered pictures that arrive at given times, in seconds; stamps: of them, where these are others."""
    def decode(number):
        if number in bad:
            raise ImageError(f'picture {number} is damaged')
        return np.full((2, 2, 3), number % 256, np.uint8)

    def frames():
        for number, (seconds, stamp) in enumerate(zip(times, stamps or times)):
            yield Frame(
                round(stamp * NS_PER_S), round(seconds * NS_PER_S), lambda number=number: decode(number))

    return Episode('pictures', 'pictures.mp4', '', 'stack', frames)


def numbers(seen) -> list[list[int]]:
    """Which pictures the windows hold."""
    return [[int(frame.image[0, 0, 0]) for frame in one.window.frames] for one in seen]


def test_windows_slide_by_their_spacing():
    """Ten frames a second at 0.2 s: every other frame; a pause of two seconds starts another segment."""
    times = [i / 10 for i in range(9)] + [3.0 + i / 10 for i in range(5)]
    seen = list(windows_of(episode(times), 0.2))
    assert numbers(seen) == [[0, 2, 4], [2, 4, 6], [4, 6, 8], [9, 11, 13]]
    assert [one.window.segment for one in seen] == [0, 0, 0, 1]
    assert [(one.frame, one.seconds) for one in seen] == [(4, 0.4), (6, 0.6), (8, 0.8), (13, 3.4)]
    assert {(one.window.camera, one.window.task) for one in seen} == {('pictures', 'stack')}


def test_ages_and_seconds_are_those_of_arrival_and_stamps_choose():
    """A bag: the camera's clock starts at noon and jumps back; the log's own goes on."""
    times = [50.0 + i / 5 for i in range(8)]
    stamps = [43_200 + i / 5 for i in range(4)] + [100 + i / 5 for i in range(4)]
    seen = list(windows_of(episode(times, stamps), 0.2))
    assert numbers(seen) == [[0, 1, 2], [1, 2, 3], [4, 5, 6], [5, 6, 7]]
    assert [round(one.seconds, 6) for one in seen] == [0.4, 0.6, 1.2, 1.4]
    assert [one.window.segment for one in seen] == [0, 0, 1, 1]
    # Frames that were stuck on their way for seconds are too old when the window is complete.
    late = [50.0, 54.0, 58.0, 58.2, 58.4]
    assert numbers(windows_of(episode(late, stamps[:4] + [43_200.8]), 0.2)) == [[2, 3, 4]]


def test_an_image_that_cannot_be_decoded_is_left_out_and_told():
    """The others stay in the window, as in the node; so one damaged picture costs one verdict."""
    told = []
    seen = list(windows_of(episode([i / 5 for i in range(7)], bad=(3,)), 0.2, 1.0, told.append))
    assert numbers(seen) == [[0, 1, 2], [1, 2, 4], [2, 4, 5], [4, 5, 6]]
    assert [str(error) for error in told] == ['picture 3 is damaged']


@given(st.lists(st.floats(-1.5, 2.0), min_size=1, max_size=60), st.sampled_from([0.0, 0.1, 0.2, 0.5]))
def test_windows_are_those_of_a_frame_window_fed_at_arrival(steps, interval):
    """Whatever the stamps do: three frames of one run, in order, each newest frame once."""
    stamps = [10.0 + sum(steps[:i + 1]) for i in range(len(steps))]
    times = [i / 10 for i in range(len(steps))]
    chooser, expected = FrameWindow(interval), []
    for frame in episode(times, stamps).frames():
        chooser.add(frame)
        if frames := chooser.take(frame.received_ns):
            expected.append(([one.stamp_ns for one in frames], chooser.segment))
    seen = list(windows_of(episode(times, stamps), interval))
    got = [([one.stamp_ns for one in window.frames], window.segment) for _, _, window in seen]
    assert got == expected
    assert [one.frame for one in seen] == sorted({one.frame for one in seen})


def test_judging_keeps_stamps_and_verdicts_and_lets_the_images_go():
    """Malformed replies are counted and left out; the order is that of the windows."""
    class Model:
        def score(self, windows):
            return [
                MalformedReply('?', 'no') if window.newest.stamp_ns % 400_000_000 == 0
                else Verdict(0.5, Reason.CORRECT) for window in windows]

    judged, malformed = judge(
        Model(), (one.window for one in windows_of(episode([i / 5 for i in range(40)]), 0.2)))
    assert malformed == 19 and len(judged) == 19
    stamps = [window.newest.stamp_ns for window, _ in judged]
    assert stamps == [600_000_000 + 400_000_000 * i for i in range(19)]
    with pytest.raises(ImageError, match='let go'):
        judged[0][0].newest.image  # noqa: B018
