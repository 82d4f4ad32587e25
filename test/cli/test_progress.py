"""How far a run has come: a bar with the remaining time in a terminal, a line for each episode anywhere."""

from __future__ import annotations

import io
import sys

from densereward_ros.cli.progress import Progress
from densereward_ros.results.rows import ScoredFrame
from densereward_ros.scoring.journal import Recorded
from scored import episode


class Terminal(io.StringIO):
    """What tqdm takes for one."""

    def isatty(self) -> bool:
        """It is."""
        return True


def recorded(frames: int, malformed: int = 0, **values) -> Recorded:
    """A journal of so many frames, the first ones malformed."""
    return Recorded(frames=[
        ScoredFrame(number, number, number, 0, None if number < malformed else 0.5)
        for number in range(frames)], **values)


def test_lines_tell_what_became_of_each_episode(capsys):
    """Those that an earlier run scored count, without a line."""
    ones = [episode(name, 10) for name in 'abcd']
    with Progress(ones, ones[1:]) as progress:
        progress.ended(ones[1], recorded(8))
        progress.ended(ones[2], Recorded(failed='c.mp4: damaged\nbadly'))
        progress.ended(ones[3], recorded(8, malformed=2, undecodable=1))
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        '2 of 4: b: 8 verdicts', '3 of 4: c: skipped: c.mp4: damaged\\nbadly',
        '4 of 4: d: 6 verdicts, 2 malformed replies, 1 images that cannot be decoded']
    assert said.err == ''  # no bar where there is no terminal


def test_the_bar_counts_frames_and_knows_the_remaining_time(monkeypatch):
    """An episode that does not say how long it is counts as the others' average, until it has ended."""
    monkeypatch.setattr(sys, 'stderr', Terminal())
    ones = [episode('a', 100), episode('b', 60), episode('c', 0)]
    ones[2] = ones[2].__class__(**{**ones[2].__dict__, 'count': None})
    with Progress(ones, ones) as progress:
        bar = progress._bar
        assert (bar.total, bar.n) == (240, 0)
        progress.at(49)
        assert bar.n == 50
        progress.ended(ones[0], recorded(90))
        assert bar.n == 100
        progress.at(29)
        bar.refresh()
        assert '130/240' in sys.stderr.getvalue().rpartition('\r')[2]
        assert '<00:' in sys.stderr.getvalue().rpartition('\r')[2]
        progress.ended(ones[1], recorded(50))
        progress.ended(ones[2], recorded(31))
        assert (bar.total, bar.n) == (191, 191)
    with Progress([ones[2]], [ones[2]]) as progress:
        assert progress._bar.total is None
