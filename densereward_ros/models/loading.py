"""Loading a checked checkpoint: weights, processor and system prompt, and whether all weights arrived."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Callable

from densereward_ros.models import checkpoint as checkpoints
from densereward_ros.models import memory
from densereward_ros.models.base import ModelError, ModelOptions, first_line
from densereward_ros.models.placement import choose_device, choose_dtype
from densereward_ros.models.prompt import (
    RELEASED_SHA256,
    SYSTEM_PROMPT_FILE,
    read_system_prompt,
    system_prompt_sha256,
)
from densereward_ros.models.quantization import bytes_of_weights, quantize, require_torchao
from densereward_ros.models.sizes import human_bytes

if TYPE_CHECKING:
    import torch

    from densereward_ros.models.checkpoint import Checkpoint

_OWN_PREFIXES = ('model.', 'lm_head.', 'visual.')
_SHOWN = 3


@dataclass(frozen=True)
class LoadedModel:
    """All that a reply needs.

    network: Qwen3VLForConditionalGeneration. processor: Qwen3VLProcessor. system_prompt: '' for none.
    max_pixels: larger frames are made smaller; None leaves it to the processor.
    """

    name: str
    network: Any
    processor: Any
    system_prompt: str
    max_pixels: int | None = None

    @cached_property
    def special_tokens(self) -> tuple[str, ...]:
        """The texts that this checkpoint's tokenizer takes for special tokens."""
        added = self.processor.tokenizer.added_tokens_decoder.values()
        return tuple(token.content for token in added if token.special)


def load(checkpoint: Checkpoint, options: ModelOptions, progress: Callable[[str], None]) -> LoadedModel:
    """Load a checkpoint onto one device.

    progress receives single lines; warnings begin with 'warning: '. Raises ModelError, also where
    transformers would only warn: weights that are missing, do not fit, or have no place. For the engine
    'score_head' no head is loaded that writes words, and a system prompt is the checkpoint's own affair.
    """
    scores = options.engine == 'score_head'
    promptless = scores and not (checkpoint.folder / SYSTEM_PROMPT_FILE).exists()
    system_prompt = '' if promptless else read_system_prompt(checkpoint.folder)
    place = choose_device(options.device, checkpoint)
    number_format = choose_dtype(options.dtype, place, options.quantization)
    if options.quantization != 'none':
        require_torchao()
    memory.limit_memory(place, options.gpu_memory)
    needed = bytes_of_weights(checkpoint, number_format, options.quantization)
    what = str(number_format).removeprefix('torch.')
    what = what if options.quantization == 'none' else f'{options.quantization} and {what}'
    memory.check_memory(place, needed, checkpoint, options.gpu_memory, what)
    progress(f'loading {checkpoint.name} ({human_bytes(checkpoint.weight_bytes)}) onto {place}')
    network, report = _load_network(checkpoint, place, number_format, options)
    if scores:
        report['missing_keys'] = set(report['missing_keys']) - {'lm_head.weight'}
    _check_report(report, checkpoint.name, progress)
    if scores:
        network.lm_head = None
    elif network.config.tie_word_embeddings:
        _check_tied_head(checkpoint)
    processor = _load_processor(checkpoint)
    if not scores:
        check_system_prompt(checkpoint.name, system_prompt, progress)
    _check_patch_embedding(network, progress)
    max_pixels = _max_pixels(network, processor, options, progress)
    return LoadedModel(checkpoint.name, network, processor, system_prompt, max_pixels)


def _max_pixels(
    network: Any, processor: Any, options: ModelOptions, progress: Callable[[str], None]
) -> int | None:
    """The budget of a frame: the user's, and no more than fits into memory.

    The processor enlarges what has fewer pixels than its own least, and makes smaller what has more
    than its most.
    """
    size = processor.image_processor.size
    least, most = size['shortest_edge'], size['longest_edge']
    if 0 < options.max_pixels < least:
        progress(f'warning: max_pixels is {options.max_pixels}, and this model takes {least} at least')
    wanted = max(least, min(options.max_pixels or memory.CARD_MAX_PIXELS, most))
    fitting = memory.pixels_that_fit(network, memory.free_memory(network.device, options.gpu_memory))
    if fitting < wanted:
        fitting = max(fitting, least)
        progress(
            f'warning: frames of more than {fitting / 1e6:.2g} megapixels are made smaller, for three of '
            'them to fit into memory'
        )
        return fitting
    return wanted if options.max_pixels else None


