"""The arithmetic of the evaluation, on episodes made by hand."""

from __future__ import annotations

import pytest

from densereward_ros.tabletop.figures import Scored, figures, table
from densereward_ros.types import REASONS, Reason


def _scored(clean=True, held_out=False, words=(Reason.CORRECT,) * 4, guesses=None, **changes) -> Scored:
    rewards = [0.1 * (k + 1) for k in range(len(words))]
    guesses = guesses or [(word, reward) for word, reward in zip(words, rewards)]
    values = dict(
        clean=clean,
        held_out=held_out,
        words=list(words),
        rewards=rewards,
        progress=rewards,
        guesses=guesses,
        other_block=True,
        other_plate=True,
        happened=0,
        found=0,
        alarms=0,
        seconds=30.0,
    )
    return Scored(**(values | changes))


def test_a_perfect_model_has_perfect_figures():
    """Every figure is at its best end, and word accuracy is given for the words that occur."""
    result = figures([_scored(), _scored(clean=False, words=(Reason.CORRECT, Reason.MISS, Reason.MISS))])
    assert result['spearman'] == 1.0
    assert result['mae'] == 0.0
    assert result['malformed_rate'] == 0.0
    assert result['false_failure_rate'] == 0.0
    assert result['wrong_task_lower_rate'] == 1.0
    assert result['word_accuracy']['miss'] == 1.0
    assert result['word_accuracy']['fall'] is None
    assert result['counts']['windows'] == 7


def test_errors_are_counted_where_they_belong():
    """One malformed reply and one false failure among four clean windows, and an alarm in half a minute."""
    guesses = [(Reason.CORRECT, 0.1), None, (Reason.FALL, 0.3), (Reason.CORRECT, 0.6)]
    result = figures([_scored(guesses=guesses, alarms=1, other_block=False)])
    assert result['malformed_rate'] == 0.25
    assert result['false_failure_rate'] == pytest.approx(1 / 3, abs=1e-4)
    assert result['false_alarms_per_minute'] == 2.0
    assert result['word_accuracy']['correct'] == 0.5
    assert result['mae'] == pytest.approx(0.2 / 3, abs=1e-4)
    assert result['wrong_task_lower_rate'] == 0.0
    assert result['confusion']['correct'] == {'correct': 2, 'malformed': 1, 'fall': 1}


def test_held_out_shades_are_reported_alone():
    """Their figures come from their episodes only; with none there are none."""
    good, bad = _scored(), _scored(held_out=True, guesses=[(Reason.MISS, 0.5)] * 4)
    result = figures([good, bad])
    assert result['held_out_shades']['word_accuracy']['correct'] == 0.0
    assert result['held_out_shades']['spearman'] is None  # constant predictions
    assert result['word_accuracy']['correct'] == 0.5
    assert figures([good])['held_out_shades'] is None


def test_the_table_shows_every_figure():
    """One line each with its interval, and the number of episodes."""
    text = table(figures([_scored(), _scored(held_out=True)]))
    for reason in REASONS:
        assert f"windows of '{reason.word}' named right" in text
    assert 'Spearman, reward and truth' in text and '1.000 to 1.000' in text
    assert '2 episodes, 8 windows' in text
