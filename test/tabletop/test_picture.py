"""The pictures of the demo table."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest

from densereward_ros.tabletop.picture import (
    FLOOR,
    HELD_OUT_JITTER,
    HELD_OUT_SHADES,
    SHADE_JITTER,
    SHADES,
    Look,
    Painter,
)
from densereward_ros.tabletop.words import COLOURS
from densereward_ros.tabletop.world import HOME, OPEN, Snapshot, Thing

HUES = {'red': 0.0, 'yellow': 0.13, 'green': 0.37, 'blue': 0.61}


def _paint(seed: int = 0, held_out: bool = False, **changes) -> np.ndarray:
    view = dict(x=HOME[0], z=HOME[1], gap=OPEN, held=None, things=(Thing('block', 'red', 30.0),)) | changes
    rng = np.random.default_rng(seed)
    return Painter(Look.random(rng, held_out), rng).paint(Snapshot(**view))


def test_held_out_shades_never_occur_in_training():
    """Whatever the jitter, at least one channel differs."""
    for name in COLOURS:
        for unseen in HELD_OUT_SHADES[name]:
            for shade in SHADES[name]:
                apart = max(abs(a - b) for a, b in zip(unseen, shade))
                assert apart > SHADE_JITTER + HELD_OUT_JITTER, (name, unseen, shade)


@pytest.mark.parametrize('table', [SHADES, HELD_OUT_SHADES])
def test_every_shade_is_what_its_name_says(table):
    """Its hue is nearest to its own name's."""
    for name, shades in table.items():
        for shade in shades:
            hue = colorsys.rgb_to_hsv(*(c / 255 for c in shade))[0]
            nearest = min(HUES, key=lambda n: min(abs(hue - HUES[n]), 1 - abs(hue - HUES[n])))
            assert nearest == name, shade


@pytest.mark.parametrize('colour', COLOURS)
def test_a_block_has_its_colour_and_place(colour):
    """The pixels in the middle of a block have its hue; those beside it have not."""
    for seed in range(5):
        picture = _paint(seed, things=(Thing('block', colour, 30.0),))
        inside = picture[int(FLOOR) - 6 : int(FLOOR) - 3, 28:32].reshape(-1, 3).mean(0) / 255
        hue, saturation, _ = colorsys.rgb_to_hsv(*inside)
        assert saturation > 0.4
        assert min(HUES, key=lambda n: min(abs(hue - HUES[n]), 1 - abs(hue - HUES[n]))) == colour


def test_a_tick_of_motion_is_visible():
    """Four pixels of motion change the picture far more than the noise of the camera does."""
    rng = np.random.default_rng(0)
    painter = Painter(Look.random(rng), rng)
    here, there = (Snapshot(x, 20.0, OPEN, None, (Thing('block', 'red', 30.0),)) for x in (60.0, 64.0))
    first, again, moved = (painter.paint(view).astype(float) for view in (here, here, there))
    assert np.abs(first - moved).mean() > 3 * np.abs(first - again).mean()


def test_looks_vary():
    """Walls, tables, light and noise differ from seed to seed."""
    pictures = [_paint(seed).astype(float) for seed in range(6)]
    means = [picture.mean((0, 1)) for picture in pictures]
    assert min(np.abs(a - b).max() for i, a in enumerate(means) for b in means[:i]) > 1.0


def test_the_same_seed_paints_the_same_picture():
    """Noise included."""
    assert np.array_equal(_paint(7), _paint(7))


def test_edges_are_smooth():
    """Moving by a third of a pixel changes the picture: positions finer than a pixel can be seen."""
    look = Look.random(np.random.default_rng(1))
    views = [Snapshot(*HOME, OPEN, None, (Thing('block', 'red', x),)) for x in (30.0, 30.34)]
    one, two = (Painter(look, np.random.default_rng(0)).paint(view).astype(int) for view in views)
    assert 5 < np.abs(one - two).max() < 120
