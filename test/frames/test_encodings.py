"""Image bytes -> RGB: every name of image_encodings.hpp, known colours, and everything that can be wrong."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.frames.encodings import ENCODINGS, MAX_PIXELS, Bayer, RawImage, Refused, decode_raw
from densereward_ros.types import ImageError

RED, GREEN, BLUE, GREY = (255, 0, 0), (0, 255, 0), (0, 0, 255), (90, 90, 90)

# Two pixels, written out by hand: the bytes, least significant first where a number has two, and the colours.
# Of two bytes the first is noise, which an eight-bit picture does not hold.
KNOWN = {
    'rgb8': (bytes([255, 0, 0, 0, 0, 255]), [RED, BLUE]),
    'bgr8': (bytes([0, 0, 255, 255, 0, 0]), [RED, BLUE]),
    'rgba8': (bytes([255, 0, 0, 7, 0, 255, 0, 7]), [RED, GREEN]),
    'bgra8': (bytes([0, 0, 255, 7, 0, 255, 0, 7]), [RED, GREEN]),
    'mono8': (bytes([90, 90]), [GREY, GREY]),
    '8UC1': (bytes([90, 90]), [GREY, GREY]),
    '8UC3': (bytes([0, 0, 255, 255, 0, 0]), [RED, BLUE]),
    '8UC4': (bytes([0, 0, 255, 7, 0, 255, 0, 7]), [RED, GREEN]),
    'rgb16': (bytes([9, 255, 8, 0, 7, 0, 6, 0, 5, 0, 4, 255]), [RED, BLUE]),
    'bgr16': (bytes([9, 0, 8, 0, 7, 255, 6, 255, 5, 0, 4, 0]), [RED, BLUE]),
    'rgba16': (bytes([9, 255, 8, 0, 7, 0, 3, 3, 6, 0, 5, 255, 4, 0, 3, 3]), [RED, GREEN]),
    'bgra16': (bytes([9, 0, 8, 0, 7, 255, 3, 3, 6, 0, 5, 255, 4, 0, 3, 3]), [RED, GREEN]),
    'mono16': (bytes([200, 90, 1, 90]), [GREY, GREY]),
    '16UC3': (bytes([9, 0, 8, 0, 7, 255, 6, 255, 5, 0, 4, 0]), [RED, BLUE]),
    '16UC4': (bytes([9, 0, 8, 0, 7, 255, 3, 3, 6, 0, 5, 255, 4, 0, 3, 3]), [RED, GREEN]),
}
SIXTEEN = [name for name in KNOWN if '16' in name]
REFUSED = {
    'two numbers a pixel': ['8UC2', '16UC2'],
    'depth or other measurements': ['16UC1'],
    'signed numbers': [f'{bits}SC{channels}' for bits in (8, 16, 32) for channels in (1, 2, 3, 4)],
    'without a known range': [f'{bits}FC{channels}' for bits in (32, 64) for channels in (1, 2, 3, 4)],
}
# One 2x2 tile of each pattern, in the order of the name.
PATTERNS = ('rggb', 'bggr', 'gbrg', 'grbg')
BAYER = [f'bayer_{pattern}{bits}' for pattern in PATTERNS for bits in (8, 16)]
# Studio-range BT.601: black, white and the full primaries as (luma, U, V), from the standard's equations.
YUV_COLOURS = [
    ((16, 128, 128), (0, 0, 0)), ((235, 128, 128), (255, 255, 255)), ((126, 128, 128), (128, 128, 128)),
    ((82, 90, 240), RED), ((145, 54, 34), GREEN), ((41, 240, 110), BLUE)]
YUV = ['uyvy', 'yuv422', 'yuyv', 'yuv422_yuy2', 'nv12', 'nv21', 'nv24']


def yuv_bytes(encoding: str, luma: np.ndarray, u: int, v: int, padding: int = 0) -> tuple[int, bytes]:
    """Step and bytes of an image of one chroma, rows padded with noise."""
    height, width = luma.shape
    if encoding in ('uyvy', 'yuv422', 'yuyv', 'yuv422_yuy2'):
        rows = np.empty((height, width, 2), np.uint8)
        at = 1 if encoding in ('uyvy', 'yuv422') else 0
        rows[..., at] = luma
        rows[:, 0::2, 1 - at], rows[:, 1::2, 1 - at] = u, v
        rows = rows.reshape(height, 2 * width)
        return 2 * width + padding, np.pad(rows, ((0, 0), (0, padding)), constant_values=77).tobytes()
    pair = (v, u) if encoding == 'nv21' else (u, v)
    block = 1 if encoding == 'nv24' else 2
    chroma = np.tile(np.array(pair, np.uint8), (height // block, width // block))
    planes = [
        np.pad(luma, ((0, 0), (0, padding)), constant_values=77),
        np.pad(chroma, ((0, 0), (0, padding * 2 // block)), constant_values=77)]
    return width + padding, b''.join(plane.tobytes() for plane in planes)


def test_every_name_of_image_encodings_has_a_row_with_the_stated_outcome():
    """The names of Humble to Rolling: decoded to a colour written down here, or refused in these words."""
    refused = {name: why for why, names in REFUSED.items() for name in names}
    assert set(ENCODINGS) == {*KNOWN, *BAYER, *YUV, *refused}
    assert len(ENCODINGS) == 53
    for name, row in ENCODINGS.items():
        assert isinstance(row, Refused) is (name in refused)
    for name, why in refused.items():
        with pytest.raises(ImageError, match=f'^the encoding is {name}: .*{why}.*; allowed: colour and grey'):
            decode_raw(RawImage(name, 2, 2, 64, bytes(200)))


def test_no_name_of_the_installed_header_is_missing():
    """A release of ROS 2 that adds an encoding fails here until the table has a row for it."""
    from ament_index_python.packages import get_package_share_path

    header = get_package_share_path('sensor_msgs').parents[1] / 'include/sensor_msgs/sensor_msgs'
    header /= 'image_encodings.hpp'
    if not header.exists():
        pytest.skip('sensor_msgs is installed without its headers')
    names = re.findall(r'^const char [A-Z0-9_]+\[\] = "(\w+)";', header.read_text(), re.MULTILINE)
    assert len(names) > 40
    assert set(names) <= set(ENCODINGS)


@pytest.mark.parametrize('encoding', KNOWN)
@pytest.mark.parametrize('padding', [0, 5])
@pytest.mark.parametrize('big_endian', [False, True])
def test_colours_are_right_with_row_padding_and_in_both_byte_orders(encoding, padding, big_endian):
    """Red stays red, bytes beyond the width of a row are no pixels, byte order is that of the message."""
    row, pixels = KNOWN[encoding]
    if big_endian and encoding in SIXTEEN:
        row = np.frombuffer(row, '<u2').astype('>u2').tobytes()
    data = (row + b'\x55' * padding) * 2
    image = decode_raw(RawImage(encoding, 2, 2, len(row) + padding, data, big_endian))
    assert image.dtype == np.uint8
    assert image.tolist() == [[list(p) for p in pixels]] * 2


@pytest.mark.parametrize('encoding', BAYER)
@pytest.mark.parametrize('big_endian', [False, True])
@pytest.mark.parametrize('size', [(6, 8), (5, 7), (2, 2)])
def test_a_mosaic_of_one_colour_is_that_colour(encoding, big_endian, size):
    """Each filter saw its own share of it: the pattern is not shifted, nor red taken for blue."""
    shares = dict(zip('rgb', (200, 120, 40)))
    pattern = encoding[6:10]
    mosaic = np.empty(size, np.uint8)
    for place, letter in enumerate(pattern):
        mosaic[place // 2::2, place % 2::2] = shares[letter]
    padded = np.pad(mosaic, ((0, 0), (0, 3)), constant_values=77)
    item = ENCODINGS[encoding].item
    if item == 2:
        padded = (padded.astype(np.uint16) * 256 + 33).astype('>u2' if big_endian else '<u2')
    image = decode_raw(RawImage(encoding, *size, padded.strides[0], padded.tobytes(), big_endian))
    assert (image == (200, 120, 40)).all()


@pytest.mark.parametrize('pattern', PATTERNS)
def test_a_mosaic_keeps_what_was_seen_and_interpolates_a_ramp_exactly(pattern):
    """On a brightness that grows evenly the mean of the neighbours is the truth, away from the edges."""
    ramp = (np.arange(8)[:, None] * 10 + np.arange(10) * 4).astype(np.uint8)
    image = decode_raw(RawImage(f'bayer_{pattern}8', 8, 10, 10, ramp.tobytes()))
    assert (image[1:-1, 1:-1] == ramp[1:-1, 1:-1, None]).all()
    seen = np.take_along_axis(
        image, np.tile(['rgb'.index(c) for c in pattern], 20).reshape(-1, 2, 2)[
            np.zeros((8, 10), int), np.arange(8)[:, None] % 2, np.arange(10) % 2][..., None], axis=2)
    assert (seen[..., 0] == ramp).all()


@pytest.mark.parametrize('encoding', YUV)
@pytest.mark.parametrize('padding', [0, 6])
@pytest.mark.parametrize(('colour', 'rgb'), YUV_COLOURS)
def test_luma_and_chroma_become_the_colour_that_they_stand_for(encoding, padding, colour, rgb):
    """Within two levels, which is what eight bits of luma and chroma can tell."""
    step, data = yuv_bytes(encoding, np.full((4, 6), colour[0], np.uint8), *colour[1:], padding)
    image = decode_raw(RawImage(encoding, 4, 6, step, data))
    assert image.shape == (4, 6, 3)
    assert np.abs(image.astype(int) - rgb).max() <= 2


@pytest.mark.parametrize('encoding', YUV)
def test_every_pixel_has_its_own_luma(encoding):
    """No two pixels of a row are exchanged or averaged, whatever they share of their colour."""
    luma = np.linspace(16, 235, 24).astype(np.uint8).reshape(4, 6)
    step, data = yuv_bytes(encoding, luma, 128, 128)
    image = decode_raw(RawImage(encoding, 4, 6, step, data))
    assert np.abs(image - np.rint((luma[..., None] - 16.0) * 255 / 219)).max() <= 1


@pytest.mark.parametrize(('encoding', 'data'), [
    ('uyvy', bytes([90, 82, 240, 82, 240, 41, 110, 41])),
    ('yuyv', bytes([82, 90, 82, 240, 41, 240, 41, 110])),
    ('nv12', bytes([82, 82, 41, 41, 82, 82, 41, 41, 90, 240, 240, 110])),
    ('nv21', bytes([82, 82, 41, 41, 82, 82, 41, 41, 240, 90, 110, 240])),
    ('nv24', bytes([82, 82, 41, 41, 90, 240, 90, 240, 240, 110, 240, 110])),
])
def test_chroma_belongs_to_the_pixels_it_lies_with(encoding, data):
    """A red pair and a blue pair beside it, written out by hand."""
    height = 2 if encoding in ('nv12', 'nv21') else 1
    image = decode_raw(RawImage(encoding, height, 4, 8 if 'y' in encoding else 4, data))
    assert np.abs(image.astype(int) - [[RED, RED, BLUE, BLUE]] * height).max() <= 2


def test_the_last_row_may_lack_its_padding():
    """Some drivers cut the message after the last pixel."""
    row, pixels = KNOWN['rgb8']
    image = decode_raw(RawImage('rgb8', 2, 2, len(row) + 2, row + b'\x55\x55' + row))
    assert image.tolist() == [[list(p) for p in pixels]] * 2


@pytest.mark.parametrize(
    ('image', 'said'),
    [
        (RawImage('rgb8', 2, 2, 6, bytes(11)), 'data are 11 bytes, 2x2 pixels of rgb8 need 12'),
        (RawImage('rgb16', 2, 2, 12, bytes(23)), 'data are 23 bytes, 2x2 pixels of rgb16 need 24'),
        (RawImage('rgb8', 2, 2, 5, bytes(12)), 'step is 5 bytes a row, 2 pixels of rgb8 need 6'),
        (RawImage('mono16', 2, 2, 3, bytes(12)), 'step is 3 bytes a row, 2 pixels of mono16 need 4'),
        (RawImage('nv12', 2, 2, 2, bytes(5)), 'data are 5 bytes, 2x2 pixels of nv12 need 6'),
        (RawImage('nv24', 2, 2, 2, bytes(11)), 'data are 11 bytes, 2x2 pixels of nv24 need 12'),
        (RawImage('uyvy', 2, 2, 4, bytes(7)), 'need 8'),
        (RawImage('uyvy', 2, 3, 6, bytes(12)), '3x2 pixels of uyvy, .* even sizes'),
        (RawImage('nv21', 3, 2, 2, bytes(12)), '2x3 pixels of nv21, .* even sizes'),
        (RawImage('bayer_rggb8', 1, 2, 2, bytes(12)), '2x1 pixels of bayer_rggb8, allowed: at least 2x2'),
        (RawImage('bayer_rggb16', 2, 2, 4, bytes(7)), 'need 8'),
        (RawImage('rgb8', 0, 2, 6, b''), '2x0 pixels'),
        (RawImage('mono8', 4_000_000_000, 4_000_000_000, 4_000_000_000, b''), 'at most 50 megapixels'),
        (RawImage('rgb8 ', 2, 2, 6, bytes(12)), "encoding is 'rgb8 ', allowed: the colour and grey ones"),
        (RawImage('a\nb' + 'x' * 99, 2, 2, 6, bytes(12)), r"encoding is 'a\\nbx{37}'"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_value_seen(image, said):
    """One line that names the thing, the value and what is allowed; nothing huge is allocated."""
    with pytest.raises(ImageError, match=said) as caught:
        decode_raw(image)
    assert '\n' not in str(caught.value)


@given(data=st.binary(max_size=200), encoding=st.sampled_from([*ENCODINGS, 'nonsense', '']),
       height=st.integers(0, 2**32 - 1), width=st.integers(0, 2**32 - 1), step=st.integers(0, 2**32 - 1),
       big_endian=st.booleans())
def test_random_images_decode_or_raise_image_error(data, encoding, height, width, step, big_endian):
    """No message from outside raises anything else, reads past its data or allocates its claim."""
    tracemalloc.start()
    try:
        for size in ((height, width), (height % 8, width % 8)):
            try:
                image = decode_raw(RawImage(encoding, *size, step % 64, data, big_endian))
            except ImageError:
                continue
            assert image.shape == (*size, 3)
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize('encoding', ['rgb8', 'bgr16', 'bayer_grbg8', 'yuyv', 'nv12', 'nv24'])
def test_decoding_needs_a_few_times_the_memory_of_the_picture(encoding):
    """So that the limit in megapixels is one on memory: at most six times 150 MB, in a good message."""
    height, width = 240, 320
    data = bytes(height * width * 6)
    row = ENCODINGS[encoding]
    step = width * (2 if 'yuyv' in encoding else getattr(row, 'channels', 1) * getattr(row, 'item', 1))
    tracemalloc.start()
    try:
        decode_raw(RawImage(encoding, height, width, step, data))
        assert tracemalloc.get_traced_memory()[1] < 6 * height * width * 3
    finally:
        tracemalloc.stop()
    assert MAX_PIXELS * 3 == 150_000_000


def test_the_table_holds_every_bayer_row_with_its_own_pattern():
    """A row copied and not changed would exchange colours."""
    for name in BAYER:
        assert ENCODINGS[name] == Bayer(name[6:10], 2 if name.endswith('16') else 1)
