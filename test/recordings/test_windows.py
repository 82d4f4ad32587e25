"""Windows and verdicts of a recording are those that the node would have seen."""

from __future__ import annotations

import numpy as np
import pytest

from densereward_ros.recordings.judging import judge
from densereward_ros.recordings.windows import windows_of
from densereward_ros.types import ImageError, MalformedReply, Reason, Verdict


class Pictures:
    """A recording of numbered pictures at given times."""

    name, rate = 'pictures', 10.0

    def __init__(self, times) -> None:
        self._times = times

    def frames(self):
        """One picture a time."""
        for number, seconds in enumerate(self._times):
            yield seconds, np.full((2, 2, 3), number, np.uint8)


def test_windows_slide_by_their_spacing():
    """Ten frames a second at 0.2 s: every other frame; a pause of two seconds starts another segment."""
    times = [i / 10 for i in range(9)] + [3.0 + i / 10 for i in range(5)]
    windows = list(windows_of(Pictures(times), 'stack', 0.2))
    seen = [[int(frame.image[0, 0, 0]) for frame in window.frames] for window in windows]
    assert seen == [[0, 2, 4], [2, 4, 6], [4, 6, 8], [9, 11, 13]]
    assert [window.segment for window in windows] == [0, 0, 0, 1]
    assert {(window.camera, window.task) for window in windows} == {('pictures', 'stack')}


def test_judging_keeps_stamps_and_verdicts_and_lets_the_images_go():
    """Malformed replies are counted and left out; the order is that of the windows."""
    class Model:
        def score(self, windows):
            return [
                MalformedReply('?', 'no') if window.newest.stamp_ns % 400_000_000 == 0
                else Verdict(0.5, Reason.CORRECT) for window in windows]

    judged, malformed = judge(Model(), windows_of(Pictures([i / 5 for i in range(40)]), 'stack', 0.2))
    assert malformed == 19 and len(judged) == 19
    stamps = [window.newest.stamp_ns for window, _ in judged]
    assert stamps == [600_000_000 + 400_000_000 * i for i in range(19)]
    with pytest.raises(ImageError, match='let go'):
        judged[0][0].newest.image  # noqa: B018
