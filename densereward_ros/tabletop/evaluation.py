"""How good the demo checkpoint is: held-out episodes, scored by the same model code as the node runs."""

from __future__ import annotations

import hashlib
import platform
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Callable

from densereward_ros import __version__
from densereward_ros.events.calibration import JudgedEpisode, events
from densereward_ros.events.settings import DEFAULTS
from densereward_ros.tabletop.episode import Episode, record
from densereward_ros.tabletop.figures import Scored, figures
from densereward_ros.tabletop.judge import SPACING_TICKS, SPAN, progress
from densereward_ros.tabletop.words import Task
from densereward_ros.tabletop.workers import work_through
from densereward_ros.tabletop.world import TICK
from densereward_ros.types import Frame, Reason, Verdict, Window

# Training draws its episodes from other seeds: see samples.chunks.
_SEED = 29
# Three in eight episodes go well; the others suffer each failure in turn. Every fourth round has
# held-out shades.
MISHAPS_IN_TURN: tuple[tuple[Reason, ...], ...] = (
    (),
    (Reason.MISS,),
    (),
    (Reason.COLLISION,),
    (Reason.FALL,),
    (),
    (Reason.SMOOTH,),
    (Reason.FAILURE,),
)
_NS_OF_TICK = round(TICK * 1e9)
_VERSIONS = ('torch', 'torchvision', 'transformers', 'qwen-vl-utils', 'pillow', 'numpy')


def held_out_episode(number: int) -> Episode:
    """The evaluation's episode of that number, from 0."""
    round_, place = divmod(number, len(MISHAPS_IN_TURN))
    return record([_SEED, number], MISHAPS_IN_TURN[place], held_out=round_ % 4 == 0)


def windows(episode: Episode, first: int = SPAN) -> list[tuple[int, Window]]:
    """Every window that a node sees at five a second, with the tick of its newest frame."""
    frames = {tick: _frame(episode, tick) for tick in range(first - SPAN, len(episode.views), SPACING_TICKS)}
    return [
        (
            tick,
            Window(
                'tabletop',
                episode.task,
                tuple(frames[t] for t in range(tick - SPAN, tick + 1, SPACING_TICKS)),
            ),
        )
        for tick in range(first, len(episode.views), SPACING_TICKS)
    ]


def score(model, number: int) -> Scored:
    """Score one episode with an opened RewardModel."""
    episode = held_out_episode(number)
    words, rewards = episode.truth()
    seen = windows(episode, SPAN + number % SPACING_TICKS)
    verdicts = model.score([window for _, window in seen])
    end = seen[-1][1]
    asked = [replace(end, task=goal.text()) for goal in (episode.goal, *_other_goals(episode, number))]
    right, other_block, other_plate = model.score(asked)
    judged = tuple((w, v) for (_, w), v in zip(seen, verdicts) if isinstance(v, Verdict))
    told = events(JudgedEpisode(str(number), judged), DEFAULTS)
    onsets = episode.onsets()
    found = sum(
        any(
            event.reason is word and 0 <= event.window.newest.stamp_ns // _NS_OF_TICK - onset <= 8
            for event in told
        )
        for onset, word in onsets
    )
    return Scored(
        clean=not episode.mishaps,
        held_out=episode.held_out,
        words=[words[tick] for tick, _ in seen],
        rewards=[rewards[tick] for tick, _ in seen],
        progress=[progress(episode.views[tick], episode.goal) for tick, _ in seen],
        guesses=[(v.reason, v.reward) if isinstance(v, Verdict) else None for v in verdicts],
        other_block=_lower(other_block, right),
        other_plate=_lower(other_plate, right),
        happened=len(onsets),
        found=found,
        alarms=0 if episode.mishaps else len(told),
        seconds=len(episode.views) * TICK,
    )


def evaluate(model: str, episodes: int, processes: int, report: Callable[[str], None]) -> dict:
    """Score that many episodes and return the figures, ready for JSON. Raises ModelError.

    processes: how many share the work, one core each.
    """
    from densereward_ros.models.checkpoint import find

    folder = find(model, 'main', report).folder
    start = time.monotonic()
    # The fast engine keeps replies to the format; how often the model does so by itself is to be measured.
    results = figures(
        list(work_through(score, range(episodes), str(folder), 'reference', processes, report)))
    results['seconds'] = round(time.monotonic() - start, 1)
    results['configuration'] = {
        'episodes': episodes,
        'windows': 'all that a node sees at 5 a second, frames 0.2 s apart',
        'decoding': 'greedy, unconstrained',
        'confirmations': DEFAULTS.confirmations,
        'cooldown': DEFAULTS.cooldown,
        'interval': '95% bootstrap, resampled by episode',
    }
    results['model'] = {'name': model, 'sha256': hashes(folder)}
    results['package_version'] = __version__
    results['versions'] = versions()
    return results


def _frame(episode: Episode, tick: int) -> Frame:
    return Frame(tick * _NS_OF_TICK, tick * _NS_OF_TICK, lambda: episode.picture(tick))


def _other_goals(episode: Episode, number: int) -> tuple[Task, Task]:
    """The task with another block of the scene, and with another plate."""
    goal = episode.goal
    things = episode.views[0].things
    blocks = [t.colour for t in things if t.kind == 'block' and t.colour != goal.block]
    plates = [t.colour for t in things if t.kind == 'plate' and t.colour != goal.plate]
    return Task(blocks[number % len(blocks)], goal.plate), Task(goal.block, plates[number % len(plates)])


def _lower(verdict, right) -> bool | None:
    if isinstance(verdict, Verdict) and isinstance(right, Verdict):
        return verdict.reward < right.reward
    return None


def versions() -> dict[str, str]:
    """Of Python and of the packages that a figure may depend on."""
    return {'python': platform.python_version(), **{name: version(name) for name in _VERSIONS}}


def hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a checkpoint."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.is_file()
    }
