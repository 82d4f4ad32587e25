"""A score head for the demo checkpoint, fitted to which of two moments of an episode is further on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Sequence

import numpy as np
import torch
from torch.nn import functional as F

from densereward_ros.models import checkpoint, loading
from densereward_ros.models.base import ModelOptions
from densereward_ros.models.score_head import ScoreHeadModel
from densereward_ros.tabletop.episode import random_mishaps, record
from densereward_ros.tabletop.evaluation import windows
from densereward_ros.tabletop.judge import progress
from densereward_ros.types import Window

LEAST_DIFFERENCE = 0.05  # of the true progress: nearer ones are no preference that anybody would state
TRAINING_SEED, HELD_OUT_SEED = 41, 43
_SPREAD_PENALTY = 1e-2  # on the squared weights of features in units of their own spread


@dataclass(frozen=True)
class Preference:
    """Two windows of one episode, and so of one task; the preferred one's true progress is greater."""

    preferred: Window
    other: Window
    difference: float


def preferences(seed: int, episodes: int, of_each: int) -> list[Preference]:
    """Up to so many pairs of each of so many episodes with random mishaps; the same for the same seed."""
    found = []
    for number in range(episodes):
        rng = np.random.default_rng([seed, number])
        episode = record([seed, number], random_mishaps(rng))
        seen = windows(episode)
        known = [progress(episode.views[tick], episode.goal) for tick, _ in seen]
        for _ in range(of_each):
            one, other = rng.choice(len(seen), 2, replace=False)
            if known[one] < known[other]:
                one, other = other, one
            if known[one] - known[other] >= LEAST_DIFFERENCE:
                found.append(Preference(seen[one][1], seen[other][1], known[one] - known[other]))
    return found


def fit_head(preferred: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The weight (1, hidden) of a Bradley-Terry head on hidden states (pairs, hidden) of either side.

    It makes the preferences most likely, where one has the chance sigmoid(the difference of the scores).
    """
    differences = (preferred - other).double()
    spread = differences.std(0).clamp(min=1e-6)
    scaled = differences / spread
    weight = torch.zeros(scaled.shape[1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight], max_iter=200, line_search_fn='strong_wolfe')

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        value = F.softplus(-scaled @ weight).mean() + _SPREAD_PENALTY * (weight**2).sum()
        value.backward()
        return value

    optimiser.step(loss)
    return (weight.detach() / spread).float()[None]


def train_head(
    folder: str | Path,
    model: str = checkpoint.TABLETOP,
    episodes: int = 40,
    of_each: int = 8,
    report: Callable[[str], None] = print,
) -> Path:
    """Fit a head to the preferences of that many episodes, and write the checkpoint with it; its folder.

    folder: is made. Raises ModelError, and OSError when it cannot be written.
    """
    from safetensors.torch import load_file, save_file

    base = checkpoint.find(model, 'main', report)
    loaded = loading.load(base, ModelOptions(engine='score_head', device='cpu'), report)
    hidden = loaded.network.config.text_config.hidden_size
    reader = ScoreHeadModel(loaded, torch.nn.Linear(hidden, 1, bias=False))
    pairs = preferences(TRAINING_SEED, episodes, of_each)
    report(f'{len(pairs)} preferences of {episodes} episodes')
    weight = fit_head(*_states(reader, pairs))
    reader.close()
    folder = Path(shutil.copytree(base.folder, folder))
    tensors = load_file(folder / 'model.safetensors')
    path = folder / 'model.safetensors'
    save_file({**tensors, checkpoint.SCORE_WEIGHT: weight}, path, metadata={'format': 'pt'})
    path.chmod(0o644)  # safetensors makes it private to its owner
    report(f'wrote {folder}')
    return folder


def _states(reader: ScoreHeadModel, pairs: Sequence[Preference]) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states of the preferred windows and of the others, each of a window once."""
    seen = list(dict.fromkeys(window for pair in pairs for window in (pair.preferred, pair.other)))
    states = reader.states(seen)
    row = {window: number for number, window in enumerate(seen)}
    return (
        states[[row[pair.preferred] for pair in pairs]].clone(),
        states[[row[pair.other] for pair in pairs]].clone(),
    )
