"""The picture of a run: which frames it shows, what is drawn, and that hard cases still give a picture."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from densereward_ros.report.timeline import (
    DPI,
    WIDTH_IN,
    Moment,
    Reward,
    Span,
    Timeline,
    choose_frames,
    draw_timeline,
    place_labels,
)
from densereward_ros.types import Reason


def frames(duration: float, colour=(90, 90, 90), size=(96, 128)) -> list:
    """Ten frames a second in one colour."""
    image = np.full((*size, 3), colour, np.uint8)
    return [(index / 10, image) for index in range(round(duration * 10))]


def run_of(duration: float = 30.0) -> Timeline:
    """A run with two tasks, a failure, a recovery and a success."""
    times = np.arange(0, duration, 0.2)
    return Timeline(
        'A run', duration, 'two tasks', frames(duration),
        [Reward(t, min(1.0, t / 20), Reason.MISS if 4 < t < 5 else Reason.CORRECT, 'a') for t in times],
        [(t, t / duration) for t in times],
        [Span(0, 15, 'put the red block on the blue plate'), Span(15, duration, 'put the green block away')],
        [Moment(5.0, 'miss')], [Span(5.1, 7.0, 'retry 1 of 3')], [Moment(14.0, 'done')])


def drawn(timeline: Timeline) -> np.ndarray:
    """The picture's pixels."""
    file = io.BytesIO()
    draw_timeline(timeline, file)
    with Image.open(file) as picture:
        assert picture.format == 'PNG'
        return np.array(picture.convert('RGB')).astype(int)


def share_of(picture: np.ndarray, colour: str) -> float:
    """The share of pixels close to a colour."""
    rgb = [int(colour[i:i + 2], 16) for i in (1, 3, 5)]
    return float((np.abs(picture - rgb).max(axis=2) < 12).mean())


def test_key_frames_come_first():
    """Failures and successes are shown; the rest of the places spread over what lies between."""
    timeline = run_of()
    chosen = [timeline.frames[index][0] for index in choose_frames(timeline)]
    assert 5.0 in chosen and 14.0 in chosen
    assert len(chosen) == 7 and chosen == sorted(set(chosen))
    assert max(np.diff([0.0, *chosen, 30.0])) < 8


@pytest.mark.parametrize('count, expected', [(0, 0), (1, 1), (3, 3), (400, 7)])
def test_few_frames(count, expected):
    """Never more places than frames, and none of a run without any."""
    timeline = Timeline('', max(1.0, count / 10), frames=frames(count / 10))
    assert len(choose_frames(timeline)) == expected


def test_everything_is_drawn(tmp_path):
    """Width, frames, curve, failures, recoveries and successes are there, each in its colour."""
    path = tmp_path / 'run.png'
    draw_timeline(run_of(), path)
    picture = np.array(Image.open(path).convert('RGB')).astype(int)
    assert picture.shape[1] == round(WIDTH_IN * DPI)
    assert share_of(picture, '#5a5a5a') > 0.08  # the camera frames
    for colour in ('#1d4ed8', '#c81e1e', '#b45309', '#15803d'):
        assert share_of(picture, colour) > 0.0001, colour  # some hundred pixels
    quiet = run_of()
    quiet.failures, quiet.recoveries, quiet.successes = [], [], []
    quiet.rewards = [Reward(r.seconds, r.value, Reason.CORRECT, r.task) for r in quiet.rewards]
    without = drawn(quiet)
    assert without.shape[0] < picture.shape[0]
    assert share_of(without, '#c81e1e') == share_of(without, '#15803d') == 0.0


def test_labels_do_not_overlap():
    """A label stands after its entry, before it at the edge, and is left out where it would hit another."""
    entries = [Span(0, 2, ''), Span(20, 20, ''), Span(22, 22, ''), Span(50, 50, ''), Span(95, 95, '')]
    starts = place_labels(entries, [10.0] * 5, 100.0)
    assert starts[1] is None  # the next entry stands where its label would go
    placed = [start for start in starts if start is not None]
    assert placed == pytest.approx([3.1, 23.1, 51.1, 83.9])
    before = place_labels([Span(30, 30, ''), Span(32, 32, '')], [10.0] * 2, 100.0)
    assert before == pytest.approx([18.9, 33.1])
    crowded = place_labels([Span(i, i, '') for i in range(60)], [5.0] * 60, 60.0)
    assert crowded == [None] * 60


@pytest.mark.parametrize('timeline', [
    Timeline('nothing at all', 1.0),
    Timeline('one reward', 1.0, rewards=[Reward(0.5, 0.3, Reason.CORRECT)]),
    Timeline('scores', 9.0, rewards=[Reward(i, 40.0 * i - 100, Reason.NONE) for i in range(9)]),
    Timeline('many tasks', 9.0, tasks=[Span(i / 4, (i + 1) / 4, 'put the red block') for i in range(36)]),
    Timeline('odd sizes', 9.0, frames=frames(4.0, size=(400, 100)) + frames(0.1, size=(10, 900))),
    Timeline('$\\nope$ 杯子', 5.0, '$', tasks=[Span(0, 5, '$\\nope$')], failures=[Moment(4.99, 'fall')]),
], ids=lambda timeline: timeline.title.split()[0])
def test_hard_cases(timeline):
    """Empty, unbounded, crowded and odd runs give a picture as well."""
    assert drawn(timeline).shape[1] == round(WIDTH_IN * DPI)


def test_unwritable(tmp_path):
    """A place that cannot be written is an OSError, as the docstring says."""
    with pytest.raises(OSError):
        draw_timeline(run_of(), tmp_path / 'none' / 'run.png')
