"""What training looks at: short runs of frames from recorded episodes, and questions about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Sequence

import numpy as np

from densereward_ros.tabletop.episode import Episode, random_mishaps, record
from densereward_ros.tabletop.judge import SPACING_TICKS, SPAN
from densereward_ros.tabletop.picture import FLOOR, HEIGHT, WIDTH
from densereward_ros.tabletop.words import COLOURS, PHRASINGS, Task
from densereward_ros.tabletop.world import OPEN, Snapshot
from densereward_ros.types import FRAMES_PER_WINDOW, Reason

FRAMES = 6
WINDOWS = FRAMES - FRAMES_PER_WINDOW + 1
FRAME_TARGETS = 3 + 4 * len(COLOURS)
CELL = 32  # pixels of the picture to a token
KINDS = 1 + 2 * len(COLOURS)  # the gripper, blocks by colour, plates by colour
WINDOW_TARGETS = 13

_CHUNKS_OF_AN_EPISODE = 10
_BUFFER = 500
_OTHER_PLATE, _OTHER_BLOCK = 0.2, 0.2  # shares of questions about a task that is not the robot's


@dataclass(frozen=True)
class Chunk:
    """Six frames, 0.2 s apart, and one question for each of the four windows in them.

    pictures: uint8 (6, 96, 128, 3). tasks, reasons, rewards: one for each window.
    frame_targets: float32 (6, FRAME_TARGETS), where things are, in [0, 1] or thereabouts, NaN where absent.
    cell_targets: float32 (6, 12, KINDS, 3), for each token of a picture and each kind of thing whether
    one's middle is in that token's part of the picture, and where in it.
    window_targets: float32 (4, WINDOW_TARGETS), the same for what the task names, and how it has moved.
    """

    pictures: np.ndarray
    tasks: list[str]
    reasons: list[Reason]
    rewards: list[float]
    frame_targets: np.ndarray
    cell_targets: np.ndarray
    window_targets: np.ndarray


def chunks(seed: int) -> Iterator[Chunk]:
    """Endless chunks of ever new episodes, shuffled through a buffer. The same seed gives the same chunks."""
    rng = np.random.default_rng([2, seed])
    buffer: list[Chunk] = []
    number = 0
    while True:
        number += 1
        episode = record([3, seed, number], random_mishaps(rng))
        for _ in range(_CHUNKS_OF_AN_EPISODE):
            chunk = _cut(episode, rng)
            if len(buffer) < _BUFFER:
                buffer.append(chunk)
                # A part-filled buffer gives too, so that training starts at once.
                if len(buffer) % 2:
                    continue
            place = int(rng.integers(len(buffer)))
            yield buffer[place]
            buffer[place] = chunk


def _cut(episode: Episode, rng: np.random.Generator) -> Chunk:
    """Most chunks show a failure, another turn of events or the end; the rest is anywhere."""
    length = (FRAMES - 1) * SPACING_TICKS
    last = len(episode.views) - 1 - length
    words, _ = episode.truth()
    edges = [
        t
        for t in range(1, len(words))
        if words[t] is not words[t - 1] and Reason.CORRECT in words[t - 1 : t + 1]
    ]
    turns = [event.first for event in episode.events]
    dice = rng.random()
    if edges and dice < 0.45:
        start = edges[rng.integers(len(edges))] - int(rng.integers(0, length + 1))
    elif turns and dice < 0.65:
        start = turns[rng.integers(len(turns))] - int(rng.integers(-2, length + 1))
    elif dice < 0.85:
        start = last - int(rng.integers(0, length // 2 + 1))
    else:
        start = int(rng.integers(0, last + 1))
    start = min(max(start, 0), last)
    ticks = [start + SPACING_TICKS * k for k in range(FRAMES)]
    tasks, reasons, rewards, targets = [], [], [], []
    for tick in ticks[FRAMES_PER_WINDOW - 1 :]:
        goal = _asked(episode, rng)
        reason, reward = (values[tick] for values in episode.truth(goal))
        tasks.append(goal.text(int(rng.integers(len(PHRASINGS)))))
        reasons.append(reason)
        rewards.append(reward)
        targets.append(_window_target(episode.views[tick - SPAN : tick + 1 : SPACING_TICKS], goal))
    return Chunk(
        pictures=np.stack([episode.picture(tick) for tick in ticks]),
        tasks=tasks,
        reasons=reasons,
        rewards=rewards,
        frame_targets=np.stack([_frame_target(episode.views[tick]) for tick in ticks]),
        cell_targets=np.stack([_cell_target(episode.views[tick]) for tick in ticks]),
        window_targets=np.stack(targets),
    )


def _asked(episode: Episode, rng: np.random.Generator) -> Task:
    """Mostly the episode's own task; else one of the scene with another plate, or with another block."""
    goal, dice = episode.goal, rng.random()

    def other(kind: str, colour: str) -> str:
        colours = [t.colour for t in episode.views[0].things if t.kind == kind and t.colour != colour]
        return colours[rng.integers(len(colours))]

    if dice < _OTHER_PLATE:
        return Task(goal.block, other('plate', goal.plate))
    if dice < _OTHER_PLATE + _OTHER_BLOCK:
        plate = goal.plate if rng.random() < 0.5 else other('plate', goal.plate)
        return Task(other('block', goal.block), plate)
    return goal


