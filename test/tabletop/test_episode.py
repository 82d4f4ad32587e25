"""Live and recorded episodes."""

from __future__ import annotations

import numpy as np
import pytest

from densereward_ros.tabletop.episode import LiveTable, record
from densereward_ros.types import FAILURES, Reason


def _trace(table: LiveTable, ticks: int) -> list:
    views = []
    for _ in range(ticks):
        table.step()
        views.append(table.world.snapshot())
    return views


@pytest.mark.parametrize('mishaps', [(), (Reason.FALL, Reason.MISS), (Reason.COLLISION,)])
def test_the_same_seed_gives_the_same_world(mishaps):
    """Same scene, same task, same ticks; another seed gives another."""
    one, two, other = LiveTable(5, mishaps), LiveTable(5, mishaps), LiveTable(6, mishaps)
    assert one.task == two.task
    trace = _trace(one, 120)
    assert trace == _trace(two, 120)
    assert trace != _trace(other, 120)


def test_looking_changes_nothing():
    """A camera that renders, or does not, sees the same robot."""
    one, two = LiveTable(8, (Reason.MISS,)), LiveTable(8, (Reason.MISS,))
    for _ in range(100):
        one.step()
        one.render()
        two.step()
    assert one.world.snapshot() == two.world.snapshot()


def test_the_task_names_things_that_are_there():
    """And distractors of other colours lie around."""
    table = LiveTable(2)
    assert table.goal.block in table.task and table.goal.plate in table.task
    things = table.world.things
    assert {'block', 'plate'} <= {t.kind for t in things if t.colour not in ()}
    assert any(t.kind == 'block' and t.colour != table.goal.block for t in things)
    assert any(t.kind == 'plate' and t.colour != table.goal.plate for t in things)


def test_without_mishaps_it_succeeds_in_ten_seconds():
    """progress ends at one, done turns true, and the arm rests."""
    table = LiveTable(11)
    for _ in range(100):
        table.step()
    assert table.done
    assert table.progress == 1.0
    assert table.world.snapshot().at_home


@pytest.mark.parametrize('reason', FAILURES)
def test_help_after_a_mishap_leads_to_success(reason):
    """The loop closes: mishap, recover(), and the second attempt does the task."""
    table = LiveTable(4, (reason,))
    ticks = 0
    while table.robot.mishap_at is None:
        table.step()
        ticks += 1
        assert ticks < 100
    for _ in range(10):
        table.step()
    assert not table.done
    table.recover()
    for _ in range(160):
        table.step()
    assert table.done and table.progress == 1.0


@pytest.mark.parametrize('reason', FAILURES)
def test_without_help_it_waits_six_seconds_and_tries_again(reason):
    """Nothing succeeds before; then the robot finds out by itself."""
    table = LiveTable(4, (reason,))
    while table.robot.mishap_at is None:
        table.step()
    for _ in range(55):
        table.step()
        assert table.progress < 0.9
    for _ in range(200):
        table.step()
    assert table.done


@pytest.mark.parametrize('seed', range(8))
def test_every_attempt_suffers_its_mishap(seed):
    """Five mishaps in a row, help two seconds after each: they happen, and then it succeeds."""
    table = LiveTable(seed, FAILURES)
    seen = []
    for _ in range(1500):
        table.step()
        since = table.robot.mishap_at
        if since is not None and since not in seen:
            seen.append(since)
        if since is not None and table.world.tick - since == 20:
            table.recover()
        if table.done:
            break
    assert len(seen) >= len(FAILURES) - 1  # a collision needs room, which a later attempt may not find
    assert table.done


def test_recover_does_no_harm_when_nothing_is_wrong():
    """Asked at any time, the robot still succeeds in the end."""
    for at in (1, 15, 30, 45, 60, 75):
        table = LiveTable(9)
        for tick in range(260):
            if tick == at:
                table.recover()
            table.step()
        assert table.done and table.progress == 1.0


def test_the_next_task_is_a_new_scene():
    """Not done any more, and a robot that gets there again."""
    table = LiveTable(3, (Reason.MISS,))
    for _ in range(250):
        table.step()
    assert table.done
    before = table.world.snapshot()
    table.next_task()
    assert not table.done
    assert table.world.snapshot().things != before.things
    for _ in range(110):
        table.step()
    assert table.done


def test_pictures_have_the_promised_form():
    """uint8 RGB, 96 by 128, or a multiple."""
    table = LiveTable(1)
    picture = table.render()
    assert (picture.shape, picture.dtype) == ((96, 128, 3), np.uint8)
    assert LiveTable(1, scale=3).render().shape == (288, 384, 3)


def test_record_is_deterministic():
    """Also with help after a random while."""
    one, two = record(12, (Reason.FALL,)), record(12, (Reason.FALL,))
    assert one.views == two.views
    assert one.events == two.events
    assert one.truth() == two.truth()
