"""JPEG and PNG files in memory -> RGB, with what the format field of their message says about them."""

from __future__ import annotations

import io
import re

import numpy as np

from densereward_ros.frames.encodings import ENCODINGS, Bayer, RawImage, check_size, decode_raw
from densereward_ros.types import ImageError

# As image_transport words it: the raw image's encoding, the file format, and the encoding that was handed
# to OpenCV's encoder, if it was another. That takes whatever it gets for BGR, so of an image handed over as
# RGB the file has red and blue exchanged.
FORMAT = re.compile(r'\s*(?P<raw>\w+)\s*;.*?(?:compressed\s+(?P<handed>\w+)\s*)?$', re.DOTALL)
JPEG_SIGNATURE = b'\xff\xd8'
# What a PNG may hold as it was in the raw image, one number a pixel, and the bytes of each.
NUMBERS = {'mono16': 2} | {name: row.item for name, row in ENCODINGS.items() if isinstance(row, Bayer)}


def decode_compressed(data: bytes, message_format: str = '') -> np.ndarray:
    """RGB picture, uint8 of shape (height, width, 3). Raises ImageError.

    message_format: 'jpeg', 'png', '', or as image_transport writes it: 'rgb8; jpeg compressed bgr8'.
    """
    from PIL.JpegImagePlugin import JpegImageFile
    from PIL.PngImagePlugin import PngImageFile

    if 'compressedDepth' in message_format:
        raise ImageError(f'the format is {message_format[:40]!r}, allowed: JPEG and PNG colour images')
    stated = FORMAT.match(message_format)
    raw, handed = (stated['raw'], stated['handed'] or '') if stated else ('', '')
    try:
        # Not by Image.open, which writes a warning of its own about each size that it finds too large.
        kind = JpegImageFile if bytes(data[:2]) == JPEG_SIGNATURE else PngImageFile
        with kind(io.BytesIO(data)) as picture:
            check_size(picture.height, picture.width)
            if picture.format == 'PNG' and not handed and raw in NUMBERS:
                return _decode_numbers(picture, raw)
            if picture.mode[0] in 'IF':
                # Depth, which turned into colours would saturate and still be given a reward.
                raise ImageError(f'the pixels are of mode {picture.mode}, allowed: 8 bits a channel')
            image = np.array(picture.convert('RGB'))
    except ImageError:
        raise
    except Exception as error:  # Pillow raises many kinds for broken files, SyntaxError among them
        why = ' '.join(str(error).split())
        raise ImageError(f'{len(data)} bytes are not a readable JPEG or PNG image: {why}') from None
    return np.ascontiguousarray(image[..., ::-1]) if handed.startswith('rgb') else image


def _decode_numbers(picture, encoding: str) -> np.ndarray:
    item = NUMBERS[encoding]
    expected = 'I' if item == 2 else 'L'
    if picture.mode[0] != expected or picture.mode == 'LA':
        raise ImageError(f'the pixels are of mode {picture.mode}, the format states {encoding}')
    numbers = np.array(picture).astype(f'<u{item}')
    return decode_raw(RawImage(encoding, *numbers.shape, numbers.strides[0], numbers.tobytes()))
