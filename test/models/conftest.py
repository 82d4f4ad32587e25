"""Checkpoints and windows for the reward models' tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Callable

import numpy as np
import pytest

from densereward_ros.types import Frame, Window


@pytest.fixture(scope='session')
def lively_checkpoint(random_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights large enough that every reply depends on pixels and text; images keep their size."""
    from safetensors.torch import load_file, save_file

    folder = tmp_path_factory.mktemp('checkpoints') / 'lively'
    shutil.copytree(random_checkpoint, folder)
    weights = folder / 'model.safetensors'
    tensors = load_file(weights)
    for name, tensor in tensors.items():
        if tensor.ndim > 1:
            tensors[name] = tensor * 20
    save_file(tensors, weights, metadata={'format': 'pt'})
    for name in ('preprocessor_config.json', 'video_preprocessor_config.json'):
        config = json.loads((folder / name).read_text())
        config['size']['longest_edge'] = 16777216  # the released model's ceiling
        (folder / name).write_text(json.dumps(config))
    return folder


@pytest.fixture(scope='session')
def make_window() -> Callable[..., Window]:
    """Windows of smooth random pictures, the same for the same seed."""

    def make(
        height: int = 96, width: int = 128, seed: int = 0, task: str = 'put the red block away'
    ) -> Window:
        from PIL import Image

        random = np.random.default_rng(seed)
        coarse = random.integers(0, 256, (3, 6, 8, 3), np.uint8)
        images = [np.asarray(Image.fromarray(c).resize((width, height))) for c in coarse]
        frames = tuple(Frame(i, i, lambda image=image: image) for i, image in enumerate(images))
        return Window(camera='/camera', task=task, frames=frames)

    return make
