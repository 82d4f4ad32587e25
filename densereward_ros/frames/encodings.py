"""Image bytes as cameras send them -> RGB pictures."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from densereward_ros.types import ImageError

# A picture larger than this is a fault or an attack, not a camera: 50 megapixels are 150 MB as RGB.
MAX_PIXELS = 50_000_000


@dataclass(frozen=True)
class RawEncoding:
    """An uncompressed encoding of 8 bits a channel: channels a pixel, and which of them are R, G and B."""

    channels: int
    rgb: tuple[int, int, int]


# Names from sensor_msgs/image_encodings.hpp. The generic 8UC3 and 8UC4 come from OpenCV, whose order is BGR.
RAW_ENCODINGS = {
    'rgb8': RawEncoding(3, (0, 1, 2)),
    'bgr8': RawEncoding(3, (2, 1, 0)),
    'rgba8': RawEncoding(4, (0, 1, 2)),
    'bgra8': RawEncoding(4, (2, 1, 0)),
    'mono8': RawEncoding(1, (0, 0, 0)),
    '8UC1': RawEncoding(1, (0, 0, 0)),
    '8UC3': RawEncoding(3, (2, 1, 0)),
    '8UC4': RawEncoding(4, (2, 1, 0)),
}


def check_size(height: int, width: int) -> None:
    """Raises ImageError for an empty or absurdly large picture, before anything is allocated."""
    if height < 1 or width < 1:
        raise ImageError(f'the image is {width}x{height} pixels, allowed: at least 1x1')
    if height * width > MAX_PIXELS:
        raise ImageError(
            f'the image is {width}x{height} pixels, allowed: at most {MAX_PIXELS // 1_000_000} megapixels')


def decode_raw(encoding: str, height: int, width: int, step: int, data: bytes) -> np.ndarray:
    """RGB picture, uint8 of shape (height, width, 3), of an uncompressed image.

    step: bytes a row, padding included. The last row may come without its padding.
    Raises ImageError for an encoding outside RAW_ENCODINGS and for sizes that do not fit the data.
    """
    layout = RAW_ENCODINGS.get(encoding)
    if layout is None:
        raise ImageError(f'the encoding is {encoding[:40]!r}, allowed: {", ".join(RAW_ENCODINGS)}')
    check_size(height, width)
    row_bytes = width * layout.channels
    if step < row_bytes:
        raise ImageError(f'step is {step} bytes a row, {width} pixels of {encoding} need {row_bytes}')
    flat = np.frombuffer(data, np.uint8)
    needed = step * (height - 1) + row_bytes
    if flat.size < needed:
        raise ImageError(
            f'the data are {flat.size} bytes, {width}x{height} pixels of {encoding} need {needed}')
    rows = np.lib.stride_tricks.as_strided(
        flat, (height, width, layout.channels), (step, layout.channels, 1), writeable=False)
    return np.ascontiguousarray(rows[..., layout.rgb])


def decode_compressed(data: bytes) -> np.ndarray:
    """RGB picture, uint8 of shape (height, width, 3), of a JPEG or PNG file in memory. Raises ImageError."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=('JPEG', 'PNG')) as picture:
            check_size(picture.height, picture.width)
            if picture.mode[0] in 'IF':
                # Depth, which turned into colours would saturate and still be given a reward.
                raise ImageError(f'the pixels are of mode {picture.mode}, allowed: 8 bits a channel')
            return np.array(picture.convert('RGB'))
    except ImageError:
        raise
    except Exception as error:  # Pillow raises many kinds for broken files, SyntaxError among them
        raise ImageError(f'{len(data)} bytes are not a readable JPEG or PNG image: {error}') from None
