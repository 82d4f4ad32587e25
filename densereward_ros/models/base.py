"""What a reward model is, how it is asked for, and how it fails."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from densereward_ros.types import MalformedReply, Verdict, Window

RELEASED_MODEL = 'densereward/densereward-3frame-thinking'
MIN_NEW_TOKENS = 32  # the model card's own lower limit: reason and reward must both fit
DTYPES = ('auto', 'bfloat16', 'float16', 'float32')
ENGINES = ('fast', 'reference', 'score_head', 'server')
IMAGE_FORMATS = ('png', 'jpeg')
QUANTIZATIONS = ('none', 'int8', 'int4')
MIN_PIXELS = 4096  # a smaller budget than 64x64 shows a model nothing


class ModelError(RuntimeError):
    """A model that cannot be opened or run; the text is one clear line for the user."""


class OutOfMemory(ModelError):
    """No memory was left for a batch of this size. The model freed what it could; a smaller one may fit."""


class Unanswered(ModelError):
    """A server answered some windows only. outcomes: as of score(), with None where there is no answer."""

    def __init__(self, text: str, outcomes: list[Verdict | MalformedReply | None]) -> None:
        super().__init__(text)
        self.outcomes = outcomes


class Interrupted(Exception):
    """score() ended early because interrupt() was called."""


@dataclass(frozen=True)
class ModelOptions:
    """Which model to open, and how.

    model: a local folder, a hub id ('owner/name'), or 'tabletop' for the demo checkpoint that
    ships with this package; 'value-order', 'pixel-difference' or 'module:Class' for a model that is
    a class (user_class), which heeds what it wants of the rest. revision: branch, tag or commit on
    the hub; of no effect for a folder.
    device: 'auto' (a GPU where there is one), 'cpu', 'cuda' or 'cuda:N'. dtype: 'auto' (bfloat16
    on a GPU, float32 on the CPU), 'bfloat16', 'float16' or 'float32'. max_new_tokens: 32 or more.
    engine: 'fast', or 'reference' for the model card's own procedure, step by step; 'score_head' for a
    checkpoint that scores in place of replying.
    constrain: whether the fast engine keeps replies to the format; the reference never does.
    max_pixels: of a frame, larger ones are made smaller; 0 leaves it to the model's own processing
    and to what fits into memory. quantization: of the language model's weights, 'none', 'int8' or
    'int4' (torchao). gpu_memory: GB of the GPU's memory that this process may use; 0.0 for all.
    cuda_graphs: replay recorded passes of the language model on a GPU; of no effect on a CPU.

    engine 'server' asks an OpenAI-compatible server at server_url, which knows the model by the name
    `model`; its system prompt is that of server_checkpoint: a folder, a hub id or 'tabletop'; '' for `model`.
    server_timeout: seconds that one score() may take, retries included. image_format: how frames travel,
    'png' or 'jpeg' of jpeg_quality, 1 to 100. The key is the environment's DENSEREWARD_SERVER_KEY.
    """

    model: str = RELEASED_MODEL
    revision: str = 'main'
    device: str = 'auto'
    dtype: str = 'auto'
    max_new_tokens: int = MIN_NEW_TOKENS
    engine: str = 'fast'
    constrain: bool = True
    max_pixels: int = 0
    quantization: str = 'none'
    gpu_memory: float = 0.0
    cuda_graphs: bool = False
    server_url: str = ''
    server_timeout: float = 2.0
    server_checkpoint: str = ''
    image_format: str = 'png'
    jpeg_quality: int = 90


class RewardModel(Protocol):
    """Judges windows. One thread calls score(); interrupt() may come from any other thread."""

    name: str
    """What RewardStamped.model says."""

    bounded: bool
    """Whether rewards lie in [0, 1], as of its verdicts."""

    corrected: int
    """Replies so far that the engine had to correct to keep them to the format."""

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """One verdict, or the malformed reply, for each window, in order.

        Raises ImageError for a frame that cannot be used, ValueError for a task that
        prompt.clean_task refuses, OutOfMemory when less at once may fit, ModelError when the model
        fails otherwise (closed), Unanswered with the outcomes that a server gave, and Interrupted
        after interrupt().
        """

    def prepare(self, windows: Sequence[Window]) -> None:
        """Work ahead, in idle time, on windows to come: those of their frames that are known, oldest first.

        It changes no verdict. Raises as score does. An engine that cannot work ahead does nothing.
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


def check_options(options: ModelOptions) -> None:
    """Raise ModelError for an option that no model can honour; needs no torch."""
    if not options.model.strip():
        raise ModelError("model is empty (a local folder, a hub id 'owner/name', or 'tabletop')")
    if not re.fullmatch(r'auto|cpu|cuda(:[0-9]{1,3})?', options.device):
        raise ModelError(f"device is '{options.device}' ('auto', 'cpu', 'cuda' or 'cuda:N' are allowed)")
    if options.dtype not in DTYPES:
        raise ModelError(f"dtype is '{options.dtype}' ({', '.join(DTYPES)} are allowed)")
    if options.engine not in ENGINES:
        raise ModelError(f"engine is '{options.engine}' ({', '.join(ENGINES)} are allowed)")
    if options.server_url and options.engine != 'server':
        raise ModelError(f"server_url is set, and engine is '{options.engine}' ('server' asks a server)")
    if options.image_format not in IMAGE_FORMATS:
        raise ModelError(
            f"image_format is '{options.image_format}' ({', '.join(IMAGE_FORMATS)} are allowed)"
        )
    if not 1 <= options.jpeg_quality <= 100:
        raise ModelError(f'jpeg_quality is {options.jpeg_quality} (1 to 100 are allowed)')
    if not 0.05 <= options.server_timeout <= 600:
        raise ModelError(f'server_timeout is {options.server_timeout} (0.05 to 600 seconds are allowed)')
    if options.quantization not in QUANTIZATIONS:
        raise ModelError(
            f"quantization is '{options.quantization}' ({', '.join(QUANTIZATIONS)} are allowed)"
        )
    if options.quantization == 'int4' and options.dtype not in ('auto', 'bfloat16'):
        raise ModelError(f"quantization is 'int4' and dtype '{options.dtype}' (int4 needs bfloat16)")
    if options.max_pixels and options.max_pixels < MIN_PIXELS:
        raise ModelError(
            f'max_pixels is {options.max_pixels} (0, for no budget of its own, or {MIN_PIXELS} and more '
            'are allowed)'
        )
    if not 0 <= options.gpu_memory < float('inf'):
        raise ModelError(f'gpu_memory is {options.gpu_memory} (0.0, for all, or a number of GB is allowed)')
    if options.max_new_tokens < MIN_NEW_TOKENS:
        raise ModelError(
            f'max_new_tokens is {options.max_new_tokens} ({MIN_NEW_TOKENS} or more are needed: '
            'reason and reward must both fit)'
        )


def out_of_memory(name: str, error: BaseException) -> OutOfMemory:
    """The named model's OutOfMemory for the error that torch raised, with the memory really let go.

    The error holds on to every frame of the failed computation, and so to the tensors in them;
    these are cleared, so that emptying the cache gives their memory back to whoever shares the GPU.
    """
    import torch

    traceback.clear_frames(error.__traceback__)
    torch.cuda.empty_cache()
    return OutOfMemory(f'{name} ran out of GPU memory: {first_line(error)}')


def first_line(error: BaseException) -> str:
    """The kind of an error and the first line of its text, for use inside a one-line message."""
    lines = str(error).strip().splitlines()
    return f'{type(error).__name__}: {lines[0].strip()}' if lines else type(error).__name__
