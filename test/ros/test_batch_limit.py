"""How far the number of windows at once falls, and when it rises again."""

from __future__ import annotations

from densereward_ros.ros.batch_limit import BatchLimit

SECOND = 1_000_000_000


def test_it_is_halved_from_what_did_not_fit_and_never_below_one():
    """Four cameras of which three were due: the three did not fit, so one is tried."""
    limit = BatchLimit(4)
    assert limit.now == 4
    limit.ran_out(3, 0)
    assert limit.now == 1
    limit.ran_out(1, 0)
    assert limit.now == 1


def test_it_rises_by_one_every_thirty_seconds_in_which_batches_fit():
    """Slowly, since each try may cost a tick, and never above the number of cameras."""
    limit = BatchLimit(3)
    limit.ran_out(3, 0)
    seen = []
    for second in range(100):
        limit.fitted(second * SECOND)
        seen.append(limit.now)
    assert (seen.index(2), seen.index(3), max(seen)) == (30, 60, 3)


def test_work_ahead_that_does_not_fit_lowers_nothing_but_is_remembered():
    """The windows themselves did fit; only the luxury of reading ahead is given up for a while."""
    limit = BatchLimit(2)
    limit.ran_out(0, 0)
    assert limit.now == 2
    assert limit.short(29 * SECOND)
    assert not limit.short(30 * SECOND)
