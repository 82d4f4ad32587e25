"""Memory: what the weights need, what this process may use, and how large frames may then be."""

from __future__ import annotations

import gc
import resource
from typing import TYPE_CHECKING, Any

from densereward_ros.models.base import ModelError
from densereward_ros.models.sizes import human_bytes
from densereward_ros.types import FRAMES_PER_WINDOW

if TYPE_CHECKING:
    import torch

    from densereward_ros.models.checkpoint import Checkpoint

# What qwen_vl_utils, and so the model card's procedure, makes of any larger picture: 16384 tokens of 28x28.
CARD_MAX_PIXELS = 16384 * 28 * 28
# Of the memory left beside the weights, the part that one window may take: there are other cameras.
_WINDOW_SHARE = 0.5
_GB = 1e9


def limit_memory(device: torch.device, gigabytes: float) -> None:
    """Let this process have no more of a GPU than this many GB; 0.0 sets no limit.

    torch then refuses to allocate more, as it does when the GPU is full. Raises ModelError.
    """
    import torch

    if device.type != 'cuda':
        return
    total = torch.cuda.get_device_properties(device).total_memory
    if gigabytes * _GB > total:
        raise ModelError(f'gpu_memory is {gigabytes} GB, but {device} has {human_bytes(total)}')
    torch.cuda.set_per_process_memory_fraction(gigabytes * _GB / total if gigabytes else 1.0, device)


def check_memory(
    device: torch.device, needed: int, checkpoint: Checkpoint, gigabytes: float, what: str
) -> None:
    """Raise ModelError when the weights alone do not fit into the GPU's free memory.

    needed: bytes of weights. gigabytes: the limit for this process, 0.0 for none. what: the weights' format.
    """
    import torch

    if device.type != 'cuda':
        return
    # What an attempt that failed has left behind still counts as used, until it is given back.
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    free = free_memory(device, gigabytes)
    if needed > free:
        raise ModelError(
            f'{checkpoint.name} needs {human_bytes(needed)} for its weights in {what}, but '
            f'{room(device, gigabytes)}'
        )


def room(device: torch.device, gigabytes: float) -> str:
    """What is free, of what, and what to do when it is too little, as a clause."""
    import torch

    allowed, free_now = free_memory(device, gigabytes), free_memory(device)
    free = human_bytes(allowed)
    if allowed < free_now:
        return f'gpu_memory leaves {free} of {gigabytes:g} GB: raise it, or set quantization to int8 or int4'
    _, total = torch.cuda.mem_get_info(device)
    return (
        f'{device} has {free} of {human_bytes(total)} free: end what else uses the GPU, set quantization to '
        'int8 or int4, or choose another device'
    )


def free_memory(device: torch.device, gigabytes: float = 0.0) -> int:
    """Bytes that this process can still have."""
    import torch

    if device.type != 'cuda':
        return _available_system_memory()
    free, _ = torch.cuda.mem_get_info(device)
    if torch.cuda.get_device_properties(device).is_integrated:
        # A Jetson's GPU shares the system's memory, and CUDA does not count what the page cache
        # would give back at once.
        free = max(free, _available_system_memory())
    if gigabytes:
        free = min(free, round(gigabytes * _GB) - torch.cuda.memory_reserved(device))
    return max(free, 0)


def pixels_that_fit(network: Any, free: int) -> int:
    """How many pixels a frame may have so that a window's three take at most half of `free` bytes.

    Counted are keys and values, features, and what the vision tower holds while it encodes.
    """
    text, vision = network.config.text_config, network.config.vision_config
    size = network.dtype.itemsize
    head = getattr(text, 'head_dim', None) or text.hidden_size // text.num_attention_heads
    keyvalues = 2 * text.num_hidden_layers * text.num_key_value_heads * head * size
    features = (1 + len(vision.deepstack_visual_indexes)) * text.hidden_size * size
    patch = 4 * vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
    activations = (8 * vision.hidden_size + 2 * vision.intermediate_size) * size
    token = keyvalues + features + vision.spatial_merge_size**2 * (patch + activations)
    tokens = _WINDOW_SHARE * free / FRAMES_PER_WINDOW / token
    return int(tokens) * (vision.patch_size * vision.spatial_merge_size) ** 2


def peak(device: torch.device, gigabytes: float = 0.0) -> str:
    """The most memory that was in use so far, in words."""
    import torch

    if device.type != 'cuda':
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return f'this process has used {human_bytes(most)} of memory at most'
    total = torch.cuda.get_device_properties(device).total_memory
    limit = f', of which gpu_memory allows {gigabytes:g} GB' if gigabytes else ''
    return (
        f'{human_bytes(torch.cuda.max_memory_reserved(device))} of GPU memory used at most, '
        f'{human_bytes(torch.cuda.memory_allocated(device))} now, of {human_bytes(total)} on {device}{limit}'
    )


def _available_system_memory() -> int:
    """Linux's own estimate of the memory that a new process can have, in bytes."""
    with open('/proc/meminfo', encoding='ascii') as lines:
        for line in lines:
            if line.startswith('MemAvailable:'):
                return int(line.split()[1]) * 1024
    return 0
