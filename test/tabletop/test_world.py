"""The physics of the demo table."""

from __future__ import annotations

import numpy as np
import pytest

from densereward_ros.tabletop.world import (
    BLOCK,
    GRIP,
    HOME,
    OPEN,
    PLATE_HEIGHT,
    Thing,
    World,
    choose_task,
    fits,
    scatter,
)


def _go(world: World, x: float, z: float, closed: bool, ticks: int = 20) -> None:
    """Move there in equal steps."""
    x0, z0 = world.x, world.z
    for k in range(1, ticks + 1):
        world.step(x0 + (x - x0) * k / ticks, z0 + (z - z0) * k / ticks, closed)


@pytest.fixture
def world() -> World:
    """A red block at 30, a blue one at 90, a green plate at 60."""
    return World([Thing('block', 'red', 30.0), Thing('block', 'blue', 90.0), Thing('plate', 'green', 60.0)])


def test_the_gripper_takes_lifts_and_places_a_block(world):
    """Closed around a block it holds it; opened above a plate it leaves it lying there."""
    _go(world, 30, GRIP, closed=False)
    _go(world, 30, GRIP, closed=True, ticks=3)
    assert world.held == 0
    assert world.gap == BLOCK / 2
    _go(world, 30, 22, closed=True)
    _go(world, 60, 22, closed=True)
    assert world.things[0].z == pytest.approx(22 - GRIP)
    _go(world, 60, PLATE_HEIGHT + GRIP, closed=True)
    _go(world, 60, PLATE_HEIGHT + GRIP, closed=False, ticks=5)
    assert world.held is None
    assert (world.things[0].x, world.things[0].z) == pytest.approx((60, PLATE_HEIGHT))
    assert [event.kind for event in world.events] == ['lift', 'release']


def test_closing_beside_a_block_is_an_empty_hand(world):
    """The fingers meet; nothing is held; it happens once."""
    _go(world, 47, GRIP, closed=False)
    _go(world, 47, GRIP, closed=True, ticks=10)
    assert (world.gap, world.held) == (0.0, None)
    assert [event.kind for event in world.events] == ['empty']


def test_a_block_that_slips_falls_and_is_not_caught_again(world):
    """It takes three ticks or more from carrying height, and the closing fingers let it pass."""
    _go(world, 30, GRIP, closed=False)
    _go(world, 30, GRIP, closed=True, ticks=3)
    _go(world, 30, 22, closed=True)
    world.slip()
    heights = []
    for _ in range(8):
        world.step(world.x, world.z, True)
        heights.append(world.things[0].z)
    assert world.held is None
    assert heights[-1] == 0.0
    assert all(a > b for a, b in zip(heights, heights[1:]) if a > 0)
    assert sum(height > 0 for height in heights) >= 3
    assert world.gap == 0.0
    slip = world.events[-1]
    assert slip.kind == 'slip' and slip.last - slip.first >= 3


def test_a_low_flight_pushes_what_is_in_the_way(world):
    """The block moves along with the finger that touches it, and only it."""
    _go(world, 70, 3, closed=False)
    _go(world, 85, 3, closed=False, ticks=6)
    assert world.things[1].x == pytest.approx(85 + OPEN + 2.5 + BLOCK / 2)
    assert world.things[0].x == 30.0
    assert {event.kind for event in world.events} == {'bump'}


def test_opening_the_hand_around_a_block_moves_nothing(world):
    """A grasp and a release in place leave the block where it was."""
    _go(world, 30, GRIP, closed=False)
    _go(world, 30, GRIP, closed=True, ticks=3)
    _go(world, 30, GRIP, closed=False, ticks=5)
    assert world.things[0].x == 30.0
    assert not any(event.kind == 'bump' for event in world.events)


@pytest.mark.parametrize('seed', range(30))
def test_every_scene_leaves_room_for_the_gripper(seed):
    """Two or three blocks, two plates, no colour twice among either, each with space around it."""
    rng = np.random.default_rng(seed)
    things = scatter(rng)
    blocks = [t.colour for t in things if t.kind == 'block']
    plates = [t.colour for t in things if t.kind == 'plate']
    assert len(blocks) in (2, 3) and len(plates) == 2
    assert len(set(blocks)) == len(blocks) and len(set(plates)) == 2
    for thing in things:
        assert fits(thing, [other for other in things if other is not thing])
    task = choose_task(rng, things)
    assert task.block in blocks and task.plate in plates


def test_it_starts_at_home_with_an_open_hand(world):
    """The resting pose is the one that a picture shows before anything happens."""
    view = world.snapshot()
    assert (view.x, view.z, view.gap) == (*HOME, OPEN)
    assert view.at_home
