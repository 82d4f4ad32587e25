"""Small recordings that the tests make themselves."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Sequence

import av
import numpy as np
from PIL import Image


def colour_of(index: int) -> tuple[int, int, int]:
    """The colour of a clip's i-th frame: neighbours differ in every channel."""
    return (40 + 50 * (index % 4), 200 - 50 * (index % 3), 60 + 90 * (index % 2))


def picture(index: int, width: int = 64, height: int = 48) -> np.ndarray:
    """One frame in one colour, uint8 RGB."""
    return np.full((height, width, 3), colour_of(index), np.uint8)


def write_clip(path: Path, count: int, rate: int, ticks: Sequence[int] | None = None) -> Path:
    """A video of `count` frames. ticks: their times in units of 1/rate s, evenly spaced where left out."""
    with av.open(str(path), 'w') as container:
        stream = container.add_stream('mpeg4', rate=rate)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 64, 48, 'yuv420p', 4_000_000
        stream.codec_context.time_base = Fraction(1, rate)
        for index in range(count):
            frame = av.VideoFrame.from_ndarray(picture(index), format='rgb24')
            frame.pts, frame.time_base = (ticks[index] if ticks else index), Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def write_images(folder: Path, count: int) -> Path:
    """A folder with frame1.png, frame2.png, ..."""
    folder.mkdir()
    for index in range(count):
        Image.fromarray(picture(index)).save(folder / f'frame{index + 1}.png')
    return folder
