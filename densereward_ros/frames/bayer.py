"""Bayer mosaics -> RGB: of each pixel the sensor saw one colour, and its neighbours give the other two."""

from __future__ import annotations

import numpy as np


def demosaic(mosaic: np.ndarray, pattern: str) -> np.ndarray:
    """RGB picture, uint8 of shape (height, width, 3), by bilinear interpolation.

    mosaic: uint8 of shape (height, width), at least 2x2. pattern: the colours of its first two
    pixels and of the two below them, for example 'rggb'.
    """
    height, width = mosaic.shape
    # Mirrored at the outermost pixels, so that the pattern goes on beyond the edge.
    around = np.pad(mosaic, 1, 'reflect').astype(np.uint16)
    picture = np.empty((height, width, 3), np.uint8)
    for place, colour in enumerate(pattern):
        top, left = divmod(place, 2)

        def shifted(down: int, right: int, top: int = top, left: int = left) -> np.ndarray:
            return around[1 + top + down:1 + height + down:2, 1 + left + right:1 + width + right:2]

        beside = shifted(0, -1) + shifted(0, 1)
        above = shifted(-1, 0) + shifted(1, 0)
        here = picture[top::2, left::2]
        here[..., 'rgb'.index(colour)] = mosaic[top::2, left::2]
        if colour == 'g':
            here[..., 'rgb'.index(pattern[place ^ 1])] = (beside + 1) >> 1
            here[..., 'rgb'.index(pattern[place ^ 2])] = (above + 1) >> 1
        else:
            diagonal = shifted(-1, -1) + shifted(-1, 1) + shifted(1, -1) + shifted(1, 1)
            here[..., 1] = (beside + above + 2) >> 2
            here[..., 'rgb'.index(pattern[place ^ 3])] = (diagonal + 2) >> 2
    return picture
