"""Checkpoints with a score head whose weights the test chooses."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from densereward_ros.models.base import ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.types import Window


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


def plant_scores(checkpoint: Path, folder: Path, windows: list[Window], scores: list[float]) -> Path:
    """A copy of a checkpoint in `folder`, with a head solved for that gives these windows these scores."""
    plant(checkpoint, folder, torch.zeros(1, 128))
    model = open_model(ModelOptions(model=str(folder), device='cpu', engine='score_head'))
    states = model.states(windows).double().numpy()
    model.close()
    weight = np.linalg.lstsq(states, np.array(scores), rcond=None)[0]
    tensors = load_file(folder / 'model.safetensors')
    tensors['score.weight'] = torch.tensor(weight[None], dtype=torch.float)
    save_file(tensors, folder / 'model.safetensors', metadata={'format': 'pt'})
    return folder
