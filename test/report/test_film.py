"""The film strip: which frames it shows, and how large its pictures are."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image, features

from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.report import film
from densereward_ros.report.film import choose, still
from densereward_ros.types import FAILURES, Reason
from made_scores import episode, rising


def noise(height: int, width: int) -> np.ndarray:
    """What compresses worst."""
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


def decoded(uri: str) -> Image.Image:
    """The picture in a data URI."""
    return Image.open(io.BytesIO(base64.b64decode(uri.split(',', 1)[1])))


def test_events_and_labelled_failures_are_shown():
    """And the rest spreads over the episode."""
    labels = Labels(False, (LabelledFailure(15.0, Reason.MISS),))
    scored = episode('x', rising(100), {20: Reason.FALL, 60: Reason.MISS}, labels=labels)
    times = [scored.frames[i].seconds for i in choose(scored)]
    assert len(times) == 8 and times == sorted(times)
    assert {scored.events[0].seconds, scored.events[1].seconds} <= set(times)
    assert min(abs(time - 15.0) for time in times) <= 0.1
    assert max(np.diff([0.4, *times, 20.2])) < 6


def test_of_many_events_some_from_everywhere_are_shown():
    """Not the first eight."""
    scored = episode('x', rising(500), {i: FAILURES[i % 5] for i in range(20, 490, 9)})
    times = [scored.frames[i].seconds for i in choose(scored)]
    assert len(times) == 8 and times[-1] > 80
    assert set(times) <= {event.seconds for event in scored.events}


@pytest.mark.parametrize(('count', 'shown'), [(0, 0), (1, 1), (3, 3), (7, 7), (400, 8)])
def test_short_episodes(count, shown):
    """Never more pictures than windows, and malformed replies have pictures too."""
    assert len(choose(episode('x', [None] * count))) == shown


@pytest.mark.parametrize('size', [(96, 128), (480, 640), (1080, 1920), (900, 20), (1, 1)])
@pytest.mark.parametrize('most', [40_000, 3_000, 1_600])
def test_pictures_keep_within_their_bytes(size, most):
    """Whatever they show; small ones are not enlarged, and none is bent."""
    made = still(1.5, noise(*size), most)
    picture = decoded(made.uri)
    assert len(made.uri) <= most
    assert (picture.width, picture.height) == (made.width, made.height)
    assert made.width <= min(256, size[1]) and made.height <= min(256, size[0])
    assert abs(made.width / made.height - size[1] / size[0]) < 0.05 * size[1] / size[0] + 1
    assert made.seconds == 1.5


def test_the_picture_is_that_of_the_frame():
    """Red left and blue right, in either format."""
    image = np.zeros((90, 120, 3), np.uint8)
    image[:, :60, 0], image[:, 60:, 2] = 220, 220
    for webp in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(features, 'check', lambda name, webp=webp: webp)
            picture = decoded(still(0.0, image, 16_000).uri)
        assert picture.format == ('WEBP' if webp else 'JPEG')
        pixels = np.asarray(picture.convert('RGB')).astype(int)
        assert np.abs(pixels[45, 20] - (220, 0, 0)).max() < 20
        assert np.abs(pixels[45, 100] - (0, 0, 220)).max() < 20


def test_eight_pictures_are_a_strip():
    """What the page has room for in one row, and twice four on a telephone."""
    assert film.PICTURES == 8
