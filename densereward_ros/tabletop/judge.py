"""The truth about an episode: how far the task is at every tick, and which word its window deserves.

Both follow from what can be seen (and the task), never from the robot's plans, so a model can learn them.
"""

from __future__ import annotations

from typing import Sequence

from densereward_ros.tabletop.words import Task
from densereward_ros.tabletop.world import BLOCK, GRIP, HOME, OPEN, PLATE_HEIGHT, Event, Snapshot
from densereward_ros.types import Reason

SPACING_TICKS = 2  # between the frames of a window: 0.2 s
SPAN = 2 * SPACING_TICKS  # from a window's oldest frame to its newest
CARRY = 22.0  # height of the finger tips on the way

# How far the task is when each stage begins; the last one ends at 1.
_CLOSE, _HOLD, _CARRY, _LOWER, _OPEN, _LEAVE = 0.35, 0.42, 0.52, 0.80, 0.90, 0.94
_TABLE = 100.0  # about the longest way from a block to a plate
_NEAR = 8.0  # closer than this to the plate's middle, going down is the way on
# An empty closed hand, or one full of the wrong block, is worth this share of an open one in the same place.
_HAND_SPOILT = 0.4
# A bumped thing and a stalled arm leave the task where it was: their cost is this much of the reward.
PENALTY = 0.15
_AFTERMATH = 6  # ticks for which a miss and other mishaps can be seen: until the window shows nothing else


def progress(view: Snapshot, task: Task) -> float:
    """How far the task is, in [0, 1]: never falls while a robot does it without mishaps."""
    block = view.find('block', task.block)
    plate = view.find('plate', task.plate)
    holding = view.held is not None and view.things[view.held] == block
    dx = abs(block.x - plate.x)
    if holding:
        return _holding(view, plate.x)
    if dx < _NEAR and abs(block.z - PLATE_HEIGHT) < 0.5:
        opened = _share(view.gap - BLOCK / 2, OPEN - BLOCK / 2)
        way = abs(plate.x - HOME[0]) + HOME[1] - PLATE_HEIGHT - GRIP
        back = _share(abs(view.x - plate.x) + view.z - PLATE_HEIGHT - GRIP, way)
        return _OPEN + (_LEAVE - _OPEN) * opened + (1 - _LEAVE) * back
    return _reaching(view, block.x, block.z + GRIP)


def _reaching(view: Snapshot, x: float, z: float) -> float:
    """On the way to the block, whose grip is at x, z."""
    way = abs(HOME[0] - x) + HOME[1] - z
    left = abs(view.x - x) + abs(view.z - z)
    reached = _CLOSE * (1 - _share(left, way))
    closed = _share(OPEN - view.gap, OPEN - BLOCK / 2)
    if view.held is None and view.gap >= BLOCK / 2 and left < 2.0:
        return reached + (_HOLD - _CLOSE) * closed
    return reached * (1 - (1 - _HAND_SPOILT) * closed)


def _holding(view: Snapshot, plate_x: float) -> float:
    """With the block in hand: lift, carry, lower."""
    dx = abs(view.x - plate_x)
    carried = _CARRY + (_LOWER - _CARRY) * (1 - _share(dx, _TABLE))
    lifted = _HOLD + (carried - _HOLD) * _share(view.z - GRIP, CARRY - GRIP)
    lowered = _LOWER + (_OPEN - _LOWER) * _share(CARRY - view.z, CARRY - PLATE_HEIGHT - GRIP)
    far = _share(dx, _NEAR)
    return far * lifted + (1 - far) * lowered


def _share(part: float, whole: float) -> float:
    return min(1.0, max(0.0, part / whole))


def reasons(views: Sequence[Snapshot], events: Sequence[Event], task: Task) -> list[Reason]:
    """The word of the window that ends at each tick.

    views: one a tick, from tick 0. A failure's word holds while its window still shows the failure: six or
    seven ticks, so at least three windows in a row at five a second.
    """
    words = [Reason.CORRECT] * len(views)
    for tick in range(SPAN, len(views)):
        if _stalls(views[tick - SPAN : tick + 1]):
            words[tick] = Reason.SMOOTH
    for event in sorted(events, key=lambda event: event.first):
        reason, last = _meaning(event, views, task)
        if reason is not Reason.CORRECT:
            for tick in range(event.first, min(last + 1, len(views))):
                words[tick] = reason
    return words


def rewards(views: Sequence[Snapshot], words: Sequence[Reason], task: Task) -> list[float]:
    """The reward of the window that ends at each tick: the progress, less what a bump or a stall costs."""
    return [
        max(0.0, progress(view, task) - PENALTY * (word in (Reason.COLLISION, Reason.SMOOTH)))
        for view, word in zip(views, words)
    ]


def _stalls(views: Sequence[Snapshot]) -> bool:
    """True when the arm stood still, away from home, or shook through the whole window."""
    if all(view.shaking for view in views):
        return True
    first = views[0]
    return (
        not first.at_home
        and all((view.x, view.z, view.gap) == (first.x, first.z, first.gap) for view in views[1:])
        and all(a.things == b.things for a, b in zip(views, views[1:]))
    )


def _meaning(event: Event, views: Sequence[Snapshot], task: Task) -> tuple[Reason, int]:
    """The word for an event, and the last tick whose window still shows it."""
    if event.kind == 'empty':
        return Reason.MISS, event.first + _AFTERMATH
    if event.kind == 'slip':
        return Reason.FALL, event.last + SPAN - 1
    if event.kind == 'bump':
        return Reason.COLLISION, event.last + SPAN - 1
    thing = views[min(event.first, len(views) - 1)].things[event.thing]
    if event.kind == 'lift' and thing.colour != task.block:
        return Reason.FAILURE, event.first + _AFTERMATH
    if event.kind == 'release' and thing.colour == task.block:
        on = [
            p
            for p in views[min(event.first, len(views) - 1)].things
            if p.kind == 'plate' and abs(p.x - thing.x) < _NEAR and p.top <= thing.z + 1.0
        ]
        if on and on[0].colour != task.plate:
            return Reason.FAILURE, event.first + _AFTERMATH
    return Reason.CORRECT, event.first
