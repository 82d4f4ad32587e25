"""Outside text in one line of a log."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies

from densereward_ros.text import one_line


@pytest.mark.parametrize(('text', 'line'), [
    ('put the cup down', 'put the cup down'),
    ('Tasse auf den Tisch, 杯子', 'Tasse auf den Tisch, 杯子'),
    ('a\nb\r\tc', r'a\nb\r\tc'),
    ('\x1b[31mred', r'\x1b[31mred'),
    ('right to left \u202e', r'right to left \u202e'),
    ('line\u2028separator', r'line\u2028separator'),
    ('\ud800', r'\ud800'),
    ('x' * 1001, 'x' * 997 + '...'),
])
def test_a_text_becomes_one_line(text, line):
    """What is readable stays; what could end the line, move the cursor or hide something is spelled out."""
    assert one_line(text) == line


@given(strategies.text(), strategies.integers(4, 80))
def test_any_text_is_one_printable_line(text, limit):
    """Whatever comes from outside."""
    line = one_line(text, limit)
    assert line.isprintable()
    assert len(line) <= limit
