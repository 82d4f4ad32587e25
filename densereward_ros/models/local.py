"""What the models that run in this process have in common: open until closed, interruptible, warmed up."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING

import numpy as np

from densereward_ros.models.base import Interrupted, ModelError, first_line
from densereward_ros.types import FRAMES_PER_WINDOW, Frame, MalformedReply, Verdict, Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from densereward_ros.models.loading import LoadedModel

_WARM_UP_SIDE = 224  # pixels


def grey_window() -> Window:
    """What a model is tried with before the first real window."""
    grey = np.full((_WARM_UP_SIDE, _WARM_UP_SIDE, 3), 127, np.uint8)
    frames = tuple(Frame(stamp, stamp, lambda: grey) for stamp in range(FRAMES_PER_WINDOW))
    return Window(camera='', task='warm up', frames=frames)


class LocalModel:
    """A RewardModel around a LoadedModel; subclasses say how it scores."""

    bounded = True

    def __init__(self, loaded: LoadedModel) -> None:
        self.name = loaded.name
        self._loaded: LoadedModel | None = loaded
        self._stop = threading.Event()

    @property
    def runs_on(self) -> str:
        """The kind of device and the number format, such as 'cpu float32'. Raises ModelError when closed."""
        network = self._open().network
        return f'{network.device.type} {str(network.dtype).removeprefix("torch.")}'

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """See RewardModel.score."""
        raise NotImplementedError

    def warm_up(self) -> None:
        """One real reply on a grey window. Raises ModelError when the model cannot run here."""
        try:
            self.score([grey_window()])
        except RuntimeError as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(f'{self.name} was loaded but cannot run: {first_line(error)}') from error

    def interrupt(self) -> None:
        """See RewardModel.interrupt."""
        self._stop.set()

    def resume(self) -> None:
        """See RewardModel.resume."""
        self._stop.clear()

    def close(self) -> None:
        """See RewardModel.close."""
        if self._loaded is None:
            return
        on_gpu = self._loaded.network.device.type == 'cuda'
        self._loaded = None
        self._release()
        gc.collect()
        if on_gpu:
            import torch

            torch.cuda.empty_cache()

    def _release(self) -> None:
        """Let go of whatever else holds the weights."""

    def _open(self) -> LoadedModel:
        if self._loaded is None:
            raise ModelError(f'{self.name} is closed')
        return self._loaded

    def _check_running(self) -> None:
        if self._stop.is_set():
            raise Interrupted
