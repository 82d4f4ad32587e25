"""Where a model runs and in which number format, decided before any weight is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from densereward_ros.models.base import ModelError

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


def choose_dtype(dtype: str, device: torch.device, quantization: str = 'none') -> torch.dtype:
    """The number format of the weights: bfloat16 on a GPU and float32 on the CPU unless told otherwise.

    Beside int4 weights there is bfloat16 alone.
    """
    import torch

    if dtype == 'auto':
        return torch.bfloat16 if device.type == 'cuda' or quantization == 'int4' else torch.float32
    return getattr(torch, dtype)


def _what_torch_sees() -> str:
    import torch

    count = torch.cuda.device_count()
    if torch.cuda.is_available() and count:
        return f'torch sees {count} GPU(s): cuda:0 to cuda:{count - 1}'
    build = f'built for CUDA {torch.version.cuda}' if torch.version.cuda else 'built without CUDA'
    return f'torch {torch.__version__} ({build}) sees no CUDA GPU'
