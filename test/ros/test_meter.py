"""RateMeter: how often something happens."""

from __future__ import annotations

import pytest

from densereward_ros.ros.meter import RateMeter

MS = 1_000_000


def marked(*times_ms: float, span_s: float = 5.0) -> RateMeter:
    """A meter with events at these times."""
    meter = RateMeter(span_s)
    for time_ms in times_ms:
        meter.mark(round(time_ms * MS))
    return meter


@pytest.mark.parametrize('times_ms', [(), (100,)])
def test_no_rate_before_two_events(times_ms):
    """One event has no interval, so there is no rate yet; the count is exact all the same."""
    meter = marked(*times_ms)
    assert meter.rate(200 * MS) == 0.0
    assert meter.count == len(times_ms)


def test_a_steady_stream_reads_its_own_rate():
    """10 Hz reads 10.0 from the second event on, and halfway to the next one too."""
    for events in (2, 5, 40):
        meter = marked(*(100 * i for i in range(events)))
        last = 100 * (events - 1)
        assert meter.rate(last * MS) == pytest.approx(10.0)
        assert meter.rate((last + 50) * MS) == pytest.approx(10.0)


def test_a_stream_that_stopped_loses_its_rate():
    """Once events are overdue the rate falls with time, and after the span it is 0."""
    meter = marked(*(100 * i for i in range(11)))
    assert meter.rate(3000 * MS) == pytest.approx(10 / 3.0)
    assert meter.rate(6001 * MS) == 0.0
    assert meter.count == 11


def test_only_the_last_seconds_count():
    """A camera that was fast a minute ago and is slow now reads slow."""
    meter = marked(*(10 * i for i in range(100)), 60_000, 61_000, 62_000)
    assert meter.rate(62_000 * MS) == pytest.approx(1.0)
    assert meter.count == 103


def test_two_events_at_one_instant_do_not_divide_by_zero():
    """A burst with a coarse clock gives a finite rate."""
    assert marked(100, 100).rate(100 * MS) == pytest.approx(1e9)
