"""The demo checkpoint that ships with the package: real verdicts on rendered episodes it has never seen."""

from __future__ import annotations

import re

import pytest

from densereward_ros.metrics.correlation import spearman
from densereward_ros.models.base import ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.tabletop.episode import record
from densereward_ros.tabletop.evaluation import windows
from densereward_ros.types import Reason, Verdict

SEED = 20_000_000  # far from those of training and of the evaluation


@pytest.fixture(scope='module')
def opened():
    """The demo checkpoint, and the lines that opening it gave."""
    lines = []
    return open_model(ModelOptions(model='tabletop', device='cpu'), lines.append), lines


def test_it_opens_by_its_name_without_a_warning(opened):
    """Its system prompt is known as its own, and every weight has its place."""
    model, lines = opened
    assert model.name == 'tabletop'
    assert [line.split(' (')[0] for line in lines[:2]] == ['loading tabletop', 'warming up tabletop']
    assert re.fullmatch(r'tabletop is ready: this process has used [0-9.]+ [MG]B of memory at most', lines[2])
    assert len(lines) == 3


@pytest.mark.slow
@pytest.mark.parametrize('seed', [SEED, SEED + 1])
def test_the_reward_rises_over_a_successful_episode(opened, seed):
    """From almost nothing to almost one, in step with the true progress, without a word of failure."""
    model, _ = opened
    episode = record(seed)
    _, truth = episode.truth()
    seen = windows(episode)
    verdicts = model.score([window for _, window in seen])
    assert [type(verdict) for verdict in verdicts] == [Verdict] * len(seen)
    rewards = [verdict.reward for verdict in verdicts]
    assert rewards[0] < 0.2
    assert rewards[-1] > 0.9
    assert spearman(rewards, [truth[tick] for tick, _ in seen]) > 0.9
    assert sum(verdict.reason is not Reason.CORRECT for verdict in verdicts) <= len(seen) // 20


@pytest.mark.slow
@pytest.mark.parametrize('mishap', [Reason.MISS, Reason.FALL])
def test_a_failure_is_named(opened, mishap):
    """Most windows in which the failure has just happened get its word, over four episodes."""
    model, _ = opened
    seen = []
    for seed in range(SEED + 2, SEED + 6):
        episode = record(seed, (mishap,))
        words, _ = episode.truth()
        seen += [window for tick, window in windows(episode) if words[tick] is mishap]
    assert len(seen) >= 4
    named = [isinstance(v, Verdict) and v.reason is mishap for v in model.score(seen)]
    assert sum(named) > 0.7 * len(seen)
