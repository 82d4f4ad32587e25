"""A reward model's verdicts on a recording."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Iterable

from densereward_ros.models.base import RewardModel
from densereward_ros.types import Frame, ImageError, Verdict, Window

BATCH = 8


def judge(model: RewardModel, windows: Iterable[Window]) -> tuple[tuple[tuple[Window, Verdict], ...], int]:
    """Score windows in order; returns the verdicts with their windows, and how many replies were malformed.

    The images are let go as it goes, so a long recording needs no more memory than a short one; the windows
    returned have their stamps alone. Raises as the windows' source and the model do.
    """
    judged, malformed, left = [], 0, iter(windows)
    while batch := list(islice(left, BATCH)):
        for window, outcome in zip(batch, model.score(batch), strict=True):
            if isinstance(outcome, Verdict):
                judged.append((_without_images(window), outcome))
            else:
                malformed += 1
    return tuple(judged), malformed


def _without_images(window: Window) -> Window:
    return replace(
        window, frames=tuple(Frame(frame.stamp_ns, frame.received_ns, _gone) for frame in window.frames))


def _gone():
    raise ImageError('the image was let go after it had been judged')
