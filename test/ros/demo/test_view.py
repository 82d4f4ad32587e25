"""The demo's terminal view: plain lines where nobody watches, a block that fits where somebody does."""

from __future__ import annotations

import io
import re

import pytest

from densereward_ros.ros.demo.record import DemoRecord
from densereward_ros.ros.demo.view import LineView, ScreenView, bar, make_view
from densereward_ros.types import Reason


class Screen(io.StringIO):
    """A terminal."""

    encoding = 'utf-8'

    def isatty(self) -> bool:
        """Always."""
        return True


def filled() -> DemoRecord:
    """A record with news and rewards."""
    record = DemoRecord(begun=0.0)
    record.add_reward(0.25, Reason.MISS, 'put the red block on the blue plate ' * 5, 0.12, 0.2)
    for _ in range(20):
        record.add_failure(Reason.MISS, 0.25)
    return record


@pytest.mark.parametrize('value, expected', [(-1, 0), (0, 0), (0.5, 10), (1, 20), (7, 20)])
def test_bar(value, expected):
    """As wide as asked for, whatever the value."""
    text = bar(value, 20, unicode=True)
    assert len(text) == 20 and text.count('█') == expected
    assert bar(value, 20, unicode=False).count('#') == expected


def test_lines():
    """News and one line a second; no escape codes, and nothing said twice."""
    out = io.StringIO()
    record = DemoRecord(begun=0.0)
    view = make_view(record, 'title', 45.0, out)
    assert isinstance(view, LineView)
    for _ in range(3):
        view.update('loading the model')
    record.add_reward(0.25, Reason.MISS, 'stack', 0.12, 0.2)
    record.add_failure(Reason.MISS, 0.25)
    for _ in range(3):
        view.update('')
    view.close()
    text = out.getvalue()
    assert '\x1b' not in text
    lines = text.splitlines()
    assert lines[0] == 'title' and lines[1].split() == ['start', 'loading', 'the', 'model']
    assert '* /failure_event   miss, reward 0.250' in lines[2]
    assert re.search(r's  0\.250 #{5}\.{15} miss {6,}120 ms  stack$', lines[3])
    assert len(lines) == 4


@pytest.mark.parametrize('columns, rows', [(100, 30), (40, 12), (20, 5)])
def test_block_fits(monkeypatch, columns, rows):
    """No line is wider, and the block no higher, than the terminal; it is redrawn over itself."""
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setenv('COLUMNS', str(columns))
    monkeypatch.setenv('LINES', str(rows))
    out = Screen()
    view = make_view(filled(), 'densereward: a simulated robot', 45.0, out)
    assert isinstance(view, ScreenView)
    view.update('')
    first = out.getvalue()
    out.truncate(0)
    out.seek(0)
    view.close()
    plain = [re.sub(r'\x1b\[[0-9;?]*[A-Za-z]', '', line) for line in first.replace('\r', '').split('\n')]
    assert max(map(len, plain)) < columns
    height = first.count('\n')
    assert height < rows
    assert out.getvalue().startswith(f'\x1b[{height}A\r\x1b[2K')
    assert out.getvalue().endswith('\x1b[?25h')


def test_no_color(monkeypatch):
    """NO_COLOR is honoured."""
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setenv('NO_COLOR', '1')
    out = Screen()
    make_view(filled(), 'title', 0.0, out).update('')
    assert not re.search(r'\x1b\[\d+m', out.getvalue())
