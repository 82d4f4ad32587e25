"""Reward models that are one Python class: the baselines, and the user's own by the name 'module:Class'.

Such a class has `__init__(self, options)`, with ModelOptions, and `score(self, windows)`, which returns one
Verdict or MalformedReply for each window, in order. It may have `bounded = False`, where rewards are not in
[0, 1], and `close(self)`. Everything else that a RewardModel has is added here.
"""

from __future__ import annotations

import importlib
import re
import threading
from typing import TYPE_CHECKING, Any, Callable

from densereward_ros.models.base import Interrupted, ModelError, ModelOptions, first_line
from densereward_ros.types import ImageError, MalformedReply, Verdict, Window

if TYPE_CHECKING:
    from collections.abc import Sequence

BASELINES = {
    'value-order': 'densereward_ros.models.baselines:ValueOrder',
    'pixel-difference': 'densereward_ros.models.baselines:PixelDifference',
}
_SPEC = re.compile(r'([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)', re.ASCII)


def is_meant(model: str) -> bool:
    """Whether a model's name stands for a class and not for a checkpoint."""
    return model in BASELINES or _SPEC.fullmatch(model) is not None


def open_class(options: ModelOptions, progress: Callable[[str], None]) -> UserModel:
    """Import the class, make the model and try it on a grey window. Raises ModelError.

    The class comes from the Python path and from nowhere else: a checkpoint brings no code.
    """
    from densereward_ros.models.local import grey_window

    cls = _find(BASELINES.get(options.model, options.model))
    try:
        own = cls(options)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f'{options.model} cannot be made: {first_line(error)}') from error
    model = UserModel(options.model, own)
    try:
        model.score([grey_window()])
    except BaseException:
        model.close()
        raise
    progress(f'{model.name} is ready')
    return model


class UserModel:
    """A RewardModel around an object that has score(); what it returns is checked.

    interrupt() takes effect before and after a call of the object's score(), not during one.
    """

    corrected = 0

    def __init__(self, name: str, own: Any) -> None:
        """own: the object. Raises ModelError for a `bounded` that is neither true nor false."""
        self.name = name
        self.bounded = getattr(own, 'bounded', True)
        if not isinstance(self.bounded, bool):
            raise ModelError(f'{name}: bounded is {self.bounded!r} (True or False are allowed)')
        self._own = own
        self._stop = threading.Event()

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """See RewardModel.score. Raises ModelError too for what is no list of as many outcomes."""
        if self._own is None:
            raise ModelError(f'{self.name} is closed')
        self._check_running()
        try:
            outcomes = self._own.score(windows)
        except (ModelError, ImageError, Interrupted):
            raise
        except Exception as error:
            raise ModelError(f'{self.name} failed: {first_line(error)}') from error
        self._check_running()
        if not isinstance(outcomes, (list, tuple)):
            raise ModelError(
                f'{self.name}: score returned {type(outcomes).__name__} (a list of Verdict or MalformedReply '
                'is allowed)')
        if len(outcomes) != len(windows):
            raise ModelError(
                f'{self.name}: score returned {len(outcomes)} outcomes for {len(windows)} windows (as many '
                'are allowed)')
        for outcome in outcomes:
            self._check(outcome)
        return list(outcomes)

    def prepare(self, windows: Sequence[Window]) -> None:
        """Nothing can be done ahead."""

    def interrupt(self) -> None:
        """See RewardModel.interrupt."""
        self._stop.set()

    def resume(self) -> None:
        """See RewardModel.resume."""
        self._stop.clear()

    def close(self) -> None:
        """See RewardModel.close. Raises ModelError where the object's own close fails."""
        own, self._own = self._own, None
        try:
            if hasattr(own, 'close'):
                own.close()
        except Exception as error:
            raise ModelError(f'{self.name} cannot be closed: {first_line(error)}') from error

    def _check_running(self) -> None:
        if self._stop.is_set():
            raise Interrupted

    def _check(self, outcome: object) -> None:
        if isinstance(outcome, MalformedReply):
            return
        if not isinstance(outcome, Verdict):
            raise ModelError(
                f'{self.name}: score returned a list with {type(outcome).__name__} in it (Verdict and '
                'MalformedReply are allowed)')
        if outcome.bounded is not self.bounded:
            raise ModelError(
                f'{self.name}: score returned a verdict with bounded {outcome.bounded}, and the class says '
                f'bounded = {self.bounded} (the same is allowed)')


def _find(spec: str) -> type:
    path, _, name = spec.partition(':')
    try:
        module = importlib.import_module(path)
    except Exception as error:  # a module of the user's may raise anything
        missing = isinstance(error, ModuleNotFoundError) and (error.name or '') in (
            path, *(path[:dot.start()] for dot in re.finditer(r'\.', path)))
        hint = ' (its folder must be on the Python path: PYTHONPATH)' if missing else ''
        raise ModelError(f'model {spec}: {path} cannot be imported: {first_line(error)}{hint}') from error
    cls = getattr(module, name, None)
    if not isinstance(cls, type):
        classes = sorted(key for key, value in vars(module).items()
                         if isinstance(value, type) and value.__module__ == path)
        raise ModelError(f'model {spec}: {path} has no class {name} (it has {", ".join(classes) or "none"})')
    if not callable(getattr(cls, 'score', None)):
        raise ModelError(f'model {spec}: {name} has no score(windows)')
    return cls
