"""Where a model runs and in which number format, decided before any weight is read."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from densereward_ros.models.base import ModelError
from densereward_ros.models.sizes import human_bytes

if TYPE_CHECKING:
    import torch

    from densereward_ros.models.checkpoint import Checkpoint

# Above this a reply on a CPU takes many seconds, and nobody wants that by accident.
_LARGE_PARAMETERS = 1_000_000_000


def choose_device(device: str, checkpoint: Checkpoint) -> torch.device:
    """The one device that holds the whole model: nothing is ever offloaded in parts.

    Raises ModelError for a GPU that torch does not see, and for a large model that would run on
    the CPU without having been told to ('cpu').
    """
    import torch

    if device == 'cpu':
        return torch.device('cpu')
    if device == 'auto':
        if torch.cuda.is_available():
            return torch.device('cuda', torch.cuda.current_device())
        if checkpoint.parameters > _LARGE_PARAMETERS:
            raise ModelError(
                f'{checkpoint.name} has {checkpoint.parameters / 1e9:.1f} billion parameters and '
                f"{_what_torch_sees()}: use a machine with a GPU, or set device to 'cpu' to accept "
                'many seconds a reply'
            )
        return torch.device('cpu')
    if not torch.cuda.is_available():
        raise ModelError(f"device is '{device}', but {_what_torch_sees()}")
    chosen = torch.device(device)
    if chosen.index is None:
        return torch.device('cuda', torch.cuda.current_device())
    if chosen.index >= torch.cuda.device_count():
        raise ModelError(f"device is '{device}', but {_what_torch_sees()}")
    return chosen


def choose_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """The number format of the weights: bfloat16 on a GPU and float32 on the CPU unless told otherwise."""
    import torch

    if dtype == 'auto':
        return torch.bfloat16 if device.type == 'cuda' else torch.float32
    return getattr(torch, dtype)


def check_memory(device: torch.device, dtype: torch.dtype, checkpoint: Checkpoint) -> None:
    """Raise ModelError when the weights alone do not fit into the GPU's free memory."""
    import torch

    if device.type != 'cuda':
        return
    # What an attempt that failed has left behind still counts as used, until it is given back.
    gc.collect()
    torch.cuda.empty_cache()
    needed = checkpoint.parameters * dtype.itemsize
    free, total = torch.cuda.mem_get_info(device)
    if torch.cuda.get_device_properties(device).is_integrated:
        # A Jetson's GPU shares the system's memory, and CUDA does not count what the page cache
        # would give back at once.
        free = max(free, _available_system_memory())
    if needed > free:
        raise ModelError(
            f'{checkpoint.name} needs {human_bytes(needed)} for its weights in '
            f'{str(dtype).removeprefix("torch.")}, but {device} has {human_bytes(free)} of '
            f'{human_bytes(total)} free: end what else uses the GPU, or choose another device'
        )


def _what_torch_sees() -> str:
    import torch

    count = torch.cuda.device_count()
    if torch.cuda.is_available() and count:
        return f'torch sees {count} GPU(s): cuda:0 to cuda:{count - 1}'
    build = f'built for CUDA {torch.version.cuda}' if torch.version.cuda else 'built without CUDA'
    return f'torch {torch.__version__} ({build}) sees no CUDA GPU'


def _available_system_memory() -> int:
    """Linux's own estimate of the memory that a new process can have, in bytes."""
    with open('/proc/meminfo', encoding='ascii') as lines:
        for line in lines:
            if line.startswith('MemAvailable:'):
                return int(line.split()[1]) * 1024
    return 0
