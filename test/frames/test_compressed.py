"""JPEG and PNG files -> RGB, the channel order that the format field states, and files that are none."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from densereward_ros.frames.compressed import decode_compressed
from densereward_ros.types import ImageError

COLOUR = (200, 40, 90)
JPEG_SIGNATURE, PNG_SIGNATURE = b'\xff\xd8\xff', b'\x89PNG\r\n\x1a\n'


def file_of(picture: Image.Image | np.ndarray, file_format: str = 'PNG') -> bytes:
    """The bytes of a picture as a file."""
    if isinstance(picture, np.ndarray):
        picture = Image.fromarray(picture)
    stream = io.BytesIO()
    picture.save(stream, file_format, quality=95)
    return stream.getvalue()


def png_of(height: int, width: int, data: bytes = b'') -> bytes:
    """An RGB PNG file that claims this size and holds these bytes of pixels."""
    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack('>I', len(content)) + body + struct.pack('>I', zlib.crc32(body))

    header = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(data)
    return PNG_SIGNATURE + chunk(b'IHDR', header) + chunk(b'IDAT', pixels) + chunk(b'IEND', b'')


@pytest.mark.parametrize(('file_format', 'tolerance'), [('PNG', 0), ('JPEG', 6)])
@pytest.mark.parametrize('mode', ['RGB', 'L'])
def test_compressed_images_decode_to_their_colours(file_format, tolerance, mode):
    """JPEG within its loss, PNG exactly; grey images become RGB."""
    picture = Image.new('RGB', (32, 16), COLOUR).convert(mode)
    image = decode_compressed(file_of(picture, file_format))
    assert image.shape == (16, 32, 3)
    expected = np.array(picture.convert('RGB')).astype(int)
    assert np.abs(image.astype(int) - expected).max() <= tolerance


@pytest.mark.parametrize(('message_format', 'exchanged'), [
    ('', False),
    ('jpeg', False),
    ('png', False),
    ('rgb8; jpeg compressed bgr8', False),
    ('bgr8; jpeg compressed bgr8', False),
    ('rgb8; png compressed bgr8', False),
    ('bgra8; jpeg compressed bgr8', False),
    ('rgb8; jpeg compressed ', False),
    ('rgb8; jpeg compressed rgb8', True),
    ('bgr8; jpeg compressed rgb8', True),
    ('rgb16;png compressed rgb16', True),
    ('nonsense \n', False),
])
@pytest.mark.parametrize('file_format', ['PNG', 'JPEG'])
def test_the_channel_order_is_the_one_that_the_format_states(message_format, exchanged, file_format):
    """OpenCV's encoder takes what it is given for BGR; given RGB, it writes red where blue belongs."""
    image = decode_compressed(file_of(Image.new('RGB', (16, 16), COLOUR), file_format), message_format)
    assert image.flags.c_contiguous
    expected = COLOUR[::-1] if exchanged else COLOUR
    assert np.abs(image.astype(int) - expected).max() <= 6


def test_a_depth_image_in_a_png_is_refused():
    """Sixteen bits cut to eight are white all over, and a reward on that would be made up."""
    depth = file_of(np.full((8, 8), 2999, np.uint16))
    for message_format in ('', 'png', '16UC1; png compressed '):
        with pytest.raises(ImageError, match='mode I;16, allowed: 8 bits a channel'):
            decode_compressed(depth, message_format)


@pytest.mark.parametrize('message_format', [
    '16UC1; compressedDepth png', '32FC1; compressedDepth rvl', 'compressedDepth',
    'x' * 50 + 'compressedDepth'])
def test_compressed_depth_is_refused_by_its_format(message_format):
    """Whatever the bytes are: some of them would even open as a PNG."""
    with pytest.raises(ImageError, match='^the format is .*, allowed: JPEG and PNG colour images$'):
        decode_compressed(file_of(Image.new('RGB', (8, 8))), message_format)


def test_sixteen_bits_of_grey_are_a_picture_where_the_format_says_so():
    """image_transport writes mono16 to PNG as it is."""
    image = decode_compressed(file_of(np.full((4, 6), 90 * 256 + 200, np.uint16)), 'mono16; png compressed ')
    assert (image == 90).all()
    assert image.shape == (4, 6, 3)


