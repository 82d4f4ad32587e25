"""What a reward model is, and how to open one."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from densereward_ros.types import MalformedReply, Verdict, Window

RELEASED_MODEL = 'densereward/densereward-3frame-thinking'
MIN_NEW_TOKENS = 32  # the model card's own lower limit: reason and reward must both fit
DTYPES = ('auto', 'bfloat16', 'float16', 'float32')

# Import name -> distribution name, in the order in which a broken one is best reported.
_DEPENDENCIES = {
    'torch': 'torch',
    'torchvision': 'torchvision',
    'transformers': 'transformers',
    'accelerate': 'accelerate',
    'qwen_vl_utils': 'qwen-vl-utils',
    'PIL': 'pillow',
}


class ModelError(RuntimeError):
    """A model that cannot be opened or run; the text is one clear line for the user."""


class Interrupted(Exception):
    """score() ended early because interrupt() was called."""


@dataclass(frozen=True)
class ModelOptions:
    """Which model to open, and how.

    model: a local folder, a hub id ('owner/name'), or 'tabletop' for the demo checkpoint that
    ships with this package. revision: branch, tag or commit on the hub; of no effect for a folder.
    device: 'auto' (a GPU where there is one), 'cpu', 'cuda' or 'cuda:N'. dtype: 'auto' (bfloat16
    on a GPU, float32 on the CPU), 'bfloat16', 'float16' or 'float32'. max_new_tokens: 32 or more.
    """

    model: str = RELEASED_MODEL
    revision: str = 'main'
    device: str = 'auto'
    dtype: str = 'auto'
    max_new_tokens: int = MIN_NEW_TOKENS


class RewardModel(Protocol):
    """Judges windows. One thread calls score(); interrupt() may come from any other thread."""

    name: str
    """What RewardStamped.model says."""

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """One verdict, or the malformed reply, for each window, in order.

        Raises ImageError for a frame that cannot be used, ValueError for a task that
        prompt.clean_task refuses, ModelError when the model fails (out of GPU memory, closed),
        and Interrupted after interrupt().
        """

    def interrupt(self) -> None:
        """Make a running score(), and every later one until resume(), raise Interrupted.

        It stays set, so that a score() which is just about to start ends as well. A running one
        ends after the token it is at: within milliseconds on a GPU, after at most one pass of
        the prompt on a CPU.
        """

    def resume(self) -> None:
        """Allow score() again after interrupt()."""

    def close(self) -> None:
        """Free the model's memory. score() raises ModelError from then on. May be called twice."""


def _ignore(line: str) -> None:
    """Progress that nobody asked for."""


def open_model(options: ModelOptions, progress: Callable[[str], None] = _ignore) -> RewardModel:
    """Find (or download), check, load and warm up a model; the first reply is then as fast as any other.

    progress receives single lines: what happens now, the state of a download every few seconds,
    and warnings (they begin with 'warning: '). It may be called from another thread.
    Raises ModelError.
    """
    check_options(options)
    _require_dependencies()
    from densereward_ros.models import checkpoint

    found = checkpoint.find(options.model, options.revision, progress)
    _import_dependencies()
    from densereward_ros.models import loading, reference

    loaded = loading.load(found, options.device, options.dtype, progress)
    model = reference.ReferenceModel(loaded, options.max_new_tokens)
    progress(f'warming up {model.name}')
    model.warm_up()
    return model


def preload() -> None:
    """Import the heavy packages, which takes seconds, before open_model does; a broken one is left to it."""
    try:
        _require_dependencies()
        _import_dependencies()
        importlib.import_module('transformers.models.qwen3_vl.modeling_qwen3_vl')
    except (ModelError, ImportError):
        pass  # open_model says which, and how to mend it.


def check_options(options: ModelOptions) -> None:
    """Raise ModelError for an option that no model can honour; needs no torch."""
    if not options.model.strip():
        raise ModelError("model is empty (a local folder, a hub id 'owner/name', or 'tabletop')")
    if not re.fullmatch(r'auto|cpu|cuda(:[0-9]{1,3})?', options.device):
        raise ModelError(f"device is '{options.device}' ('auto', 'cpu', 'cuda' or 'cuda:N' are allowed)")
    if options.dtype not in DTYPES:
        raise ModelError(f"dtype is '{options.dtype}' ({', '.join(DTYPES)} are allowed)")
    if options.max_new_tokens < MIN_NEW_TOKENS:
        raise ModelError(
            f'max_new_tokens is {options.max_new_tokens} ({MIN_NEW_TOKENS} or more are needed: '
            'reason and reward must both fit)'
        )


def _require_dependencies() -> None:
    """Raise ModelError for packages that are not installed, before anything slow starts."""
    missing = [
        package for module, package in _DEPENDENCIES.items() if importlib.util.find_spec(module) is None
    ]
    if missing:
        raise ModelError(
            f'{", ".join(missing)} not installed for {sys.executable}: install with '
            f"'{sys.executable} -m pip install {' '.join(missing)}' "
            '(in a virtual environment; see the README)'
        )


def _import_dependencies() -> None:
    """Import the heavy packages. Raise ModelError for one that is installed but broken."""
    for module, package in _DEPENDENCIES.items():
        try:
            importlib.import_module(module)
        # Not only ImportError: mismatched torch and torchvision end in RuntimeError, a missing
        # CUDA library in OSError. Whatever it is, the user needs the package and the interpreter.
        except Exception as error:
            raise ModelError(
                f'{package} is installed for {sys.executable} but cannot be imported: '
                f'{first_line(error)} (torch and torchvision must be builds of the same release)'
            ) from error


def first_line(error: BaseException) -> str:
    """The kind of an error and the first line of its text, for use inside a one-line message."""
    lines = str(error).strip().splitlines()
    return f'{type(error).__name__}: {lines[0].strip()}' if lines else type(error).__name__
