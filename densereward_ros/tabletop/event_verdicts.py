"""Verdicts on successful episodes in a small file: what a calibration promises is checked without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Sequence

import numpy as np

from densereward_ros.events.calibration import JudgedEpisode
from densereward_ros.types import REASONS, Frame, ImageError, Reason, Verdict, Window

_PARTS = 10_000  # of a probability


def write(episodes: Sequence[JudgedEpisode], model: dict, file: Path) -> None:
    """Write a compressed file. model: name and file hashes of what scored them. Raises OSError."""
    verdicts = [pair for episode in episodes for pair in episode.verdicts]
    np.savez_compressed(
        file,
        model=json.dumps(model),
        lengths=np.array([len(episode.verdicts) for episode in episodes], np.uint16),
        stamps_ms=np.array([window.newest.stamp_ns // 1_000_000 for window, _ in verdicts], np.uint16),
        rewards=np.array([round(1000 * verdict.reward) for _, verdict in verdicts], np.uint16),
        reasons=np.array([verdict.reason for _, verdict in verdicts], np.uint8),
        # Of effect for failures alone, and most verdicts name none: zeros take no room.
        probabilities=np.array(
            [round(_PARTS * _named(verdict)) if verdict.reason.is_failure else 0 for _, verdict in verdicts],
            np.uint16))


def read(file: Path) -> tuple[list[JudgedEpisode], dict]:
    """The episodes and the model's name and hashes.

    Of the probabilities only that of a named failure is kept; the rest of it is spread over the other words.
    """
    with np.load(file) as stored:
        model = json.loads(str(stored['model']))
        columns = zip(*(
            stored[name].tolist() for name in ('stamps_ms', 'rewards', 'reasons', 'probabilities')))
        episodes = [
            JudgedEpisode(str(number), tuple(_pair(*next(columns)) for _ in range(length)))
            for number, length in enumerate(stored['lengths'].tolist())]
    return episodes, model


def _named(verdict: Verdict) -> float:
    return verdict.reason_probabilities[verdict.reason - 1]


def _pair(stamp_ms: int, reward: int, reason: int, probability: int) -> tuple[Window, Verdict]:
    frame = Frame(stamp_ms * 1_000_000, stamp_ms * 1_000_000, _no_image)
    named = Reason(reason)
    share = probability / _PARTS if named.is_failure else 1.0
    rest = (1 - share) / (len(REASONS) - 1)
    probabilities = tuple(share if other is named else rest for other in REASONS)
    return Window('tabletop', '', (frame,) * 3), Verdict(reward / 1000, named, True, probabilities)


def _no_image():
    raise ImageError('only the verdict was stored')
