"""Opening a reward model: find, check, load and warm up."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Callable

from densereward_ros.models.base import ModelError, ModelOptions, RewardModel, check_options, first_line

if TYPE_CHECKING:
    from densereward_ros.models.loading import LoadedModel

# Import name -> distribution name, in the order in which a broken one is best reported.
_DEPENDENCIES = {
    'torch': 'torch',
    'torchvision': 'torchvision',
    'transformers': 'transformers',
    'accelerate': 'accelerate',
    'qwen_vl_utils': 'qwen-vl-utils',
    'PIL': 'pillow',
}


def _ignore(line: str) -> None:
    """Progress that nobody asked for."""


def open_model(options: ModelOptions, progress: Callable[[str], None] = _ignore) -> RewardModel:
    """Find (or download), check, load and warm up a model; the first reply is then as fast as any other.

    progress receives single lines: what happens now, the state of a download every few seconds,
    and warnings (they begin with 'warning: '). It may be called from another thread.
    Raises ModelError.
    """
    check_options(options)
    from densereward_ros.models import user_class

    if user_class.is_meant(options.model):
        return user_class.open_class(options, progress)
    if options.engine == 'server':
        from densereward_ros.models.server import open_server

        return open_server(options, progress)
    _require_dependencies()
    from densereward_ros.models import checkpoint

    found = checkpoint.find(options.model, options.revision, progress)
    _import_dependencies()
    from densereward_ros.models import loading, memory, score_head

    head = score_head.head_for(options.engine, found, progress)  # before gigabytes of other weights
    loaded = loading.load(found, options, progress)
    if head is None:
        model = _engine(loaded, options, progress)
    else:
        model = score_head.ScoreHeadModel(loaded, head)
    progress(f'warming up {model.name}')
    model.warm_up()
    progress(f'{model.name} is ready: {memory.peak(loaded.network.device, options.gpu_memory)}')
    return model


def _engine(loaded: LoadedModel, options: ModelOptions, progress: Callable[[str], None]) -> RewardModel:
    from densereward_ros.models.fast import graphs
    from densereward_ros.models.fast.engine import Shortcuts
    from densereward_ros.models.fast.model import FastModel
    from densereward_ros.models.reference import ReferenceModel

    if options.engine == 'reference':
        return ReferenceModel(loaded, options.max_new_tokens)
    on_gpu = loaded.network.device.type == 'cuda'
    if options.cuda_graphs and not on_gpu:
        progress('warning: cuda_graphs has no effect on a CPU')
    record = graphs.Recorder() if options.cuda_graphs and on_gpu else None
    return FastModel(loaded, options.max_new_tokens, Shortcuts(format=options.constrain), record)


def preload() -> None:
    """Import the heavy packages, which takes seconds, before open_model does; a broken one is left to it."""
    try:
        _require_dependencies()
        _import_dependencies()
        importlib.import_module('transformers.models.qwen3_vl.modeling_qwen3_vl')
    except Exception:  # whatever a broken package raises: open_model says which it is, and how to mend it
        pass


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
