"""What the demo counts, and that a long run does not fill the memory."""

from __future__ import annotations

import numpy as np
import pytest

from densereward_ros.ros.demo import record
from densereward_ros.ros.demo.record import MAX_THUMBNAILS, DemoRecord, percentiles, thumbnail
from densereward_ros.types import Reason


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    class Clock:
        now = 100.0

        def monotonic(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(record, 'time', clock)
    return clock


def test_a_run(clock):
    """Times count from the first frame; a recovery lasts from its start to its end; a task is done once."""
    record = DemoRecord()
    assert record.now() == 0.0
    record.add_task('stack the cup')
    record.add_frame(lambda: np.zeros((4, 4, 3), np.uint8))
    for second, value in enumerate((0.1, 0.2, 0.3)):
        clock.now = 101.0 + second
        record.add_reward(value, Reason.CORRECT, 'stack the cup', 0.1, 0.15)
    record.add_failure(Reason.FALL, 0.3)
    record.add_recovery('started', 'fall: retry 1 of 3')
    clock.now = 105.0
    record.add_recovery('done', 'home')
    for progress in (0.5, 1.0, 1.0):
        record.add_truth(progress)
    assert record.rate() == pytest.approx(1.0)
    assert record.failures[0].seconds == 3.0 and record.failures[0].text == 'fall'
    span, = record.recoveries
    assert (span.start, span.end, span.text) == (3.0, 5.0, 'retry 1 of 3')
    assert [moment.seconds for moment in record.successes] == [5.0]
    assert [kind for _, kind, _ in record.news] == ['failure', 'recovery', 'recovery', 'success']
    record.end()
    clock.now = 500.0
    assert record.now() == 5.0


def test_only_finished_recoveries_count():
    """A recovery that failed, or was given up, is no recovery."""
    record = DemoRecord()
    for key in ('started', 'failed', 'gave_up', 'lost', 'done'):
        record.add_recovery(key, '')
    assert len(record.recoveries) == 1  # the one that was started, by the last message
    record = DemoRecord()
    record.add_recovery('started', '')
    record.add_recovery('failed', '')
    assert record.recoveries == []


def test_long_runs_stay_small(clock):
    """An hour of frames leaves a few hundred small pictures, spread over the hour."""
    record = DemoRecord()
    image = np.zeros((2, 2, 3), np.uint8)
    for tick in range(36000):
        clock.now = 100.0 + tick / 10
        record.add_frame(lambda: image)
    times = [seconds for seconds, _ in record.thumbnails]
    assert record.frames == 36000
    assert MAX_THUMBNAILS / 4 < len(times) <= MAX_THUMBNAILS
    assert max(np.diff(times)) < 60 and times[-1] > 3500


def test_thumbnails():
    """Large pictures shrink in proportion; small ones stay as they are."""
    assert thumbnail(np.zeros((1080, 1920, 3), np.uint8)).shape == (192, 341, 3)
    assert thumbnail(np.zeros((96, 128, 3), np.uint8)).shape == (96, 128, 3)


def test_percentiles():
    """Median and 95th percentile; NaN of nothing."""
    assert percentiles([1.0, 2.0, 3.0]) == pytest.approx((2.0, 2.9))
    assert np.isnan(percentiles([])).all()
