"""The baselines: what they say of windows, opened as any other model is."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from densereward_ros.models.base import ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.types import Frame, MalformedReply, Reason, Verdict, Window


def window(*greys: int, first_s: int = 0, shape=(4, 6, 3)) -> Window:
    """One frame a second, each of one grey."""
    return Window('', 'stack', tuple(
        Frame((first_s + number) * 1_000_000_000, 0, lambda grey=grey: np.full(shape, grey, np.uint8))
        for number, grey in enumerate(greys)))


def test_value_order_is_the_time_of_the_newest_frame():
    """It grows with time and looks at nothing: the picture is never decoded."""
    model = open_model(ModelOptions(model='value-order'))
    assert (model.name, model.bounded, model.corrected) == ('value-order', False, 0)
    blind = Window('', 'stack', (Frame(1_500_000_000, 0, lambda: pytest.fail('looked')),))
    assert model.score([window(0, 0, 0), window(0, 0, 0, first_s=7), blind]) == [
        Verdict(2.0, Reason.NONE, bounded=False), Verdict(9.0, Reason.NONE, bounded=False),
        Verdict(1.5, Reason.NONE, bounded=False)]


def test_pixel_difference_is_how_much_moved():
    """Of the newest and the oldest picture; darker counts as brighter does; the one between does not."""
    model = open_model(ModelOptions(model='pixel-difference'))
    assert not model.bounded
    rewards = [verdict.reward for verdict in model.score(
        [window(10, 200, 10), window(0, 0, 255), window(255, 0, 204)])]
    assert rewards == pytest.approx([0.0, 1.0, 0.2])


def test_pictures_of_different_sizes_have_no_difference():
    """The camera was switched: no number is made up."""
    model = open_model(ModelOptions(model='pixel-difference'))
    large, small = window(1, 1, 1, shape=(8, 8, 3)), window(1, 1, 1)
    mixed = Window('', 'stack', (large.frames[0], *small.frames[1:]))
    reply, = model.score([mixed])
    assert isinstance(reply, MalformedReply) and '(8, 8, 3) and (4, 6, 3)' in reply.why


def test_they_need_no_model_packages():
    """Neither torch nor transformers is imported, or even looked for."""
    code = (
        'import sys; sys.modules.update(torch=None, transformers=None)\n'
        'from densereward_ros.models.base import ModelOptions\n'
        'from densereward_ros.models.opening import open_model\n'
        'for name in ("value-order", "pixel-difference"): open_model(ModelOptions(model=name))\n')
    subprocess.run([sys.executable, '-c', code], check=True)
