"""The debug image: what must be readable in it, at any camera size and with any text."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from PIL import Image, ImageFont

from densereward_ros.report import overlay
from densereward_ros.report.overlay import CELL, GAP, MARGIN, WIDTH, Panel, draw_overlay, jpeg
from densereward_ros.report.timeline import CURVE, FAILURE, SUCCESS, Moment, Reward
from densereward_ros.types import Reason

FINE = (Reward(10.0, 0.5, Reason.CORRECT),)
COLOURS = ((200, 40, 40), (40, 200, 40), (40, 40, 200))


def panel(size=(96, 128), rewards=FINE, events=(), camera='/camera') -> Panel:
    """A camera with three frames of one colour each."""
    frames = [np.full((*size, 3), colour, np.uint8) for colour in COLOURS]
    return Panel(camera, frames, (0.4, 0.2, 0.0), rewards, events)


def count(picture: Image.Image, colour: str) -> int:
    """Pixels of exactly this colour."""
    wanted = tuple(int(colour[i:i + 2], 16) for i in (1, 3, 5))
    return int((np.asarray(picture) == wanted).all(axis=2).sum())


@pytest.mark.parametrize('size', [(96, 128), (480, 640), (1080, 1920), (640, 480), (20, 3000), (1, 1)])
def test_the_three_frames_stand_side_by_side_whatever_their_size(size):
    """Oldest left, newest right, each whole and in its own third."""
    picture = draw_overlay('task', [panel(size)])
    pixels = np.asarray(picture)
    assert picture.width == WIDTH
    middle = 12 + 32 + 26 + CELL[1] // 2
    for slot, colour in enumerate(COLOURS):
        x = MARGIN + slot * (CELL[0] + GAP) + CELL[0] // 2
        assert np.abs(pixels[middle, x].astype(int) - colour).max() <= 2


def test_the_word_and_the_colour_tell_a_failure():
    """Green while all is well, red for each word that names a failure."""
    fine = draw_overlay('task', [panel()])
    assert count(fine, SUCCESS) > 1000 and count(fine, FAILURE) == 0
    wrong = draw_overlay('task', [panel(rewards=[Reward(10.0, 0.5, Reason.MISS)])])
    assert count(wrong, FAILURE) > 1000 and count(wrong, SUCCESS) == 0


def test_the_curve_follows_the_rewards_and_breaks_at_a_silence():
    """High rewards are drawn high; nothing is drawn across ten seconds without a verdict."""
    def curve(values, step_s=0.2) -> np.ndarray:
        rewards = [Reward(i * step_s, value, Reason.CORRECT) for i, value in enumerate(values)]
        pixels = np.asarray(draw_overlay('task', [panel(rewards=rewards)])).astype(int)
        pixels = pixels[12 + 32 + 26 + CELL[1]:]  # a frame is blue
        wanted = np.array([int(CURVE[i:i + 2], 16) for i in (1, 3, 5)])
        return np.argwhere(np.abs(pixels - wanted).max(axis=2) < 40)

    high, low = curve([0.9] * 50), curve([0.1] * 50)
    assert high[:, 0].mean() < low[:, 0].mean() - 80
    assert len(high) > 500
    assert len(curve([0.9, 0.9], step_s=10.0)) < 200


def test_the_curve_breaks_where_the_task_changes_and_at_the_gap_of_the_panel():
    """Two rewards ten seconds apart are joined where silences do not matter, unless the task is another."""
    def blue(tasks, gap) -> int:
        rewards = [Reward(10.0 * i, 0.5, Reason.CORRECT, task) for i, task in enumerate(tasks)]
        shown = replace(panel(rewards=rewards), gap=gap)
        return count(draw_overlay('task', [shown]), CURVE)

    joined, apart, changed = blue('aa', math.inf), blue('aa', 1.5), blue('ab', math.inf)
    assert joined > apart + 300 and apart == changed


def test_a_model_without_words_is_neither_praised_nor_blamed():
    """Its panel has the colour of the curve, and no word."""
    none = draw_overlay('task', [panel(rewards=[Reward(10.0, -3.0, Reason.NONE)])])
    assert count(none, SUCCESS) == count(none, FAILURE) == 0
    assert count(none, CURVE) > 1000


def test_an_event_is_a_line_in_the_curve_and_a_text_below_it_until_it_is_old():
    """Twenty seconds later it is gone."""
    rewards = [Reward(float(i), 0.5, Reason.CORRECT) for i in range(40)]
    seen, gone = (
        count(draw_overlay('task', [panel(rewards=rewards, events=[Moment(seconds, 'miss')])]), FAILURE)
        for seconds in (30.0, 10.0))
    assert seen > 200
    assert gone == 0


def test_cameras_stand_one_below_the_other():
    """Two panels are as high as two pictures without the task's line."""
    one, two = (draw_overlay('task', [panel()] * n).height for n in (1, 2))
    assert two - one == one - 44


@pytest.mark.parametrize('task', ['', 'x' * 500, 'put the cup down ' * 29, '把杯子放好'])
def test_a_task_takes_two_lines_at_most(task):
    """However long, with or without spaces; the picture does not grow further."""
    assert draw_overlay(task, [panel()]).height <= draw_overlay('task', [panel()]).height + 32


@settings(max_examples=15)
@given(task=strategies.text(max_size=500), camera=strategies.text(max_size=300),
       value=strategies.floats(-1e6, 1e6))
def test_any_text_and_any_reward_can_be_drawn(task, camera, value):
    """Nothing that a topic, a task or an unbounded model may say raises."""
    draw_overlay(task, [panel(rewards=[Reward(1.0, value, Reason.FALL)], camera=camera)])


def test_without_any_font_but_pillows_old_one(monkeypatch):
    """As on Ubuntu 22.04 without fonts: small, Latin-1 only, but drawn."""
    monkeypatch.setattr(overlay, 'FONTS', ('no such.ttf', 'no such.ttf'))
    monkeypatch.setattr(ImageFont, 'load_default', _old_font)
    overlay._font.cache_clear()
    try:
        draw_overlay('把杯子放好', [panel(camera='/камера')])
    finally:
        overlay._font.cache_clear()


def _old_font(*size):
    if size:
        raise TypeError('load_default() takes 0 positional arguments but 1 was given')
    return ImageFont.load_default_imagefont()


def test_the_jpeg_is_one():
    """What is published can be opened as what it says."""
    with Image.open(io.BytesIO(jpeg(draw_overlay('task', [panel()])))) as picture:
        assert (picture.format, picture.mode, picture.width) == ('JPEG', 'RGB', WIDTH)
