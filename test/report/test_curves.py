"""The reward curve: where it breaks, what survives thinning, and where words find room."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.report.curves import (
    MOST_POINTS,
    fit_flags,
    reward_chart,
    scale_of,
    sparkline,
    stretches,
    thin,
    told,
    value_range,
)
from densereward_ros.types import Reason, Rule
from made_scores import episode, frames, rising


def paths(markup: str, kind: str) -> str:
    """The path data of one kind in a drawing, '' without any."""
    return ''.join(re.findall(f'<path class="{kind}" d="([^"]*)"', markup.split('class="legend"')[0]))


def chart(scored, bounded=True) -> str:
    """The drawing of an episode."""
    return reward_chart(scored, scale_of(scored, bounded), bounded)


def test_a_stretch_ends_at_a_malformed_reply_and_at_a_new_segment():
    """Three stretches: before the gap, after it, and in the next segment."""
    scored = frames([0.1, 0.2, None, None, 0.3, 0.4, 0.5], segments=(6,))
    assert [[frame.reward for frame in run] for run in stretches(scored)] == [[0.1, 0.2], [0.3, 0.4], [0.5]]
    assert stretches(frames([None, None])) == stretches(()) == []


def test_the_curve_has_gaps_and_marks_for_what_is_missing():
    """Nothing is drawn across malformed replies; each has a mark of its own; a lone verdict is a dot."""
    drawn = chart(episode('x', [0.1, 0.2, None, None, 0.3, None, 0.4, 0.5], segments=(7,)))
    assert paths(drawn, 'curve').count('M') == 1
    assert paths(drawn, 'dot').count('M') == 3
    assert paths(drawn, 'malformed').count('M') == 3
    assert paths(drawn, 'seam').count('M') == 1


def test_everything_in_an_episode_is_marked_and_explained():
    """Events by word and by drop, labelled failures and progress, verdicts that name a failure."""
    labels = Labels(False, (LabelledFailure(2.0, Reason.MISS), LabelledFailure(20.0)), ((0, 0), (9, 0.5)))
    scored = episode('x', rising(40), {10: Reason.MISS, 30: Reason.FALL}, labels=labels)
    drawn = chart(scored)
    assert paths(drawn, 'event').count('M') == 2 and paths(drawn, 'event drop') == ''
    assert paths(drawn, 'wrong').count('M') == 4
    assert paths(drawn, 'truth') == 'M0.0 96.0L450.0 50.0'  # the axis ends at the last label, 20 s
    for words in ('<b>1</b><i>miss</i>', '<b>2</b><i>fall</i>', '<i>failure</i>', 'labelled progress',
                  '▲ labelled failure', 'failure event, by word', 'verdict names a failure'):
        assert words in drawn
    dropped = chart(episode('x', rising(40), {10: Reason.FAILURE}, Rule.REWARD_DROP))
    assert paths(dropped, 'event drop').count('M') == 1 and 'failure, drop' in dropped
    assert 'by reward drop' in dropped and 'labelled' not in dropped


def test_the_scale_has_room_for_everything():
    """0 to 1 for bounded rewards, else from the lowest to the highest; a constant lies in the middle."""
    assert (scale_of(episode('x', [0.4, 0.5]), True).low, scale_of(episode('x', [0.4]), True).high) == (0, 1)
    assert value_range([episode('x', [-3.0, 5.0, None]), episode('y', [7.0])], False) == (-3, 7)
    assert value_range([episode('x', [10.0, 10.0])], False) == (5, 15)
    assert value_range([episode('x', [None])], False) == value_range([], False) == (0, 1)
    short = scale_of(episode('x', [0.5]), True)
    assert (short.start, short.end, short.x(0.4)) == (0, 1, 400)


@given(st.lists(st.floats(-1.7e308, 1.7e308), min_size=1, max_size=4), st.booleans())
def test_any_rewards_can_be_drawn(rewards, words):
    """No finite number is too large, and no difference too small."""
    scored = episode('x', rewards, words=words)
    drawn = chart(scored, bounded=False) + str(sparkline(scored, *value_range([scored], False)))
    assert not re.search(r'\bnan\b|\binf\b', drawn)


@given(st.lists(st.floats(-100, 100), max_size=300), st.integers(4, 60))
def test_thinning_keeps_the_extremes(values, most):
    """A subset in order, of at most so many, with both ends, the highest and the lowest."""
    points = list(enumerate(values))
    kept = thin(points, most)
    assert len(kept) <= most and kept == sorted(kept) and set(kept) <= set(points)
    if points:
        assert kept[0] == points[0] and kept[-1] == points[-1]
        assert {min(values), max(values)} <= {value for _, value in kept}


def test_a_long_episode_is_as_large_as_a_short_one():
    """Its drawing holds a bounded number of points, however many verdicts and breaks there are."""
    long = [None if i % 40 == 7 else (i % 100) / 100 for i in range(20_000)]
    drawn = chart(episode('x', long, {i: Reason.MISS for i in range(100, 20_000, 500)}))
    assert len(drawn) < 40_000
    events = {i: Reason.MISS for i in range(1, 3_000, 3)}
    busy = episode('x', [0.5] * 3_000, events, segments=range(0, 3_000, 7))
    assert len(chart(busy)) < 40_000
    assert len(re.findall(r'[ML ]', paths(drawn, 'curve'))) < 8 * MOST_POINTS


@given(st.lists(st.floats(0, 1), max_size=30), st.sampled_from([300, 900]))
def test_words_never_overlap(places, width):
    """Whatever is shown of the marks and words of a row does not run into its neighbours."""
    places = sorted(places)
    texts = [(str(i + 1), 'collision, drop'[:3 + i % 12]) for i in range(len(places))]
    ends = -20.0
    for at, (mark, word), fit in zip(places, texts, fit_flags(places, texts, width)):
        if fit == 'no':
            continue
        short = 6.6 * len(mark) + 6
        long = short + (6.6 * len(word) + 8) * (fit != 'short')
        left = at * width - 4 - (long - short) * (fit == 'back')
        assert left >= ends - 1e-6
        ends = left + long
        assert ends <= width + 30


@pytest.mark.parametrize(('rewards', 'words'), [
    ([None, None], 'No reward in this episode.'),
    ([0.25, None, 1.0], 'Reward over 0.8 s: first 0.250, lowest 0.250, highest 1.000, last 1.000. '
                        'Failure events: none.')])
def test_the_curve_in_words(rewards, words):
    """For who cannot see it."""
    assert told(episode('x', rewards)) == words
