"""Luma and chroma -> RGB, as video cameras mean them: ITU-R BT.601, luma 16 to 235, chroma 16 to 240."""

from __future__ import annotations

import numpy as np

# Sixteen bits hold the sums below with five of them after the point.
POINT = 5
_LUMA, _CHROMA = np.arange(256) - 16, np.arange(256) - 128


def _table(values: np.ndarray) -> np.ndarray:
    return np.rint(values * 2**POINT).astype(np.int16)


# The half makes the shift at the end round to the nearest.
FROM_LUMA = _table(255 / 219 * _LUMA) + 2**(POINT - 1)
RED_OF_V, GREEN_OF_V = _table(1.596 * _CHROMA), _table(-0.813 * _CHROMA)
GREEN_OF_U, BLUE_OF_U = _table(-0.391 * _CHROMA), _table(2.018 * _CHROMA)


def to_rgb(luma: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """RGB picture, uint8 of shape (height, width, 3).

    luma: uint8 of shape (height, width). u, v: uint8, each side as long or half as long.
    """
    height, width = luma.shape
    down, across = height // u.shape[0], width // u.shape[1]
    # Every chroma sample stands before the pixels that share it: (rows, down, columns, across).
    brightness = FROM_LUMA[luma].reshape(u.shape[0], down, u.shape[1], across)
    picture = np.empty((height, width, 3), np.uint8)
    blocks = picture.reshape(*brightness.shape, 3)
    for channel, colour in enumerate((RED_OF_V[v], GREEN_OF_U[u] + GREEN_OF_V[v], BLUE_OF_U[u])):
        mixed = brightness + colour[:, None, :, None]
        mixed >>= POINT
        blocks[..., channel] = mixed.clip(0, 255, out=mixed)
    return picture
