"""How far the scores of a batch are from those of the same windows one by one, as a table and as JSON.

    python benchmark/score_head.py --output benchmark/score_head.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from pathlib import Path

import numpy as np
import torch
from generated import MIDDLE, generated_model
from PIL import Image

from densereward_ros import __version__
from densereward_ros.models import checkpoint, loading
from densereward_ros.models.base import ModelOptions
from densereward_ros.models.score_head import ScoreHeadModel
from densereward_ros.types import Frame, Window

TASKS = (
    'lift', 'put the red block on the blue plate', 'go home',
    'put the green block on the yellow plate, then go home')
SIZES = ((96, 128), (64, 64), (128, 224), (224, 96))
DTYPES = ('float32', 'bfloat16')


def main() -> None:
    """Measure every case, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--windows', type=int, default=24, help='of the demo checkpoint')
    parser.add_argument(
        '--middle-windows', type=int, default=4, help='of the generated model; 0 leaves it out')
    parser.add_argument('--output', type=Path, help='write the figures as JSON too')
    arguments = parser.parse_args()
    cases = []
    for name, count, scale in (('demo', arguments.windows, 1), ('generated', arguments.middle_windows, 3)):
        for dtype in DTYPES if count else ():
            cases.append(measure(name, dtype, windows(count, scale)))
            print(line(cases[-1]), flush=True)
    if arguments.output:
        arguments.output.write_text(json.dumps({
            'cases': cases, 'package_version': __version__, 'torch': torch.__version__,
            'machine': f'{platform.processor() or platform.machine()}, {os.cpu_count()} cores, '
                       f'{torch.get_num_threads()} thread(s)'}, indent=2) + '\n')


def measure(name: str, dtype: str, seen: list[Window]) -> dict:
    """One model in one format: a random head whose scores have a spread of about one."""
    if name == 'demo':
        found = checkpoint.find(checkpoint.TABLETOP, 'main', print)
        options = ModelOptions(device='cpu', dtype=dtype, engine='score_head')
        loaded = loading.load(found, options, lambda text: None)
    else:
        loaded = generated_model('generated', MIDDLE, getattr(torch, dtype), torch.device('cpu'))
    hidden = loaded.network.config.text_config.hidden_size
    head = torch.nn.Linear(hidden, 1, bias=False)
    with torch.no_grad():
        head.weight.copy_(torch.randn(1, hidden, generator=torch.Generator().manual_seed(0)))
    model = ScoreHeadModel(loaded, head)
    together = model.scores(seen)
    model.close()
    # A new one, so that the frames are encoded one by one as well.
    model = ScoreHeadModel(loaded, head)
    alone = []
    for window in seen:
        alone += model.scores([window])
    differences = [abs(one - other) for one, other in zip(together, alone)]
    spread = statistics.stdev(alone)
    return {
        'model': name, 'weights': sum(part.numel() for part in loaded.network.parameters()), 'dtype': dtype,
        'windows': len(seen), 'spread': spread, 'largest': max(differences),
        'median': statistics.median(differences), 'largest_of_spread': max(differences) / spread}


def windows(count: int, scale: int) -> list[Window]:
    """Windows of smooth random pictures, in four sizes and with four tasks."""
    random = np.random.default_rng(0)
    made = []
    for number in range(count):
        height, width = (scale * side for side in SIZES[number // 2 % len(SIZES)])
        coarse = random.integers(0, 256, (3, 6, 8, 3), np.uint8)
        images = [np.asarray(Image.fromarray(picture).resize((width, height))) for picture in coarse]
        frames = tuple(Frame(i, i, lambda image=image: image) for i, image in enumerate(images))
        made.append(Window('camera', TASKS[number % len(TASKS)], frames))
    return made


def line(case: dict) -> str:
    """One case in words."""
    return (
        f'{case["model"]:<10} {case["weights"] / 1e6:5.0f} M  {case["dtype"]:<9} {case["windows"]:3} '
        f'windows  spread {case["spread"]:.2f}  largest difference {case["largest"]:.2g}, '
        f'{case["largest_of_spread"]:.1e} of the spread')


if __name__ == '__main__':
    main()
