"""Image bytes -> RGB: known colours, padding, and everything that can be wrong with an image."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from densereward_ros.frames.encodings import RAW_ENCODINGS, decode_compressed, decode_raw
from densereward_ros.types import ImageError

RED, GREEN, BLUE, GREY = (255, 0, 0), (0, 255, 0), (0, 0, 255), (90, 90, 90)

# Two pixels, written out by hand for each encoding.
KNOWN = {
    'rgb8': (bytes([255, 0, 0, 0, 0, 255]), [RED, BLUE]),
    'bgr8': (bytes([0, 0, 255, 255, 0, 0]), [RED, BLUE]),
    'rgba8': (bytes([255, 0, 0, 7, 0, 255, 0, 7]), [RED, GREEN]),
    'bgra8': (bytes([0, 0, 255, 7, 0, 255, 0, 7]), [RED, GREEN]),
    'mono8': (bytes([90, 90]), [GREY, GREY]),
    '8UC1': (bytes([90, 90]), [GREY, GREY]),
    '8UC3': (bytes([0, 0, 255, 255, 0, 0]), [RED, BLUE]),
    '8UC4': (bytes([0, 0, 255, 7, 0, 255, 0, 7]), [RED, GREEN]),
}


def test_every_row_of_the_table_has_a_known_answer():
    """A new encoding needs a colour that was written down by hand."""
    assert set(KNOWN) == set(RAW_ENCODINGS)


@pytest.mark.parametrize('encoding', KNOWN)
@pytest.mark.parametrize('padding', [0, 5])
def test_colours_are_right_with_and_without_row_padding(encoding, padding):
    """Red stays red, and bytes beyond the width of a row are not pixels."""
    row, pixels = KNOWN[encoding]
    image = decode_raw(encoding, 2, 2, len(row) + padding, (row + b'\x55' * padding) * 2)
    assert image.dtype == np.uint8
    assert image.tolist() == [[list(p) for p in pixels]] * 2


def test_the_last_row_may_lack_its_padding():
    """Some drivers cut the message after the last pixel."""
    row, pixels = KNOWN['rgb8']
    image = decode_raw('rgb8', 2, 2, len(row) + 2, row + b'\x55\x55' + row)
    assert image.tolist() == [[list(p) for p in pixels]] * 2


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        (('16UC1', 2, 2, 4, bytes(8)), "encoding is '16UC1'"),
        (('rgb8', 2, 2, 6, bytes(11)), 'data are 11 bytes, 2x2 pixels of rgb8 need 12'),
        (('rgb8', 2, 2, 5, bytes(12)), 'step is 5 bytes a row, 2 pixels of rgb8 need 6'),
        (('rgb8', 0, 2, 6, b''), '2x0 pixels'),
        (('mono8', 4_000_000_000, 4_000_000_000, 4_000_000_000, b''), 'at most 50 megapixels'),
    ],
)
def test_what_does_not_fit_is_refused_with_the_value_seen(arguments, said):
    """One line that names the thing, the value and what is allowed; nothing huge is allocated."""
    with pytest.raises(ImageError, match=said) as caught:
        decode_raw(*arguments)
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize(('file_format', 'tolerance'), [('PNG', 0), ('JPEG', 6)])
@pytest.mark.parametrize('mode', ['RGB', 'L'])
def test_compressed_images_decode_to_their_colours(file_format, tolerance, mode):
    """JPEG within its loss, PNG exactly; grey images become RGB."""
    picture = Image.new('RGB', (32, 16), (200, 40, 90)).convert(mode)
    stream = io.BytesIO()
    picture.save(stream, file_format, quality=95)
    image = decode_compressed(stream.getvalue())
    assert image.shape == (16, 32, 3)
    expected = np.array(picture.convert('RGB')).astype(int)
    assert np.abs(image.astype(int) - expected).max() <= tolerance


def test_a_depth_image_in_a_png_is_refused():
    """Sixteen bits cut to eight are white all over, and a reward on that would be made up."""
    stream = io.BytesIO()
    Image.fromarray(np.full((8, 8), 2999, np.uint16)).save(stream, 'PNG')
    with pytest.raises(ImageError, match='mode I;16, allowed: 8 bits a channel'):
        decode_compressed(stream.getvalue())


def test_a_decompression_bomb_is_refused_before_it_is_decoded():
    """A PNG of some kilobytes that would unpack to 64 megapixels."""
    stream = io.BytesIO()
    Image.new('1', (8000, 8000)).save(stream, 'PNG')
    assert len(stream.getvalue()) < 50_000
    with pytest.raises(ImageError, match='8000x8000 pixels, allowed: at most 50 megapixels'):
        decode_compressed(stream.getvalue())


def test_a_truncated_jpeg_is_refused():
    """Half a file is an error, not half a picture."""
    stream = io.BytesIO()
    Image.effect_noise((64, 64), 80).convert('RGB').save(stream, 'JPEG')
    with pytest.raises(ImageError, match='not a readable JPEG or PNG'):
        decode_compressed(stream.getvalue()[: len(stream.getvalue()) // 2])


@given(data=st.binary(max_size=200), encoding=st.sampled_from([*RAW_ENCODINGS, 'nonsense', '']),
       height=st.integers(0, 2**32 - 1), width=st.integers(0, 2**32 - 1), step=st.integers(0, 2**32 - 1))
def test_random_images_decode_or_raise_image_error(data, encoding, height, width, step):
    """No message from outside raises anything else, reads past its data or allocates its claim."""
    for size in ((height, width), (height % 8, width % 8)):
        try:
            image = decode_raw(encoding, *size, step % 64, data)
        except ImageError:
            continue
        assert image.shape == (*size, 3)


@given(data=st.binary(max_size=300), head=st.sampled_from([b'', b'\xff\xd8\xff', b'\x89PNG\r\n\x1a\n']))
def test_random_files_raise_image_error(data, head):
    """Garbage with or without a file signature is refused, whatever Pillow raises inside."""
    with pytest.raises(ImageError):
        decode_compressed(head + data)
