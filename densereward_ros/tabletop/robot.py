"""The robot's script: how it does a task, goes wrong, and recovers. One yielded command a tick."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Iterator

import numpy as np

from densereward_ros.tabletop.judge import CARRY
from densereward_ros.tabletop.words import Task
from densereward_ros.tabletop.world import (
    BLOCK,
    FINGER,
    GRIP,
    HOME,
    LEFT,
    OPEN,
    PLATE_HEIGHT,
    RIGHT,
    TICK,
    Thing,
    World,
    fits,
    spacing,
)
from densereward_ros.types import Reason

Command = tuple[float, float, bool]  # x and z of the finger tips, fingers closed

PATIENCE = 6.0  # seconds from a mishap until the robot tries again by itself
_PUSH_SPEED = 25.0
_SHAKE = 3.0  # pixels to either side
_ACCELERATION = 220.0


class Robot:
    """Drives a World through a task. Every attempt may suffer one mishap; then the robot does not notice it.

    `commands` yields forever. What the robot will do next can be replaced by `recover`.
    """

    def __init__(self, world: World, task: Task, rng: np.random.Generator) -> None:
        self.world = world
        self.task = task
        self.rng = rng
        self.speed = float(rng.uniform(38.0, 50.0))
        self.shove = float(rng.uniform(8.0, 10.0))  # how far a collision pushes
        self.mishap_at: int | None = None  # the tick of the running mishap
        self.finished = False
        self._interrupted = False
        self._closed = False

    def can_collide(self) -> bool:
        """True when a first attempt finds something to bump into."""
        return bool(self._bumps(False))

    def recover(self) -> None:
        """Stop what is going on; retract, go home and try again."""
        self._interrupted = True

    def commands(self, mishaps: list[Reason]) -> Iterator[Command]:
        """Attempts until one succeeds, the i-th with the i-th mishap, then rest at home."""
        mishaps = list(mishaps)
        yield from self._rest(int(self.rng.integers(2, 9)))
        while not self._succeeded():
            self._interrupted = False
            self.mishap_at = None
            mishap = mishaps.pop(0) if mishaps else None
            yield from self._until_interrupted(self._attempt(mishap))
            if self._succeeded():
                break
            if not self._interrupted:
                yield from self._until_interrupted(self._rest(self._patience_left()))
            yield from self._recovery(mishaps[0] if mishaps else None)
        self.mishap_at = None
        yield from self._rest(5)
        self.finished = True
        while True:
            yield from self._rest(1)

    def _until_interrupted(self, script: Iterator[Command]) -> Iterator[Command]:
        for command in script:
            if self._interrupted:
                return
            yield command

    def _patience_left(self) -> int:
        since = 0 if self.mishap_at is None else self.world.tick - self.mishap_at
        return max(5, round(PATIENCE / TICK) - since)

    def _succeeded(self) -> bool:
        view = self.world.snapshot()
        block, plate = view.find('block', self.task.block), view.find('plate', self.task.plate)
        return view.held is None and abs(block.x - plate.x) < BLOCK / 2 and block.z > 0 and view.at_home

    # Scripts. Each yields commands and reads the world as it is when its turn comes.

    def _attempt(self, mishap: Reason | None) -> Iterator[Command]:
        """Home to home once. With the block already in hand it only carries and places."""
        if mishap is Reason.FAILURE:
            yield from self._take_wrong_block()
            return
        reaching = self.world.held is None
        early = reaching and (mishap is Reason.SMOOTH or (mishap is Reason.COLLISION and self.can_collide()))
        if early and (mishap is Reason.SMOOTH or self._bumps(True)):
            early = self.rng.random() < 0.5
        if reaching:
            x = self._block().x
            yield from self._leg(x, CARRY, mishap if early else None)
            if early and mishap is Reason.COLLISION:
                yield from self._move(*HOME)  # where it waits: a robot that was hit stops
                return
            if mishap is Reason.MISS:
                yield from self._miss(x)
            else:
                yield from self._move(x, GRIP + self._block().z)
                yield from self._fingers(True)
                yield from self._move(x, CARRY)
        plate = self._plate()
        yield from self._leg(plate.x, CARRY, None if early else mishap)
        if mishap is Reason.COLLISION and self.mishap_at is not None:
            yield from self._move(*HOME)
            return
        yield from self._move(self._plate().x, PLATE_HEIGHT + GRIP)
        yield from self._fingers(False)
        yield from self._move(self.world.x, CARRY)
        yield from self._move(*HOME)

    def _leg(self, x: float, z: float, mishap: Reason | None) -> Iterator[Command]:
        """Travel to x, z, and there or on the way suffer the mishap (a fall, a stall or a collision)."""
        if mishap is Reason.FALL:
            yield from self._fall_on_the_way(x)
        elif mishap is Reason.SMOOTH:
            share = self.rng.uniform(0.25, 0.75)
            world = self.world
            yield from self._move(world.x + share * (x - world.x), world.z + share * (z - world.z))
            yield from self._falter()
        elif mishap is Reason.COLLISION:
            yield from self._collide()
            if self.mishap_at is not None:
                return
        yield from self._move(x, z)

    def _move(self, x: float, z: float, speed: float | None = None) -> Iterator[Command]:
        """A straight line, gathering speed and braking."""
        world, v, top = self.world, 0.0, speed or self.speed
        closed = self._closed
        while (left := math.hypot(x - world.x, z - world.z)) > 1e-6:
            v = min(v + _ACCELERATION * TICK, top, math.sqrt(2 * _ACCELERATION * left))
            step = min(left, v * TICK)
            if left - step < 0.8:
                step = left
            yield world.x + (x - world.x) * step / left, world.z + (z - world.z) * step / left, closed

    def _fingers(self, closed: bool) -> Iterator[Command]:
        """Close until they grip or meet, or open; one tick more to settle."""
        world = self.world
        self._closed = closed
        while True:
            before = world.gap
            yield world.x, world.z, closed
            if (
                world.gap == before
                or (closed and (world.held is not None or world.gap == 0))
                or (not closed and world.gap == OPEN)
            ):
                break
        if closed and world.held is not None:
            yield world.x, world.z, closed

    def _rest(self, ticks: int) -> Iterator[Command]:
        for _ in range(ticks):
            yield self.world.x, self.world.z, self._closed

    def _block(self) -> Thing:
        return self.world.snapshot().find('block', self.task.block)

    def _plate(self) -> Thing:
        return self.world.snapshot().find('plate', self.task.plate)

    # Mishaps.

    def _miss(self, x: float) -> Iterator[Command]:
        """The fingers close beside the block where there is room, and else above it."""
        block = self._block()
        off = float(self.rng.uniform(16.0, 18.0))
        beside = [
            place
            for place in (x - off, x + off)
            if LEFT < place < RIGHT and _clear(place, OPEN + FINGER, self.world.things)
        ]
        if beside and self.rng.random() < 0.7:
            x = beside[self.rng.integers(len(beside))]
            yield from self._move(x, CARRY)
            yield from self._move(x, GRIP)
        else:
            yield from self._move(x, block.top + float(self.rng.uniform(1.0, 3.0)))
        yield from self._fingers(True)
        self.mishap_at = self.world.tick
        yield from self._move(x, CARRY)

    def _fall_on_the_way(self, x: float) -> Iterator[Command]:
        """The block slips out of the hand over a free place; the hand goes on, empty."""
        world = self.world
        low, high = sorted((world.x, world.x + 0.85 * (x - world.x)))
        free = self._free_places()
        on_the_way = [place for place in free if low <= place <= high]
        if on_the_way:
            place = on_the_way[self.rng.integers(len(on_the_way))]
        else:
            place = min(free, key=lambda place: abs(place - world.x))
        yield from self._move(place, CARRY)
        self.mishap_at = world.tick + 1
        world.slip()

    def _falter(self) -> Iterator[Command]:
        """The arm stands still, or shakes on the spot, until the robot's patience ends."""
        world = self.world
        x, z = world.x, world.z
        self.mishap_at = world.tick
        ticks = round(PATIENCE / TICK)
        if self.rng.random() < 0.5:
            yield from self._rest(ticks)
            return
        for k in range(ticks):
            if self._interrupted:
                break
            world.shaking = True
            yield x + _SHAKE * (1 if k % 4 < 2 else -1), z, self._closed
        world.shaking = False

    def _collide(self) -> Iterator[Command]:
        """Fly too low, shove a block or a plate aside, recoil."""
        world = self.world
        choices = self._bumps(world.held is not None)
        if not choices:
            return
        start, z, push = choices[self.rng.integers(len(choices))]
        yield from self._move(start, CARRY)
        yield from self._move(start, z)
        self.mishap_at = world.tick
        way = 1 if push > 0 else -1
        yield from self._move(start + push, z, speed=_PUSH_SPEED)
        yield from self._move(world.x - 4.0 * way, CARRY)

    def _bumps(self, carrying: bool) -> list[tuple[float, float, float]]:
        """Where to go down, how low, and how far to push then: every collision that the scene allows.

        carrying: with the task's block in hand, as it is or will be.
        """
        things = [t for t in self.world.things if not carrying or t != self._block()]
        body = (BLOCK / 2 if carrying else OPEN) + FINGER
        found = []
        for thing in things:
            others = [t for t in things if t is not thing]
            loaded = any(t.z > 0 and abs(t.x - thing.x) < thing.half for t in others)
            if thing == self._block() or thing.z > 0 or loaded:
                continue
            low = (3.0 if thing.kind == 'block' else 1.0) + (GRIP if carrying else 0.0)
            for way in (-1, 1):
                start = thing.x - way * (thing.half + body + 2.0)
                moved = replace(thing, x=thing.x + way * self.shove)
                if LEFT < start < RIGHT and fits(moved, others) and _clear(start, body, others):
                    found.append((start, low, way * (self.shove + 2.0)))
        return found

    def _take_wrong_block(self) -> Iterator[Command]:
        """Take another block home, proudly."""
        wrong = [t for t in self.world.things if t.kind == 'block' and t.colour != self.task.block]
        # One on the table where there is one: after other mishaps, all may lie on plates.
        wrong = [t for t in wrong if t.z == 0] or wrong
        block = wrong[self.rng.integers(len(wrong))]
        yield from self._move(block.x, CARRY)
        yield from self._move(block.x, GRIP + block.z)
        yield from self._fingers(True)
        self.mishap_at = self.world.tick
        yield from self._move(block.x, CARRY)
        yield from self._move(*HOME)

    # Recovery.

    def _recovery(self, next_mishap: Reason | None) -> Iterator[Command]:
        """Retract, put down what must not be held, go home with an open hand (or with the right block)."""
        world = self.world
        world.shaking = False
        if world.z < CARRY:
            yield from self._move(world.x, CARRY)
        right = world.held is not None and world.things[world.held].colour == self.task.block
        if world.held is not None and not (right and next_mishap not in (Reason.MISS, Reason.FAILURE)):
            yield from self._put_down()
        if world.held is None and self._closed:
            yield from self._fingers(False)
        yield from self._move(*HOME)

    def _put_down(self) -> Iterator[Command]:
        """On the nearest free place of the table."""
        x = min(self._free_places(), key=lambda place: abs(place - self.world.x))
        yield from self._move(x, CARRY)
        yield from self._move(x, GRIP)
        yield from self._fingers(False)
        yield from self._move(x, CARRY)

    def _free_places(self) -> list[float]:
        """Where the held block could lie on the table; on a full table, where it is least in the way."""
        world = self.world
        thing = replace(world.things[world.held], z=0.0)
        others = [t for i, t in enumerate(world.things) if i != world.held]
        all_places = [float(x) for x in np.arange(LEFT + thing.half, RIGHT - thing.half, 1.0)]
        free = [x for x in all_places if fits(replace(thing, x=x), others)]
        return free or [
            max(all_places, key=lambda x: min(abs(x - other.x) - spacing(thing, other) for other in others))
        ]


def _clear(x: float, body: float, things: list[Thing]) -> bool:
    """True when a gripper of that half width can go down at x without touching anything."""
    return all(abs(thing.x - x) > thing.half + body + 0.5 for thing in things)
