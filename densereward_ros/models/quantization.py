"""Language-model weights in 8 or 4 bits, by torchao; the vision tower stays as it is.

Quantising the vision tower costs accuracy (llm-compressor #1939). Whether the rest costs any on one's
own recordings, `densereward compare` tells.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from typing import TYPE_CHECKING, Any

from densereward_ros.models.base import ModelError, first_line

if TYPE_CHECKING:
    import torch

    from densereward_ros.models.checkpoint import Checkpoint

_GROUP = 128  # weights that share a scale in int4
# Bytes of a weight; in int4 a group has a scale and a zero of two bytes each.
_BYTES = {'int8': 1.0, 'int4': 0.5 + 4 / _GROUP}


def require_torchao() -> None:
    """Raise ModelError when torchao, which is optional, is not there or does not work."""
    install = f'{sys.executable} -m pip install torchao==0.13.0'
    advice = f"'{install}' goes with torch 2.8; or set quantization to 'none'"
    if importlib.util.find_spec('torchao') is None:
        raise ModelError(f'quantization needs torchao, which is not installed for {sys.executable}: {advice}')
    try:
        importlib.import_module('torchao.quantization')
    except Exception as error:  # a build for another torch may raise anything
        raise ModelError(f'torchao cannot be imported: {first_line(error)} ({advice})') from error


def bytes_of_weights(checkpoint: Checkpoint, dtype: torch.dtype, quantization: str) -> int:
    """What the weights take when loaded; quantized or not."""
    full = checkpoint.parameters * dtype.itemsize
    if quantization == 'none':
        return full
    text = json.loads((checkpoint.folder / 'config.json').read_text(encoding='utf-8'))['text_config']
    hidden, heads = text['hidden_size'], text['num_attention_heads']
    head = text.get('head_dim') or hidden // heads
    attention = 2 * hidden * head * (heads + text['num_key_value_heads'])
    linear = text['num_hidden_layers'] * (attention + 3 * hidden * text['intermediate_size'])
    return round(full - linear * (dtype.itemsize - _BYTES[quantization]))


def quantize(network: Any, quantization: str, device: torch.device) -> None:
    """Quantise the linear layers of the language model in place, each on `device`. Raises ModelError."""
    import torch
    from torchao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_

    if quantization == 'int8':
        config = Int8WeightOnlyConfig()
    elif device.type == 'cpu':
        from torchao.dtypes import Int4CPULayout

        config = Int4WeightOnlyConfig(group_size=_GROUP, layout=Int4CPULayout())
    else:
        config = Int4WeightOnlyConfig(group_size=_GROUP)
    try:
        quantize_(network.model.language_model.layers, config, device=device)
    except torch.cuda.OutOfMemoryError:  # whoever loads knows what to say
        raise
    except (RuntimeError, AssertionError, ImportError) as error:
        raise ModelError(
            f"torchao cannot make {quantization} weights on {device}: {first_line(error)} "
            "(set quantization to 'none')"
        ) from error
