"""The figures of an evaluation, with 95% intervals, and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Sequence

import numpy as np

from densereward_ros.metrics.bootstrap import interval, rounded
from densereward_ros.metrics.classification import confusion
from densereward_ros.metrics.correlation import spearman
from densereward_ros.metrics.error import mae
from densereward_ros.metrics.means import share
from densereward_ros.types import REASONS, Reason


@dataclass
class Scored:
    """One episode: the truth and the model's word and reward for each window, oldest first.

    guesses: None where the reply was malformed. other_block, other_plate: whether the reward of the episode's
    last window was lower when the task named another block or plate; None for a malformed reply.
    found: of the failures that happened, how many gave an event with the right word. alarms: events of clean
    episodes. seconds: how long the episode lasted.
    """

    clean: bool
    held_out: bool
    words: list[Reason]
    rewards: list[float]
    progress: list[float]
    guesses: list[tuple[Reason, float] | None]
    other_block: bool | None
    other_plate: bool | None
    happened: int
    found: int
    alarms: int
    seconds: float


def figures(scored: Sequence[Scored]) -> dict:
    """Every figure of the given episodes, with intervals, and again for held-out shades alone."""
    results = _figures(scored)
    unseen = [episode for episode in scored if episode.held_out]
    results['held_out_shades'] = _figures(unseen) if unseen else None
    return results


def table(results: dict) -> str:
    """The figures as lines of text."""
    lines = [f'{"":34}{"all":>8}  {"95% interval":<18}{"held-out shades":>16}']
    for key, name in _NAMES.items():
        lines.append(_row(name, results, key))
    for word in results['word_accuracy']:
        lines.append(_row(f"windows of '{word}' named right", results, f'word_accuracy.{word}'))
    counts = results['counts']
    lines.append(
        f'{counts["episodes"]} episodes, {counts["windows"]} windows, {counts["clean_windows"]} of them in '
        f'clean episodes ({counts["clean_minutes"]:.1f} minutes)'
    )
    return '\n'.join(lines)


_NAMES = {
    'spearman': 'Spearman, reward and truth',
    'mae': 'mean absolute error of the reward',
    'spearman_progress': 'Spearman, reward and progress',
    'malformed_rate': 'malformed replies',
    'false_failure_rate': 'failure words, clean episodes',
    'false_alarms_per_minute': 'false alarms a minute, clean',
    'events_found': 'failures that gave their event',
    'wrong_task_lower_rate': 'lower reward, wrong block named',
    'wrong_plate_lower_rate': 'lower reward, wrong plate named',
}


def _row(name: str, results: dict, key: str) -> str:
    span = ' to '.join(map(_shown, results['intervals'][key]))
    unseen = results['held_out_shades']
    other = _shown(_look_up(unseen, key)) if unseen else '-'
    return f'{name:34}{_shown(_look_up(results, key)):>8}  {span:<18}{other:>16}'


def _shown(value: float | None) -> str:
    return 'n/a' if value is None else f'{value:.3f}'


def _look_up(results: dict, key: str) -> float | None:
    for part in key.split('.'):
        results = results[part]
    return results


def _figures(scored: Sequence[Scored]) -> dict:
    """The figures of some episodes and their intervals; None where there is nothing to measure."""
    results: dict = {'word_accuracy': {}, 'intervals': {}}

    def add(key: str, parts: Sequence, figure: Callable[[Sequence], float]) -> None:
        value = rounded(figure(parts))
        name, _, word = key.partition('.')
        if word:
            results[name][word] = value
        else:
            results[key] = value
        results['intervals'][key] = [rounded(end) for end in interval(parts, figure)]

    for key, truth in (('spearman', 'rewards'), ('spearman_progress', 'progress')):
        add(key, [_pairs(e, truth) for e in scored], lambda parts: spearman(*np.concatenate(parts, 1)))
    for key, part in _SHARES.items():
        add(key, [part(e) for e in scored], share)
    for reason in REASONS:
        add(f'word_accuracy.{reason.word}', [_named_right(e, reason) for e in scored], share)
    results['confusion'] = _confusion(scored)
    results['counts'] = {
        'episodes': len(scored),
        'windows': sum(len(e.words) for e in scored),
        'clean_windows': sum(len(e.words) for e in scored if e.clean),
        'clean_minutes': round(sum(e.seconds for e in scored if e.clean) / 60, 2),
        'windows_by_word': {r.word: sum(e.words.count(r) for e in scored) for r in REASONS},
        'failures': sum(e.happened for e in scored),
    }
    return results


def _pairs(episode: Scored, truth: str) -> np.ndarray:
    """(2, windows): rewards that the model gave, and what they should have been."""
    both = [(guess[1], target) for guess, target in zip(episode.guesses, getattr(episode, truth)) if guess]
    return np.array(both).reshape(-1, 2).T


def _named_right(episode: Scored, reason: Reason) -> tuple[int, int]:
    guesses = [guess for word, guess in zip(episode.words, episode.guesses) if word is reason]
    return sum(guess is not None and guess[0] is reason for guess in guesses), len(guesses)


def _error(episode: Scored) -> tuple[float, int]:
    guesses, targets = _pairs(episode, 'rewards')
    return (mae(guesses, targets) * len(guesses), len(guesses)) if len(guesses) else (0.0, 0)


def _false_failures(episode: Scored) -> tuple[int, int]:
    guesses = [guess for guess in episode.guesses if guess and episode.clean]
    return sum(guess[0].is_failure for guess in guesses), len(guesses)


# What each figure is a share of: part and whole of one episode.
_SHARES: dict[str, Callable[[Scored], tuple[float, float]]] = {
    'mae': _error,
    'malformed_rate': lambda e: (e.guesses.count(None), len(e.guesses)),
    'false_failure_rate': _false_failures,
    'false_alarms_per_minute': lambda e: (e.alarms, e.seconds / 60 if e.clean else 0.0),
    'events_found': lambda e: (e.found, e.happened),
    'wrong_task_lower_rate': lambda e: (bool(e.other_block), e.other_block is not None),
    'wrong_plate_lower_rate': lambda e: (bool(e.other_plate), e.other_plate is not None),
}


def _confusion(scored: Sequence[Scored]) -> dict[str, dict[str, int]]:
    """Windows by true word, then by the model's word."""
    return confusion(
        (word.word, guess[0].word if guess else 'malformed')
        for episode in scored for word, guess in zip(episode.words, episode.guesses))
