"""Episodes of the demo world: live ones that a controller can steer, recorded ones with their truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Sequence

import numpy as np

from densereward_ros.tabletop.judge import progress, reasons, rewards
from densereward_ros.tabletop.picture import Look, Painter
from densereward_ros.tabletop.robot import Robot
from densereward_ros.tabletop.words import PHRASINGS, Task
from densereward_ros.tabletop.world import Event, Snapshot, World, choose_task, scatter
from densereward_ros.types import FAILURES, Reason

MAX_TICKS = 260


class LiveTable:
    """A robot that works through its script before a camera, ten ticks a second.

    seed: fixes everything. mishaps: the i-th attempt suffers the i-th; later attempts succeed. After a mishap
    the robot goes on badly, or holds still, until `recover` is called or six seconds have passed.
    scale: pixels of the picture for each of 128x96.
    """

    def __init__(
        self, seed: int, mishaps: Sequence[Reason] = (), held_out: bool = False, scale: int = 1
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._mishaps = list(mishaps)
        self._held_out = held_out
        self._scale = scale
        self._begin()

    def _begin(self) -> None:
        rng = self._rng
        while True:
            things = scatter(rng)
            goal = choose_task(rng, things)
            world = World(things)
            robot = Robot(world, goal, rng)
            if Reason.COLLISION not in self._mishaps or robot.can_collide():
                break
        self.goal: Task = goal
        self.world = world
        self.robot = robot
        self.task: str = goal.text(int(rng.integers(len(PHRASINGS))))
        # Painting has a generator of its own: whether somebody looks must not change what happens.
        paint = np.random.default_rng(rng.integers(2**63))
        self.painter = Painter(Look.random(paint, self._held_out), paint, self._scale)
        self._commands = robot.commands(self._mishaps)

    def step(self) -> None:
        """Advance by one tick of a tenth of a second."""
        self.world.step(*next(self._commands))

    def render(self) -> np.ndarray:
        """The camera picture, uint8 of shape (96 * scale, 128 * scale, 3), RGB."""
        return self.painter.paint(self.world.snapshot())

    def recover(self) -> None:
        """What a recovery controller asks for: retract, go home, try the task again."""
        self.robot.recover()

    @property
    def progress(self) -> float:
        """The true progress of the task, in [0, 1]."""
        return progress(self.world.snapshot(), self.goal)

    @property
    def done(self) -> bool:
        """True once the task has succeeded and the arm is at rest."""
        return self.robot.finished

    def next_task(self) -> None:
        """A new scene and a new task, without mishaps."""
        self._mishaps = []
        self._begin()


@dataclass
class Episode:
    """A recorded episode: what could be seen at each tick, and how to paint it."""

    goal: Task
    task: str
    views: list[Snapshot]
    events: list[Event]
    painter: Painter
    mishaps: tuple[Reason, ...] = ()
    held_out: bool = False
    _truths: dict[Task, tuple[list[Reason], list[float]]] = field(default_factory=dict)

    def truth(self, goal: Task | None = None) -> tuple[list[Reason], list[float]]:
        """Word and reward of the window ending at each tick, for the episode's own task or another one."""
        goal = goal or self.goal
        if goal not in self._truths:
            words = reasons(self.views, self.events, goal)
            self._truths[goal] = words, rewards(self.views, words, goal)
        return self._truths[goal]

    def onsets(self) -> list[tuple[int, Reason]]:
        """Tick and word of each failure's beginning."""
        words, _ = self.truth()
        return [
            (tick, words[tick]) for tick in range(1, len(words))
            if words[tick].is_failure and words[tick] is not words[tick - 1]]

    def picture(self, tick: int) -> np.ndarray:
        """The camera picture at a tick, uint8 (96, 128, 3), RGB."""
        return self.painter.paint(self.views[tick])


def record(seed: int | Sequence[int], mishaps: Sequence[Reason] = (), held_out: bool = False) -> Episode:
    """Play an episode to its end. Where it has mishaps, help comes after a random while, or not at all."""
    table = LiveTable(seed, mishaps, held_out)
    rng = np.random.default_rng([1, *np.atleast_1d(seed)])
    views = [table.world.snapshot()]
    helped_after: dict[int, int] = {}
    while not table.done and len(views) < MAX_TICKS:
        table.step()
        views.append(table.world.snapshot())
        since = table.robot.mishap_at
        if since is not None:
            delay = helped_after.setdefault(
                since, int(rng.integers(10, 40)) if rng.random() < 0.8 else MAX_TICKS
            )
            if table.world.tick - since == delay:
                table.recover()
    return Episode(table.goal, table.task, views, table.world.events, table.painter, tuple(mishaps), held_out)


def random_mishaps(rng: np.random.Generator) -> tuple[Reason, ...]:
    """A quarter of episodes go well; the others suffer one mishap, or two, most often a stall.

    Stalls are learnt last: no single frame gives them away.
    """
    if rng.random() < 0.25:
        return ()
    choices = (*FAILURES, Reason.SMOOTH)
    count = 1 + int(rng.random() < 0.25)
    return tuple(choices[i] for i in rng.integers(len(choices), size=count))
