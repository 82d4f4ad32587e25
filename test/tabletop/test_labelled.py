"""Recordings of the demo world: labels that are true, frames that are the same whoever reads them."""

from __future__ import annotations

import numpy as np
import pytest

from densereward_ros.tabletop.labelled import episodes
from densereward_ros.types import FAILURES


@pytest.fixture(scope='module')
def sixteen():
    """Two rounds."""
    return episodes(16, seed=3)


def test_a_round_has_successes_recoveries_and_failures(sixteen):
    """Of sixteen six go well, five of ten failures are helped, and each failure comes once of either kind."""
    clean = [one for one in sixteen if not one.labels.failures]
    assert len(clean) == 6 and all(one.labels.success for one in clean)
    for success in (True, False):
        failed = [one for one in sixteen if one.labels.failures and one.labels.success is success]
        assert {failure.reason for one in failed for failure in one.labels.failures} == set(FAILURES)
        assert len(failed) == 5
    assert len({one.name for one in sixteen}) == 16
    assert [one.index for one in sixteen] == list(range(16))


def test_labels_and_frames_share_their_clock(sixteen):
    """Ten frames a second; a point of progress for each; a lone failure ends two seconds after its onset."""
    for one in sixteen:
        stamps = [frame.stamp_ns for frame in one.frames()]
        assert stamps == [tick * 100_000_000 for tick in range(one.count)]
        assert [round(seconds * 1e9) for seconds, _ in one.labels.progress] == stamps
        assert all(0.0 <= value <= 1.0 for _, value in one.labels.progress)
        assert (one.labels.progress[-1][1] == 1.0) is one.labels.success
        if not one.labels.success:
            assert stamps[-1] / 1e9 - one.labels.failures[-1].seconds == pytest.approx(2.0)


def test_pictures_do_not_depend_on_who_looked_before(sixteen):
    """The eleventh frame alone, and after the ten before it, in another run of the same seed."""
    one, again = sixteen[1], episodes(2, seed=3)[1]
    alone = list(one.frames())[10].image
    in_turn = [frame.image for frame in again.frames()][10]
    assert alone.shape == (96, 128, 3) and alone.dtype == np.uint8
    assert np.array_equal(alone, in_turn)


def test_another_seed_is_another_episode(sixteen):
    """And no episodes are none."""
    assert episodes(1, seed=4)[0].labels != sixteen[0].labels
    assert episodes(0) == []
