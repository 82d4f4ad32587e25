"""Every encoding that an uncompressed image may have, one row each: its bytes become an RGB picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from densereward_ros.frames.bayer import demosaic
from densereward_ros.frames.yuv import to_rgb
from densereward_ros.types import ImageError

# A picture larger than this is a fault or an attack, not a camera: 50 megapixels are 150 MB as RGB.
MAX_PIXELS = 50_000_000


@dataclass(frozen=True)
class RawImage:
    """An uncompressed image as its message states it. step: bytes a row, padding included."""

    encoding: str
    height: int
    width: int
    step: int
    data: bytes
    big_endian: bool = False

    def plane(self, start: int, height: int, width: int, step: int, channels: int, item: int) -> np.ndarray:
        """A view of the data, uint8 of shape (height, width, channels): of each number its highest byte.

        start: bytes before the first row. item: bytes a number. The last row may come without its
        padding. Raises ImageError when the rows do not fit the step or the data.
        """
        row_bytes = width * channels * item
        if step < row_bytes:
            raise ImageError(
                f'step is {self.step} bytes a row, {self.width} pixels of {self.encoding} need {row_bytes}')
        flat = np.frombuffer(self.data, np.uint8)
        needed = start + step * (height - 1) + row_bytes
        if flat.size < needed:
            raise ImageError(
                f'the data are {flat.size} bytes, {self.width}x{self.height} pixels of {self.encoding} '
                f'need {needed}')
        highest = 0 if self.big_endian else item - 1
        return np.lib.stride_tricks.as_strided(
            flat[start + highest:], (height, width, channels), (step, channels * item, item),
            writeable=False)


class Encoding(Protocol):
    """A row of the table."""

    def decode(self, image: RawImage) -> np.ndarray:
        """RGB picture, uint8 of shape (height, width, 3). Raises ImageError."""


@dataclass(frozen=True)
class Colours:
    """Numbers side by side: how many a pixel, which of them are R, G and B, and the bytes of each."""

    channels: int
    rgb: tuple[int, int, int]
    item: int = 1

    def decode(self, image: RawImage) -> np.ndarray:
        """See Encoding.decode."""
        plane = image.plane(0, image.height, image.width, image.step, self.channels, self.item)
        picture = np.empty((image.height, image.width, 3), np.uint8)
        if self == Colours(3, (0, 1, 2)):
            picture[:] = plane
        else:
            for channel, of in enumerate(self.rgb):
                picture[..., channel] = plane[..., of]
        return picture


@dataclass(frozen=True)
class Bayer:
    """One number a pixel, of the colour that the pattern names: first row, then second row."""

    pattern: str
    item: int = 1

    def decode(self, image: RawImage) -> np.ndarray:
        """See Encoding.decode."""
        if image.height < 2 or image.width < 2:
            raise ImageError(
                f'the image is {image.width}x{image.height} pixels of {image.encoding}, '
                'allowed: at least 2x2')
        plane = image.plane(0, image.height, image.width, image.step, 1, self.item)
        return demosaic(plane[..., 0], self.pattern)


@dataclass(frozen=True)
class PackedYuv:
    """Two pixels share four bytes: where in these the first luma, U and V are. The second luma is 2 later."""

    luma: int
    u: int
    v: int

    def decode(self, image: RawImage) -> np.ndarray:
        """See Encoding.decode."""
        _check_even(image, width=True)
        plane = image.plane(0, image.height, image.width, image.step, 2, 1)
        return to_rgb(plane[..., self.luma], plane[:, self.u // 2::2, self.u % 2],
                      plane[:, self.v // 2::2, self.v % 2])


@dataclass(frozen=True)
class PlanarYuv:
    """A plane of luma, and below it one of U and V in turns, over blocks of `block` x `block` pixels."""

    block: int
    u: int
    v: int

    def decode(self, image: RawImage) -> np.ndarray:
        """See Encoding.decode."""
        if self.block > 1:
            _check_even(image, width=True, height=True)
        luma = image.plane(0, image.height, image.width, image.step, 1, 1)[..., 0]
        chroma = image.plane(
            image.step * image.height, image.height // self.block, image.width // self.block,
            image.step * 2 // self.block, 2, 1)
        return to_rgb(luma, chroma[..., self.u], chroma[..., self.v])


@dataclass(frozen=True)
class Refused:
    """Numbers that are no colours; a picture made of them would still be given a reward."""

    why: str

    def decode(self, image: RawImage) -> np.ndarray:
        """Raises ImageError."""
        raise ImageError(f'the encoding is {image.encoding}: {self.why}; allowed: colour and grey images')


def _check_even(image: RawImage, width: bool = False, height: bool = False) -> None:
    if (width and image.width % 2) or (height and image.height % 2):
        raise ImageError(
            f'the image is {image.width}x{image.height} pixels of {image.encoding}, whose pixels share '
            f'colours: allowed are even sizes')


_DEPTH = Refused('depth or other measurements')
_SIGNED = Refused('signed numbers, as of depth, labels or flow')
_FLOATS = Refused('numbers without a known range, as of depth')
_PAIRS = Refused('two numbers a pixel')

# The names are those of sensor_msgs/image_encodings.hpp, from Humble to Rolling. The generic ones come from
# OpenCV, whose colours are BGR. Alpha is left out. Of sixteen bits the upper eight are the picture.
ENCODINGS: dict[str, Encoding] = {
    'rgb8': Colours(3, (0, 1, 2)),
    'rgba8': Colours(4, (0, 1, 2)),
    'rgb16': Colours(3, (0, 1, 2), 2),
    'rgba16': Colours(4, (0, 1, 2), 2),
    'bgr8': Colours(3, (2, 1, 0)),
    'bgra8': Colours(4, (2, 1, 0)),
    'bgr16': Colours(3, (2, 1, 0), 2),
    'bgra16': Colours(4, (2, 1, 0), 2),
    'mono8': Colours(1, (0, 0, 0)),
    'mono16': Colours(1, (0, 0, 0), 2),
    '8UC1': Colours(1, (0, 0, 0)),
    '8UC2': _PAIRS,
    '8UC3': Colours(3, (2, 1, 0)),
    '8UC4': Colours(4, (2, 1, 0)),
    '8SC1': _SIGNED,
    '8SC2': _SIGNED,
    '8SC3': _SIGNED,
    '8SC4': _SIGNED,
    '16UC1': _DEPTH,
    '16UC2': _PAIRS,
    '16UC3': Colours(3, (2, 1, 0), 2),
    '16UC4': Colours(4, (2, 1, 0), 2),
    '16SC1': _SIGNED,
    '16SC2': _SIGNED,
    '16SC3': _SIGNED,
    '16SC4': _SIGNED,
    '32SC1': _SIGNED,
    '32SC2': _SIGNED,
    '32SC3': _SIGNED,
    '32SC4': _SIGNED,
    '32FC1': _FLOATS,
    '32FC2': _FLOATS,
    '32FC3': _FLOATS,
    '32FC4': _FLOATS,
    '64FC1': _FLOATS,
    '64FC2': _FLOATS,
    '64FC3': _FLOATS,
    '64FC4': _FLOATS,
    'bayer_rggb8': Bayer('rggb'),
    'bayer_bggr8': Bayer('bggr'),
    'bayer_gbrg8': Bayer('gbrg'),
    'bayer_grbg8': Bayer('grbg'),
    'bayer_rggb16': Bayer('rggb', 2),
    'bayer_bggr16': Bayer('bggr', 2),
    'bayer_gbrg16': Bayer('gbrg', 2),
    'bayer_grbg16': Bayer('grbg', 2),
    'uyvy': PackedYuv(luma=1, u=0, v=2),
    'yuv422': PackedYuv(luma=1, u=0, v=2),
    'yuyv': PackedYuv(luma=0, u=1, v=3),
    'yuv422_yuy2': PackedYuv(luma=0, u=1, v=3),
    'nv12': PlanarYuv(2, u=0, v=1),
    'nv21': PlanarYuv(2, u=1, v=0),
    'nv24': PlanarYuv(1, u=0, v=1),
}


def check_size(height: int, width: int) -> None:
    """Raises ImageError for an empty or absurdly large picture, before anything is allocated."""
    if height < 1 or width < 1:
        raise ImageError(f'the image is {width}x{height} pixels, allowed: at least 1x1')
    if height * width > MAX_PIXELS:
        raise ImageError(
            f'the image is {width}x{height} pixels, allowed: at most {MAX_PIXELS // 1_000_000} megapixels')


def decode_raw(image: RawImage) -> np.ndarray:
    """RGB picture, uint8 of shape (height, width, 3).

    Raises ImageError for an encoding that ENCODINGS lacks or refuses, and for sizes that do not fit the data.
    """
    encoding = ENCODINGS.get(image.encoding)
    if encoding is None:
        raise ImageError(
            f'the encoding is {image.encoding[:40]!r}, '
            'allowed: the colour and grey ones of image_encodings.hpp')
    check_size(image.height, image.width)
    return encoding.decode(image)