def test_a_mosaic_in_a_png_is_one():
    """image_transport writes Bayer images to PNG untouched, and to JPEG in grey, which the format tells."""
    mosaic = np.empty((4, 6), np.uint8)
    mosaic[0::2, 0::2], mosaic[1::2, 1::2] = COLOUR[0], COLOUR[2]
    mosaic[0::2, 1::2] = mosaic[1::2, 0::2] = COLOUR[1]
    assert (decode_compressed(file_of(mosaic), 'bayer_rggb8; png compressed ') == COLOUR).all()
    wide = mosaic.astype(np.uint16) * 256
    assert (decode_compressed(file_of(wide), 'bayer_rggb16; png compressed ') == COLOUR).all()
    grey = file_of(np.full((4, 6), 90, np.uint8), 'JPEG')
    grey = decode_compressed(grey, 'bayer_rggb8; jpeg compressed mono8')
    assert (grey == 90).all()


@pytest.mark.parametrize(('picture', 'message_format'), [
    (np.zeros((4, 6), np.uint16), 'bayer_rggb8; png compressed '),
    (np.zeros((4, 6), np.uint8), 'mono16; png compressed '),
    (np.zeros((4, 6, 3), np.uint8), 'mono16; png compressed '),
])
def test_a_png_that_is_not_what_its_format_states_is_refused(picture, message_format):
    """Half of a number is no colour."""
    with pytest.raises(ImageError, match='the pixels are of mode .*, the format states'):
        decode_compressed(file_of(picture), message_format)


def test_a_decompression_bomb_is_refused_before_it_is_decoded():
    """A PNG of some kilobytes that would unpack to 64 megapixels."""
    bomb = file_of(Image.new('1', (8000, 8000)))
    assert len(bomb) < 50_000
    with pytest.raises(ImageError, match='8000x8000 pixels, allowed: at most 50 megapixels'):
        decode_compressed(bomb)


def test_a_truncated_jpeg_is_refused():
    """Half a file is an error, not half a picture."""
    jpeg = file_of(Image.effect_noise((64, 64), 80).convert('RGB'), 'JPEG')
    with pytest.raises(ImageError, match='not a readable JPEG or PNG'):
        decode_compressed(jpeg[: len(jpeg) // 2])


@pytest.mark.parametrize('file_format', ['TIFF', 'GIF', 'BMP', 'WEBP'])
def test_other_file_formats_are_refused(file_format):
    """Each decoder more is one more that strangers' bytes reach."""
    with pytest.raises(ImageError, match='bytes are not a readable JPEG or PNG image'):
        decode_compressed(file_of(Image.new('RGB', (8, 8)), file_format))


FORMATS = st.one_of(st.text(), st.sampled_from(['', 'rgb8; jpeg compressed rgb8', 'mono16; png']))


@given(data=st.binary(max_size=300), head=st.sampled_from([b'', JPEG_SIGNATURE, PNG_SIGNATURE]),
       message_format=FORMATS)
def test_random_files_raise_image_error(data, head, message_format):
    """Garbage with or without a file signature is refused, whatever Pillow raises inside."""
    with pytest.raises(ImageError):
        decode_compressed(head + data, message_format)


@given(height=st.integers(0, 2**31 - 1), width=st.integers(0, 2**31 - 1), data=st.binary(max_size=64))
def test_a_png_of_any_claimed_size_is_refused_or_has_that_size(height, width, data):
    """Neither the claim nor the missing pixels cost memory: above the limit nothing is decoded."""
    for size in ((height, width), (height % 5, width % 5)):
        try:
            image = decode_compressed(png_of(*size, data))
        except ImageError:
            continue
        assert image.shape == (*size, 3)


@given(where=st.integers(0, 10_000), value=st.integers(0, 255), cut=st.integers(0, 39), jpeg=st.booleans())
def test_a_damaged_file_decodes_or_raises_image_error(where, value, cut, jpeg):
    """One byte changed and the end cut off, as a bad link leaves them."""
    data = bytearray(DAMAGED[jpeg])
    data[where % len(data)] = value
    try:
        image = decode_compressed(bytes(data[: len(data) - cut]), 'rgb8; jpeg compressed bgr8')
    except ImageError:
        return
    assert image.ndim == 3


NOISE = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
DAMAGED = (file_of(NOISE), file_of(NOISE, 'JPEG'))
