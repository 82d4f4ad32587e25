"""Numbers on a page: texts and the marks of an axis."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.report.numbers import duration_text, marks, reward_text, share_text


@pytest.mark.parametrize(('value', 'text'), [
    (None, '–'), (0.0, '0.000'), (0.98765, '0.988'), (-7.5, '−7.500'), (1234.56, '1234.6'),
    (-123456.0, '−1.23e+05'), (1e300, '1.00e+300')])
def test_rewards(value, text):
    """With a real minus sign, and never long."""
    assert reward_text(value) == text


def test_shares_and_durations():
    """A share of nothing is not 0."""
    assert (share_text(1, 3), share_text(0, 5), share_text(0, 0)) == ('33.3 %', '0.0 %', '–')
    assert (duration_text(0.4), duration_text(119.94), duration_text(120), duration_text(3725)) == (
        '0.4 s', '119.9 s', '2:00 min', '62:05 min')


@pytest.mark.parametrize(('low', 'high', 'most', 'texts'), [
    (0, 1, 6, ['0.0', '0.2', '0.4', '0.6', '0.8', '1.0']),
    (0, 15.4, 9, ['0', '2', '4', '6', '8', '10', '12', '14']),
    (-9.9, -4.1, 6, ['−9', '−8', '−7', '−6', '−5']),
    (0, 0.4, 5, ['0.0', '0.1', '0.2', '0.3', '0.4']),
])
def test_marks_are_round(low, high, most, texts):
    """Steps of 1, 2 or 5 and no digit too many."""
    found = marks(low, high, most)
    assert [text for _, text in found] == texts
    assert len(found) <= most


@given(st.floats(-1e300, 1e300), st.floats(1e-9, 1e6), st.integers(2, 12))
def test_marks_lie_within(low, share, most):
    """At most so many, ascending, and between the ends, whatever these are."""
    high = low + share * max(1.0, abs(low))
    found = [value for value, _ in marks(low, high, most)]
    assert len(found) <= most and found == sorted(found)
    room = 1e-6 * (high - low)
    assert all(low - room <= value <= high + room for value in found)
