"""The reward node with the demo checkpoint, which fails now and then as models do: the soak's own process."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from densereward_ros.models import opening
from densereward_ros.models.base import ModelError, OutOfMemory, RewardModel
from densereward_ros.ros import reward_node, start
from densereward_ros.types import MalformedReply, Verdict, Window

CHANCE = random.SystemRandom()


class Unreliable:
    """A model that in one call of forty runs out of memory, breaks, hangs for a second or talks nonsense."""

    def __init__(self, model: RewardModel) -> None:
        self._model = model

    def __getattr__(self, name: str):
        return getattr(self._model, name)

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """See RewardModel.score."""
        fate = CHANCE.randrange(160)
        if fate == 0:
            raise OutOfMemory('soak: CUDA out of memory')
        if fate == 1:
            raise RuntimeError('soak: device-side assert\n[FATAL] in two lines')
        if fate == 2:
            time.sleep(1.0)
        outcomes = self._model.score(windows)
        if fate == 3:
            outcomes[0] = MalformedReply('\x1b[2J nonsense', 'soak: nonsense \x1b[2J')
        return outcomes


def open_model(*arguments) -> Unreliable:
    """The real one, but one configure of five fails, in a way that is foreseen or in one that is not."""
    fate = CHANCE.randrange(10)
    if fate == 0:
        raise ModelError('soak: the hub cannot be reached')
    if fate == 1:
        raise OSError(5, 'soak: the disk is gone')
    return Unreliable(opening.open_model(*arguments))


reward_node.open_model = open_model
start.main()
