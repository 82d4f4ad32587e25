"""Checkpoints with a score head whose weights the test chooses."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


def plant(
    checkpoint: Path, folder: Path, weight: torch.Tensor | None, **changed: torch.Tensor | None
) -> Path:
    """A copy of a checkpoint in `folder`, with this score.weight; `changed` replaces others, None removes.

    In a keyword, two underscores stand for the dot of a weight's name.
    """
    shutil.copytree(checkpoint, folder)
    tensors = load_file(folder / 'model.safetensors')
    for name, tensor in {'score.weight': weight, **changed}.items():
        tensors.pop(name.replace('__', '.'), None)
        if tensor is not None:
            tensors[name.replace('__', '.')] = tensor
    save_file(tensors, folder / 'model.safetensors', metadata={'format': 'pt'})
    return folder
