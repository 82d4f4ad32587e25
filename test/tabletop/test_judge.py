"""Progress, rewards and words: the truth that the model is trained and measured on."""

from __future__ import annotations

import pytest

from densereward_ros.tabletop.episode import record
from densereward_ros.tabletop.judge import PENALTY, SPACING_TICKS, SPAN, progress
from densereward_ros.tabletop.words import Task
from densereward_ros.types import FAILURES, Reason


@pytest.mark.parametrize('seed', range(12))
def test_progress_rises_from_nought_to_one(seed):
    """Without mishaps the reward never falls, and every window is correct."""
    episode = record(seed)
    words, rewards = episode.truth()
    assert set(words) == {Reason.CORRECT}
    assert rewards[0] == 0.0
    assert rewards[-1] == 1.0
    assert all(later >= earlier - 1e-9 for earlier, later in zip(rewards, rewards[1:]))


def test_progress_is_smooth():
    """No tick of a clean episode is worth more than a tenth."""
    _, rewards = record(3).truth()
    assert max(later - earlier for earlier, later in zip(rewards, rewards[1:])) < 0.1


@pytest.mark.parametrize('reason', FAILURES)
@pytest.mark.parametrize('seed', range(6))
def test_each_failure_shows_in_windows_in_a_row(reason, seed):
    """Whatever the phase of a camera at five frames a second, two windows in a row or more have the word."""
    words, rewards = record(seed, (reason,)).truth()
    assert reason in words
    for phase in range(SPACING_TICKS):
        seen = words[SPAN + phase :: SPACING_TICKS]
        first = seen.index(reason)
        assert seen[first + 1] is reason
    assert rewards[-1] == 1.0  # and in the end the robot succeeds


@pytest.mark.parametrize('reason', [Reason.MISS, Reason.FALL, Reason.COLLISION])
@pytest.mark.parametrize('seed', range(6))
def test_the_reward_is_lower_after_a_failure(reason, seed):
    """The word names what just dropped the reward."""
    words, rewards = record(seed, (reason,)).truth()
    onset = words.index(reason)
    assert rewards[onset] < max(rewards[onset - SPAN : onset]) or rewards[onset] == 0.0


def test_a_fall_costs_what_was_gained_by_carrying():
    """From well past the grasp back to an empty hand."""
    words, rewards = record(1, (Reason.FALL,)).truth()
    onset = words.index(Reason.FALL)
    assert rewards[onset - 1] > 0.42
    assert rewards[onset] < 0.2


def test_a_stall_costs_a_fixed_share():
    """The progress stands still, so the reward is it less the penalty; afterwards it is back."""
    for seed in range(40):
        episode = record(seed, (Reason.SMOOTH,))
        words, rewards = episode.truth()
        tick = words.index(Reason.SMOOTH)
        plain = progress(episode.views[tick], episode.goal)
        if plain > PENALTY:
            break
    assert rewards[tick] == pytest.approx(plain - PENALTY)


def test_a_stall_is_a_still_or_shaking_window():
    """Both kinds happen, and a window counts only when all of it is so."""
    shaken = still = 0
    for seed in range(30):
        episode = record(seed, (Reason.SMOOTH,))
        words, _ = episode.truth()
        tick = words.index(Reason.SMOOTH)
        views = episode.views[tick - SPAN : tick + 1]
        if views[0].shaking:
            shaken += 1
            assert {abs(a.x - b.x) > 4 for a, b in zip(views, views[SPACING_TICKS:])} == {True}
        else:
            still += 1
            assert len({(view.x, view.z, view.gap) for view in views}) == 1
    assert shaken and still


def test_another_task_makes_the_same_pictures_a_failure():
    """Taking the red block is a failure when the task names another one, and ends with a low reward."""
    for seed in range(10):
        episode = record(seed)
        blocks = [t.colour for t in episode.views[0].things if t.kind == 'block']
        other = Task(next(c for c in blocks if c != episode.goal.block), episode.goal.plate)
        words, rewards = episode.truth(other)
        assert Reason.FAILURE in words
        assert rewards[-1] < 0.3


def test_the_wrong_plate_is_a_failure_too():
    """The block lies where nobody asked for it."""
    episode = record(0)
    plates = [t.colour for t in episode.views[0].things if t.kind == 'plate']
    other = Task(episode.goal.block, next(c for c in plates if c != episode.goal.plate))
    words, rewards = episode.truth(other)
    assert Reason.FAILURE in words
    assert rewards[-1] < 0.5
