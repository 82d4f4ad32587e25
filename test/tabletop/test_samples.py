"""The questions that training asks about an episode, and what it is told about a window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from densereward_ros.tabletop.episode import record
from densereward_ros.tabletop.samples import WINDOW_TARGETS, _asked, _window_target
from densereward_ros.tabletop.words import Task
from densereward_ros.tabletop.world import OPEN, Snapshot, Thing

THINGS = (Thing('block', 'red', 30.0), Thing('plate', 'blue', 46.0), Thing('plate', 'red', 90.0))
VIEW = Snapshot(40.0, 22.0, OPEN, None, THINGS)


def test_two_questions_in_five_are_about_another_task():
    """A fifth names another plate alone, a fifth another block, and every task is one of the scene."""
    episode = record(3)
    goal, rng = episode.goal, np.random.default_rng(0)
    asked = [_asked(episode, rng) for _ in range(2000)]
    other_plate = sum(task.block == goal.block and task.plate != goal.plate for task in asked)
    other_block = sum(task.block != goal.block for task in asked)
    assert other_plate / 2000 == pytest.approx(0.2, abs=0.03)
    assert other_block / 2000 == pytest.approx(0.2, abs=0.03)
    things = episode.views[0].things
    assert set(asked) == {
        Task(block.colour, plate.colour)
        for block in things
        if block.kind == 'block'
        for plate in things
        if plate.kind == 'plate'
    }


def _moves(*places: float) -> np.ndarray:
    target = _window_target([replace(VIEW, x=x) for x in places], Task('red', 'blue'))
    assert target.shape == (WINDOW_TARGETS,) and target.dtype == np.float32
    return target[7:11]


def test_stalls_differ_from_motion_in_both_halves_of_a_window():
    """Standing still is 0, 0, 1, 1; shaking comes back; a motion of eight pixels is not still at all."""
    assert _moves(40.0, 40.0, 40.0) == pytest.approx([0, 0, 1, 1])
    assert _moves(37.0, 43.0, 37.0) == pytest.approx([6 / 16, -6 / 16, np.exp(-3), np.exp(-3)])
    assert _moves(40.0, 40.0, 48.0) == pytest.approx([0, 0.5, 1, np.exp(-4)])


def test_the_target_follows_the_task():
    """Where block and plate are, and how far apart, is of those that the task names."""
    blue = _window_target([VIEW] * 3, Task('red', 'blue'))
    red = _window_target([VIEW] * 3, Task('red', 'red'))
    assert (blue[2], red[2]) == (pytest.approx(46 / 128), pytest.approx(90 / 128))
    assert (blue[11], red[11]) == (-0.5, -1.0)
    assert np.array_equal(np.delete(blue, [2, 11]), np.delete(red, [2, 11]))
