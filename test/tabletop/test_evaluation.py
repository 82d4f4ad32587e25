"""What the evaluation looks at, and the committed checkpoint held to its bars on a few episodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from densereward_ros.tabletop import evaluation
from densereward_ros.tabletop.evaluation import held_out_episode, score, windows
from densereward_ros.tabletop.judge import SPACING_TICKS
from densereward_ros.types import REASONS, Reason, Verdict


class Oracle:
    """A reward model that knows the truth of one episode, and says `correct`, 0 for any other task."""

    name = 'oracle'

    def __init__(self, number: int) -> None:
        self._episode = held_out_episode(number)
        self._own = {self._episode.task, self._episode.goal.text()}

    def score(self, some):
        """The true word and reward."""
        words, rewards = self._episode.truth()
        return [
            Verdict(rewards[tick], words[tick]) if window.task in self._own else Verdict(0.0, Reason.CORRECT)
            for window in some
            for tick in [window.newest.stamp_ns // 100_000_000]
        ]


def test_the_episodes_cover_every_failure_and_both_kinds_of_shades():
    """Of sixteen episodes six are clean, each failure comes twice, and half have held-out shades."""
    episodes = [held_out_episode(number) for number in range(16)]
    assert sum(not episode.mishaps for episode in episodes) == 6
    for reason in REASONS[1:]:
        assert sum(episode.mishaps == (reason,) for episode in episodes) == 2
    assert [episode.held_out for episode in episodes] == [True] * 8 + [False] * 8


def test_windows_are_those_of_a_node_at_five_a_second():
    """Three frames 0.2 s apart, the next window one frame later; shared frames are the same object."""
    seen = windows(held_out_episode(0))
    (first, one), (second, two) = seen[:2]
    assert second - first == SPACING_TICKS
    assert one.frames[1:] == two.frames[:-1]
    stamps = [frame.stamp_ns for frame in one.frames]
    assert [b - a for a, b in zip(stamps, stamps[1:])] == [200_000_000] * 2


@pytest.mark.parametrize('number', [1, 6])
def test_an_oracle_scores_an_episode_perfectly(number):
    """The bookkeeping of score(): truth against truth, the event found, no alarm."""
    scored = score(Oracle(number), number)
    assert [word for word, _ in scored.guesses] == scored.words
    assert [reward for _, reward in scored.guesses] == scored.rewards
    assert scored.happened == scored.found == 1
    assert scored.other_block is True and scored.other_plate is True
    assert scored.alarms == 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_committed_checkpoint_sees(repository: Path):
    """On six held-out episodes, through the reference model: close to the truth, and words mostly right."""
    folder = repository / 'models' / 'tabletop'
    result = evaluation.evaluate(str(folder), 6, 1, lambda line: None)
    assert result['spearman'] > 0.9
    assert result['mae'] < 0.05
    assert result['malformed_rate'] <= 0.01
    assert result['false_failure_rate'] <= 0.05
    assert result['word_accuracy']['correct'] > 0.9
    assert set(result['model']['sha256']) >= {'config.json', 'model.safetensors'}
