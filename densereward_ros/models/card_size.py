"""The size that the model card's procedure gives a picture, without qwen_vl_utils, which imports torch."""

from __future__ import annotations

import math

from densereward_ros.types import ImageError

# The card calls process_vision_info without image_patch_size, so 14 holds: multiples of 28.
FACTOR = 28
MIN_PIXELS, MAX_PIXELS = 4 * FACTOR**2, 16384 * FACTOR**2


def card_size(height: int, width: int, max_pixels: int | None = None) -> tuple[int, int]:
    """Height and width, in pixels, of a picture after qwen_vl_utils' processing of patches of 14.

    max_pixels: a budget of 3136 or more; None leaves the procedure its own of 12.8 million. Raises
    ImageError where a budget leaves nothing of a very long picture.
    """
    most = max_pixels or MAX_PIXELS
    rows, columns = (max(FACTOR, round(side / FACTOR) * FACTOR) for side in (height, width))
    if rows * columns > most:
        shrink = math.sqrt(height * width / most)
        rows, columns = (math.floor(side / shrink / FACTOR) * FACTOR for side in (height, width))
    elif rows * columns < MIN_PIXELS:
        grow = math.sqrt(MIN_PIXELS / (height * width))
        rows, columns = (math.ceil(side * grow / FACTOR) * FACTOR for side in (height, width))
    if not rows or not columns:
        raise ImageError(f'image is {width}x{height} pixels (too long for a budget of {most} pixels)')
    return rows, columns