def _load_network(
    checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype, options: ModelOptions
) -> tuple[Any, dict]:
    import torch

    try:
        from transformers import Qwen3VLForConditionalGeneration
    except ImportError as error:
        import transformers

        raise ModelError(
            f'transformers {transformers.__version__} has no Qwen3-VL to import: {first_line(error)} '
            '(4.57 or newer is needed)'
        ) from error
    quantized = options.quantization != 'none'
    # A device map writes each weight straight to the GPU; without one the CPU's memory would hold
    # the whole model first, which a Jetson cannot spare. Weights to be quantised come layer by layer.
    placement = {} if device.type == 'cpu' or quantized else {'device_map': {'': device}}
    try:
        with _quiet_transformers():
            network, report = Qwen3VLForConditionalGeneration.from_pretrained(
                checkpoint.folder,
                dtype=dtype,
                attn_implementation='sdpa',  # with no mask it is causal, which 'eager' is not
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are reported, and refused with their names
                **placement,
            )
        if quantized:
            quantize(network, options.quantization, device)
            network.to(device)
            torch.cuda.empty_cache()  # of what the full weights took; does nothing without a GPU
    except torch.cuda.OutOfMemoryError as error:
        torch.cuda.empty_cache()
        raise ModelError(
            f'{checkpoint.name} does not fit: {memory.room(device, options.gpu_memory)} ({first_line(error)})'
        ) from error
    except ModelError:
        raise
    # Whatever transformers finds wrong with a file (there is no common base class) is for the user to read.
    except Exception as error:
        raise ModelError(f'cannot load {checkpoint.name}: {first_line(error)}') from error
    # The base model's settings sample; greedy decoding ignores them, but not without a warning a reply.
    for setting in ('temperature', 'top_p', 'top_k'):
        setattr(network.generation_config, setting, None)
    network.generation_config.do_sample = False
    return network.eval(), report


def _load_processor(checkpoint: Checkpoint) -> Any:
    from transformers import AutoProcessor

    try:
        with _quiet_transformers():
            return AutoProcessor.from_pretrained(
                checkpoint.folder, trust_remote_code=False, local_files_only=True
            )
    except Exception as error:
        raise ModelError(f'cannot load the processor of {checkpoint.name}: {first_line(error)}') from error


def _check_report(report: dict, name: str, progress: Callable[[str], None]) -> None:
    """Turn transformers' loading report into errors. It knows which missing weights are tied to others."""
    missing = sorted(report['missing_keys'])
    if missing:
        raise ModelError(
            f'{name} lacks {len(missing)} weight(s), which would be newly initialised (random): '
            f'{_some(missing)}'
        )
    mismatched = sorted(key if isinstance(key, str) else key[0] for key in report['mismatched_keys'])
    if mismatched:
        raise ModelError(
            f'{name} has {len(mismatched)} weight(s) of another shape than its config: {_some(mismatched)}'
        )
    # Of a score head, whoever opens the model knows what to say.
    unexpected = sorted(set(report['unexpected_keys']) - {checkpoints.SCORE_WEIGHT})
    own = [key for key in unexpected if key.startswith(_OWN_PREFIXES)]
    if own:
        raise ModelError(f'{name} has {len(own)} weight(s) that its config has no place for: {_some(own)}')
    if report.get('error_msgs'):
        raise ModelError(f'cannot load {name}: {" ".join(str(report["error_msgs"][0]).split())}')
    if unexpected:
        progress(
            f'warning: {name} has {len(unexpected)} weight(s) that a reply does not use: {_some(unexpected)}'
        )


def _check_tied_head(checkpoint: Checkpoint) -> None:
    """Refuse a head that the config ties to the embeddings but that holds other numbers.

    transformers 4.57 would drop the head and 5 would untie it, so no two machines need agree on the rewards.
    """
    import torch
    from safetensors import safe_open

    found = {}
    for shard in checkpoints.weight_files(checkpoint.folder):
        with safe_open(checkpoint.folder / shard, framework='pt') as file:
            for key in file.keys():  # noqa: SIM118 (safe_open is no mapping)
                if key == 'lm_head.weight' or key.endswith('.embed_tokens.weight'):
                    found[key == 'lm_head.weight'] = file.get_tensor(key)
    if len(found) == 2 and not torch.equal(found[True], found[False]):
        raise ModelError(
            f'{checkpoint.name} holds an lm_head.weight that differs from the embeddings, but its config '
            'says tie_word_embeddings: set that to false in config.json, or remove the tensor'
        )


def check_system_prompt(name: str, system_prompt: str, progress: Callable[[str], None]) -> None:
    """Warn when a system prompt is neither the released one nor the demo checkpoint's."""
    digest = system_prompt_sha256(system_prompt)
    if digest not in (RELEASED_SHA256, _tabletop_sha256()):
        progress(
            f'warning: the system prompt of {name} differs from the released one (SHA-256 {digest[:12]}..., '
            f'{RELEASED_SHA256[:12]}... expected): rewards may be off'
        )


def _check_patch_embedding(network: Any, progress: Callable[[str], None]) -> None:
    import torch

    slow = isinstance(network.model.visual.patch_embed.proj, torch.nn.Conv3d)
    if slow and torch.__version__.startswith('2.9.'):
        progress(
            f'warning: torch {torch.__version__} is slow in the vision patch embedding (a Conv3d regression '
            'of 2.9): use 2.8, or 2.10 and newer'
        )


def _tabletop_sha256() -> str | None:
    """The demo checkpoint has a system prompt of its own, and so have models trained like it."""
    try:
        return system_prompt_sha256(read_system_prompt(checkpoints.tabletop_folder()))
    except ModelError:
        return None


def _some(keys: list[str]) -> str:
    return ', '.join(keys[:_SHOWN]) + (', ...' if len(keys) > _SHOWN else '')


@contextlib.contextmanager
def _quiet_transformers() -> Iterator[None]:
    """No progress bars and no report tables: what they say reaches the user as single lines."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
