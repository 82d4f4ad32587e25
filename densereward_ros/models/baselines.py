"""Reward models that know nothing: what a real one has to beat."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from densereward_ros.models.base import ModelOptions
from densereward_ros.types import MalformedReply, Reason, Verdict, Window


class ValueOrder:
    """The later a frame, the higher its reward: the seconds of the newest frame's time stamp.

    Only the order within one episode means anything: where stamps count from 1970, so does the reward. Its
    value-order correlation is 1 by definition, and its correlation with the progress shows how much of a
    model's own comes from the mere passing of time.
    """

    bounded = False

    def __init__(self, options: ModelOptions) -> None:
        pass

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """One verdict a window, in order."""
        return [Verdict(window.newest.stamp_ns / 1e9, Reason.NONE, bounded=False) for window in windows]


class PixelDifference:
    """How much moved: the mean absolute difference of the window's newest and oldest picture, from 0 to 1.

    It is a number without a meaning for the task, so it is not called bounded. Frames of different sizes have
    no difference, and give a malformed reply.
    """

    bounded = False

    def __init__(self, options: ModelOptions) -> None:
        pass

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """One verdict a window, in order. Raises ImageError for a frame that cannot be decoded."""
        return [self._difference(window.frames[0].image, window.newest.image) for window in windows]

    @staticmethod
    def _difference(oldest: np.ndarray, newest: np.ndarray) -> Verdict | MalformedReply:
        if oldest.shape != newest.shape:
            return MalformedReply('', f'frames of {oldest.shape} and {newest.shape} have no difference')
        difference = np.abs(newest.astype(np.int16) - oldest).mean() / 255
        return Verdict(float(difference), Reason.NONE, bounded=False)