def _frame_target(view: Snapshot) -> np.ndarray:
    target = np.full(FRAME_TARGETS, np.nan, np.float32)
    target[:3] = view.x / 128, view.z / 48, view.gap / OPEN
    for k, colour in enumerate(COLOURS):
        place = 3 + 4 * k
        target[[place, place + 1]] = 0.0  # seen or not
        for thing in view.things:
            if thing.colour == colour and thing.kind == 'block':
                target[place] = 1.0
                target[place + 2 : place + 4] = thing.x / 128, thing.z / 48
            elif thing.colour == colour:
                target[place + 1] = thing.x / 128 + 0.5
    return target


def _cell_target(view: Snapshot) -> np.ndarray:
    rows, columns = HEIGHT // CELL, WIDTH // CELL
    target = np.full((rows, columns, KINDS, 3), np.nan, np.float32)
    target[..., 0] = 0.0
    middles = [(0, view.x, FLOOR - view.z)]
    for thing in view.things:
        kind = 1 + COLOURS.index(thing.colour) + (len(COLOURS) if thing.kind == 'plate' else 0)
        middles.append((kind, thing.x, FLOOR - (thing.z + thing.top) / 2))
    for kind, x, y in middles:
        row, column = int(y // CELL), int(x // CELL)
        target[row, column, kind] = 1.0, x / CELL - column - 0.5, y / CELL - row - 0.5
    return target.reshape(rows * columns, KINDS, 3)


def _window_target(views: Sequence[Snapshot], goal: Task) -> np.ndarray:
    """views: the window's three."""
    oldest, middle, newest = views
    block, plate = newest.find('block', goal.block), newest.find('plate', goal.plate)
    before = oldest.find('block', goal.block)
    return np.array(
        [
            block.x / 128,
            block.z / 48,
            plate.x / 128,
            (newest.x - oldest.x) / 32,
            (newest.z - oldest.z) / 32,
            (block.x - before.x) / 32,
            (newest.gap - oldest.gap) / OPEN,
            # A shaking arm is where it was in the newest frame, but not in the middle one.
            (middle.x - oldest.x) / 16,
            (newest.x - middle.x) / 16,
            _stillness(oldest, middle),
            _stillness(middle, newest),
            np.clip((block.x - plate.x) / 32, -1, 1),
            float(newest.held is not None and newest.things[newest.held] == block),
        ],
        np.float32,
    )


def _stillness(before: Snapshot, after: Snapshot) -> float:
    """1 where the gripper did not move between two frames, and about 0 beyond a few pixels."""
    way = abs(after.x - before.x) + abs(after.z - before.z) + abs(after.gap - before.gap)
    return float(np.exp(-way / 2))
