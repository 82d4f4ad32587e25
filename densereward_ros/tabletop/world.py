"""The physics of the demo table, seen from the side: a gripper, blocks and plates, ten ticks a second.

Lengths are pixels of the 128x96 camera picture, x to the right, z up from the table top.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from densereward_ros.tabletop.words import COLOURS, Task

TICK = 0.1  # seconds
BLOCK = 10.0  # edge of a block
PLATE_WIDTH = 20.0
PLATE_HEIGHT = 3.0
FINGER = 2.5  # thickness
FINGER_LENGTH = 9.0
OPEN = 7.5  # half the distance between the open fingers
GRIP = 2.0  # the finger tips are this far above a held block's bottom
HOME = (64.0, 38.0)
LEFT, RIGHT = 7.0, 121.0  # blocks and plates stay between

_FINGER_SPEED = 15.0
_GRAVITY = 260.0
_SPACING = {('block', 'block'): 16.0, ('block', 'plate'): 21.0, ('plate', 'plate'): 22.0}


@dataclass(frozen=True)
class Thing:
    """A block or a plate: its kind, colour, centre x, and the height z of its bottom."""

    kind: str
    colour: str
    x: float
    z: float = 0.0

    @property
    def half(self) -> float:
        """Half its width."""
        return (BLOCK if self.kind == 'block' else PLATE_WIDTH) / 2

    @property
    def top(self) -> float:
        """The height of its upper face."""
        return self.z + (BLOCK if self.kind == 'block' else PLATE_HEIGHT)


@dataclass(frozen=True)
class Snapshot:
    """Everything that can be seen at one tick.

    x, z: the middle between the finger tips. gap: half the distance between the fingers.
    held: index of the held block in `things`, or None. shaking: the arm shakes at this tick.
    """

    x: float
    z: float
    gap: float
    held: int | None
    things: tuple[Thing, ...]
    shaking: bool = False

    def find(self, kind: str, colour: str) -> Thing:
        """The block or plate of that colour. Raises StopIteration when there is none."""
        return next(thing for thing in self.things if thing.kind == kind and thing.colour == colour)

    @property
    def at_home(self) -> bool:
        """True when the arm is in its resting pose."""
        return abs(self.x - HOME[0]) + abs(self.z - HOME[1]) < 0.5


@dataclass(frozen=True)
class Event:
    """Something that physically happened.

    kind: 'empty' (the fingers closed on nothing), 'slip' (a held block got loose), 'bump' (something was
    pushed), 'lift' (a held block left its support) or 'release' (the fingers let a block go).
    first, last: the ticks in which it could be seen to happen. thing: index of the block or plate, or None.
    """

    kind: str
    first: int
    last: int
    thing: int | None = None


def spacing(one: Thing, other: Thing) -> float:
    """How far apart two centres must be so that an open gripper fits between."""
    return _SPACING[tuple(sorted((one.kind, other.kind)))]


def fits(thing: Thing, others: list[Thing]) -> bool:
    """True when a thing on the table leaves room for the gripper on every side."""
    inside = LEFT + thing.half <= thing.x <= RIGHT - thing.half
    return inside and all(abs(thing.x - other.x) >= spacing(thing, other) for other in others)


def scatter(rng: np.random.Generator) -> list[Thing]:
    """Two or three blocks and two plates in random places; no colour twice among blocks or among plates."""
    blocks = rng.choice(COLOURS, size=2 + int(rng.random() < 0.3), replace=False)
    plates = rng.choice(COLOURS, size=2, replace=False)
    things = [Thing('block', str(c), 0.0) for c in blocks] + [Thing('plate', str(c), 0.0) for c in plates]
    order = rng.permutation(len(things))
    row = [things[i] for i in order]
    gaps = [spacing(a, b) for a, b in zip(row, row[1:])]
    free = RIGHT - LEFT - row[0].half - row[-1].half - sum(gaps)
    shares = rng.dirichlet(np.ones(len(row) + 1)) * free
    x = LEFT + row[0].half
    for k, i in enumerate(order):
        x += shares[k] + (gaps[k - 1] if k else 0.0)
        things[i] = replace(things[i], x=float(x))
    return things


def choose_task(rng: np.random.Generator, things: list[Thing]) -> Task:
    """A task that the scene allows."""
    blocks = [thing.colour for thing in things if thing.kind == 'block']
    plates = [thing.colour for thing in things if thing.kind == 'plate']
    return Task(blocks[rng.integers(len(blocks))], plates[rng.integers(len(plates))])


class World:
    """The table at one moment. Deterministic: the same commands give the same ticks."""

    def __init__(self, things: list[Thing]) -> None:
        self.things = list(things)
        self.x, self.z = HOME
        self.gap = OPEN
        self.held: int | None = None
        self.shaking = False
        self.tick = 0
        self.events: list[Event] = []
        self._falling = [0.0] * len(self.things)  # downward speed
        self._slipped: int | None = None  # a block that the fingers must not catch again
        self._lifted_from: float | None = None

    def snapshot(self) -> Snapshot:
        """What can be seen now."""
        return Snapshot(self.x, self.z, self.gap, self.held, tuple(self.things), self.shaking)

    def slip(self) -> None:
        """The held block gets loose; its fall starts with the next tick."""
        self._slipped = self.held
        self._let_go('slip')

    def step(self, x: float, z: float, closed: bool) -> None:
        """One tick: the gripper moves to x, z while its fingers open or close."""
        self.tick += 1
        dx = x - self.x
        self.x, self.z = x, z
        if self.held is not None:
            self._set(self.held, x=x, z=z - GRIP)
            self._note_lift()
        self._push(dx)
        self._move_fingers(closed)
        self._fall()

    def _set(self, index: int, **changes: float) -> None:
        self.things[index] = replace(self.things[index], **changes)

    def _blocks(self) -> list[int]:
        return [i for i, thing in enumerate(self.things) if thing.kind == 'block']

    def _between_fingers(self, thing: Thing) -> bool:
        overlap = thing.z < self.z + FINGER_LENGTH and thing.top > self.z
        return overlap and abs(thing.x - self.x) + thing.half <= OPEN + 0.5

    def _move_fingers(self, closed: bool) -> None:
        before = self.gap
        wanted = (
            max(0.0, before - _FINGER_SPEED * TICK) if closed else min(OPEN, before + _FINGER_SPEED * TICK)
        )
        if not closed:
            self._slipped = None
            if self.held is not None and wanted > before:
                self._let_go('release')
        elif self.held is None and before >= BLOCK / 2:
            for i in self._blocks():
                if i != self._slipped and self._between_fingers(self.things[i]) and wanted <= BLOCK / 2:
                    self.held = i
                    self._set(i, x=self.x)
                    self._lifted_from = self.things[i].z
        if self.held is not None:
            wanted = max(wanted, BLOCK / 2)
        self.gap = wanted
        if closed and wanted == 0.0 < before and self._slipped is None:
            self.events.append(Event('empty', self.tick, self.tick))

    def _let_go(self, kind: str) -> None:
        # A slip comes between two ticks: it is seen in the next one.
        tick = self.tick + (kind == 'slip')
        self.events.append(Event(kind, tick, tick, self.held))
        self.held = None
        self._lifted_from = None

    def _note_lift(self) -> None:
        if self._lifted_from is not None and self.things[self.held].z > self._lifted_from + 1.5:
            self.events.append(Event('lift', self.tick, self.tick, self.held))
            self._lifted_from = None

    def _push(self, dx: float) -> None:
        """Fingers and held block shove aside what they run into."""
        outer = self.gap + FINGER
        bodies = [(self.x - outer, self.x - self.gap, self.z), (self.x + self.gap, self.x + outer, self.z)]
        if self.held is not None:
            bodies = [(self.x - outer, self.x + outer, self.z - GRIP)]
        for i, thing in enumerate(self.things):
            if i == self.held or i == self._slipped:
                continue
            for left, right, bottom in bodies:
                if (
                    bottom < thing.top - 0.5
                    and left < thing.x + thing.half
                    and right > thing.x - thing.half
                    and dx
                ):
                    goal = right + thing.half if dx > 0 else left - thing.half
                    if (goal - thing.x) * dx > 0 and abs(goal - thing.x) <= abs(dx) + 0.5:
                        self._set(i, x=goal)
                        self._note_bump(i)

    def _note_bump(self, index: int) -> None:
        for k, event in enumerate(self.events):
            if event.kind == 'bump' and event.thing == index and self.tick - event.last <= 2:
                self.events[k] = replace(event, last=self.tick)
                return
        self.events.append(Event('bump', self.tick, self.tick, index))

    def _fall(self) -> None:
        for i in self._blocks():
            if i == self.held:
                continue
            block = self.things[i]
            floor = max(
                [0.0]
                + [
                    other.top
                    for j, other in enumerate(self.things)
                    if j != i
                    and other.top <= block.z + 0.5
                    and abs(other.x - block.x) < other.half + block.half - 2.0
                ]
            )
            if block.z <= floor:
                self._falling[i] = 0.0
                continue
            self._falling[i] += _GRAVITY * TICK
            z = max(floor, block.z - self._falling[i] * TICK)
            self._set(i, z=z)
            for k, event in enumerate(self.events):  # a fall can be seen until the block lies still
                if event.kind == 'slip' and event.thing == i and self.tick - event.last <= 1:
                    self.events[k] = replace(event, last=self.tick)
