"""The size of pictures equals that of qwen_vl_utils, which the engine for servers must not import."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.models.card_size import FACTOR, MAX_PIXELS, MIN_PIXELS, card_size
from densereward_ros.types import ImageError

SIDES = st.integers(1, 5000)


@given(height=SIDES, width=SIDES, max_pixels=st.one_of(st.none(), st.integers(4096, 20_000_000)))
def test_it_is_the_model_cards(height, width, max_pixels):
    """For every picture that the card's procedure takes, under every budget."""
    from qwen_vl_utils.vision_process import smart_resize

    if max(height, width) > 200 * min(height, width):
        return
    wanted = smart_resize(height, width, factor=28, max_pixels=max_pixels)
    if 0 in wanted:
        with pytest.raises(ImageError, match=f'{width}x{height} pixels'):
            card_size(height, width, max_pixels)
    else:
        assert card_size(height, width, max_pixels) == wanted


def test_its_constants_are_the_model_cards():
    """Were qwen_vl_utils to change them, the pictures would differ."""
    from qwen_vl_utils import vision_process

    assert FACTOR == 14 * vision_process.SPATIAL_MERGE_SIZE
    assert MIN_PIXELS == vision_process.IMAGE_MIN_TOKEN_NUM * FACTOR**2
    assert MAX_PIXELS == vision_process.IMAGE_MAX_TOKEN_NUM * FACTOR**2


@pytest.mark.parametrize(
    ('shape', 'max_pixels'), [((96, 128), None), ((480, 640), None), ((480, 640), 50_000)])
def test_the_pixels_are_the_model_cards(shape, max_pixels):
    """A picture resized to that size is, to the bit, what the local engines give to the processor."""
    from PIL import Image
    from qwen_vl_utils import process_vision_info

    from densereward_ros.models.prompt import picture

    noise = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    (wanted,), _ = process_vision_info(
        [{'role': 'user', 'content': [picture(Image.fromarray(noise), max_pixels)]}])
    rows, columns = card_size(*shape, max_pixels)
    assert np.array_equal(np.asarray(Image.fromarray(noise).resize((columns, rows))), np.asarray(wanted))
