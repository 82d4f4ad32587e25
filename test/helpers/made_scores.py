"""Scores of episodes that the tests make themselves."""

from __future__ import annotations

import math
from typing import Sequence

from densereward_ros.recordings.episode import Labels
from densereward_ros.results.rows import ScoredEpisode, ScoredEvent, ScoredFrame
from densereward_ros.types import REASONS, Reason, Rule

START_NS = 1_700_000_000_000_000_000
STEP_S = 0.2
UNLABELLED = Labels()


def rising(count: int) -> list[float]:
    """Rewards of an episode that goes well, with some noise, from 0 to 1."""
    return [min(1.0, max(0.0, i / max(1, count - 1) + 0.05 * math.sin(7 * i))) for i in range(count)]


def frames(
    rewards: Sequence[float | None], reasons: dict[int, Reason] | None = None, words: bool = True,
    segments: Sequence[int] = (), targets: bool = False,
) -> tuple[ScoredFrame, ...]:
    """Five verdicts a second, from 0.4 s on; None is a malformed reply. reasons: where not correct."""
    made = []
    for i, reward in enumerate(rewards):
        seconds = round(0.4 + STEP_S * i, 3)
        reason = (reasons or {}).get(i, Reason.CORRECT) if words and reward is not None else Reason.NONE
        probabilities = tuple(0.95 if each is reason else 0.01 for each in REASONS) if reason else None
        made.append(ScoredFrame(
            frame=2 * i + 4, stamp_ns=START_NS + round(seconds * 1e9), seconds=seconds,
            segment=sum(i >= start for start in segments), reward=reward, reason=reason,
            reason_probabilities=probabilities, malformed='' if reward is not None else 'no reward in it',
            target=i / len(rewards) if targets else None))
    return tuple(made)


def event(frame: ScoredFrame, reason: Reason, rule: Rule = Rule.WORD) -> ScoredEvent:
    """The event that was complete at a frame."""
    return ScoredEvent(
        frame.stamp_ns, frame.seconds, reason, rule, frame.reward or 0.0, 0.6,
        0.95 if rule is Rule.WORD else None, 2)


def episode(
    name: str, rewards: Sequence[float | None], events: dict[int, Reason] | None = None,
    rule: Rule = Rule.WORD, labels: Labels = UNLABELLED, task: str = 'put the red block on the blue plate',
    camera: str = '/camera/image_raw', **options,
) -> ScoredEpisode:
    """An episode with these rewards. events: at which of them one was complete."""
    events = events or {}
    near = {i - 1: reason for i, reason in events.items() if i} | events
    made = frames(rewards, near if rule is Rule.WORD else {}, **options)
    return ScoredEpisode(
        name, f'recordings/{name}', camera, task, labels, made,
        tuple(event(made[i], reason, rule) for i, reason in sorted(events.items())))
