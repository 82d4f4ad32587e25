"""The comparison of two models' verdicts: figures from hand-made replies."""

from __future__ import annotations

import pytest

from densereward_ros.models.agreement import Agreement, Scored
from densereward_ros.models.base import ModelError
from densereward_ros.types import MalformedReply, Reason, Verdict

NONE = MalformedReply('?', 'no word')


def test_figures_of_four_windows():
    """Only pairs of verdicts are compared; malformed replies are counted on their own side."""
    one = Scored(
        [Verdict(0.5, Reason.CORRECT), Verdict(0.2, Reason.MISS), NONE, Verdict(0.9, Reason.CORRECT)],
        [0.010, 0.020, 0.030, 0.040])
    other = Scored(
        [Verdict(0.5, Reason.CORRECT), Verdict(0.3, Reason.FALL), Verdict(0.1, Reason.CORRECT), NONE],
        [0.001, 0.002, 0.003, 0.004])
    agreement = Agreement.of(one, other)
    assert agreement.figures() == {
        'windows': 4, 'pairs': 2, 'words_differing': 1, 'mean_difference': 0.05, 'largest_difference': 0.1,
        'malformed': (1, 1), 'median_ms': (25.0, 2.5)}
    assert agreement.table('int8').splitlines() == [
        'windows                     4',
        'another word                1 of 2',
        'mean difference of rewards  0.0500',
        'largest difference          0.1000',
        'malformed replies           full 1, int8 1',
        'median of a reply           full 25.0 ms, int8 2.5 ms']


def test_without_a_pair_of_verdicts_there_is_no_difference():
    """No number is made up."""
    agreement = Agreement.of(Scored([NONE], [0.1]), Scored([NONE], [0.1]))
    assert agreement.mean_difference is None
    assert 'mean difference of rewards  (no pair of verdicts)' in agreement.table('int4')


def test_without_a_window_there_is_nothing_to_compare():
    """A recording of two frames, for example."""
    with pytest.raises(ModelError, match='the recordings hold no window'):
        Agreement.of(Scored([], []), Scored([], []))
