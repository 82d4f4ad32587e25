"""A head that is fitted to preferences of the demo world, and what it is worth on new ones."""

from __future__ import annotations

import math

import pytest
import torch

from densereward_ros.metrics.preference import preference
from densereward_ros.models.base import ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.tabletop.preferences import (
    HELD_OUT_SEED,
    LEAST_DIFFERENCE,
    TRAINING_SEED,
    fit_head,
    preferences,
    train_head,
)


def test_preferences_are_of_one_task_and_apart_in_progress():
    """The same for the same seed, others for another."""
    pairs = preferences(TRAINING_SEED, 2, 6)
    assert 4 <= len(pairs) <= 12
    for pair in pairs:
        assert pair.preferred.task == pair.other.task
        assert pair.preferred.newest.stamp_ns != pair.other.newest.stamp_ns
        assert LEAST_DIFFERENCE <= pair.difference <= 1

    def told(some):
        return [(pair.preferred.task, pair.preferred.newest.stamp_ns, pair.difference) for pair in some]

    assert told(preferences(TRAINING_SEED, 2, 6)) == told(pairs)
    assert told(preferences(HELD_OUT_SEED, 2, 6)) != told(pairs)


def test_a_fitted_head_is_the_most_likely_one():
    """Where three of four prefer the larger by one, odds are 3 to 1: a weight of log 3, or a bit less."""
    states = torch.tensor([[1.0]] * 75 + [[0.0]] * 25)
    weight = fit_head(states, 1 - states)
    assert weight.shape == (1, 1)
    assert weight.item() == pytest.approx(math.log(3), abs=0.12)


def test_a_fitted_head_finds_the_direction():
    """Twelve features of different size, of which two decide."""
    generator = torch.Generator().manual_seed(0)
    size = torch.logspace(-2, 2, 12)
    true = torch.zeros(12)
    true[3], true[8] = 1 / size[3], -2 / size[8]
    one, other = (torch.randn(400, 12, generator=generator) * size for _ in range(2))
    better = ((one - other) @ true > 0)[:, None]
    weight = fit_head(torch.where(better, one, other), torch.where(better, other, one))[0]
    one, other = (torch.randn(400, 12, generator=generator) * size for _ in range(2))
    agreed = ((one - other) @ weight > 0) == ((one - other) @ true > 0)
    assert agreed.float().mean() > 0.9
    assert (weight * size)[8] / (weight * size)[3] == pytest.approx(-2, abs=0.4)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_trained_head_ranks_new_pairs_above_chance(tmp_path, capsys):
    """One pair each of forty new episodes, so that the pairs do not depend on one another."""
    lines = []
    folder = train_head(tmp_path / 'head', episodes=20, of_each=6, report=lines.append)
    assert lines[-1] == f'wrote {folder}'
    model = open_model(ModelOptions(model=str(folder), engine='score_head', device='cpu'))
    pairs = preferences(HELD_OUT_SEED, 40, 1)
    scores = model.scores([window for pair in pairs for window in (pair.preferred, pair.other)])
    found = preference([one - other for one, other in zip(scores[::2], scores[1::2])])
    with capsys.disabled():
        low, high = found.interval
        least, median, most = found.margins
        print(
            f'\nheld-out preferences: accuracy {found.accuracy:.3f}, 95% interval {low:.3f} to {high:.3f}, '
            f'{found.pairs} pairs, {found.ties} ties, margins {least:.2f} to {most:.2f}, median {median:.2f}')
    assert len(pairs) > 25
    assert found.interval[0] > 0.5
    assert found.undefined == 0
    assert median > 0
