"""Camera messages become frames, and are decoded when a window needs them."""

from __future__ import annotations

import array
import io
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Picture
from sensor_msgs.msg import CompressedImage, Image

from densereward_ros.frames import messages
from densereward_ros.frames.encodings import ENCODINGS
from densereward_ros.ros import bridge as bridge_module
from densereward_ros.ros.images import frame_of, message_type
from densereward_ros.types import ImageError

RGB = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)


def raw(**fields) -> Image:
    """A good rgb8 message, with these fields."""
    message = Image(height=2, width=3, encoding='rgb8', step=9, data=array.array('B', RGB.tobytes()))
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def compressed(data: bytes, kind: str = 'jpeg') -> CompressedImage:
    """A compressed message."""
    return CompressedImage(format=kind, data=array.array('B', data))


def png(picture: np.ndarray) -> bytes:
    """A picture as the bytes of a PNG file."""
    file = io.BytesIO()
    Picture.fromarray(picture).save(file, 'PNG')
    return file.getvalue()


class StandIn:
    """Takes the place of cv_bridge, which comes with ROS 2 from apt; keeps what it was asked.

    answer: what a conversion returns, or raises; the first one is the node's own trial of a tiny image.
    """

    def __init__(self, answer: np.ndarray | Exception = RGB) -> None:
        self.asked: list[tuple[str, str]] = []
        self._answer = answer

    def CvBridge(self) -> StandIn:  # noqa: N802, D102
        return self

    def imgmsg_to_cv2(self, message: Image, encoding: str) -> np.ndarray:
        """See cv_bridge."""
        self.asked.append((message.encoding, encoding))
        if len(self.asked) > 1 and isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.fixture
def install(monkeypatch):
    """Puts a module, or None for none at all, in the place of cv_bridge."""
    def put(module):
        monkeypatch.setitem(sys.modules, 'cv_bridge', module)
        bridge_module._find.cache_clear()
        return module

    yield put
    bridge_module._find.cache_clear()


@pytest.mark.parametrize(('topic', 'kind'), [
    ('/camera/image_raw', Image),
    ('/camera/image_raw/compressed', CompressedImage),
    ('/compressed/image', Image),
    ('/camera/compressed_but_raw', Image),
])
def test_the_topic_name_decides_the_type(topic, kind):
    """The convention of image_transport: the last part of the name, nothing else."""
    assert message_type(topic) is kind


def test_a_frame_keeps_stamp_arrival_and_frame_id():
    """To the nanosecond, and nothing of the message is looked at but its frame_id."""
    message = raw()
    message.header.frame_id = 'wrist_optical'
    frame = frame_of(message, received_ns=55, stamp_ns=1_796_079_648_891_938_258)
    assert (frame.stamp_ns, frame.received_ns) == (1_796_079_648_891_938_258, 55)
    assert frame.frame_id == 'wrist_optical'


def test_nothing_is_decoded_before_the_image_is_asked_for_and_then_once(monkeypatch):
    """At 30 Hz most frames are never scored; decoding them on the executor would starve it."""
    calls = []

    def decode(*arguments):
        calls.append(arguments)
        return RGB

    monkeypatch.setattr(messages, 'decode_raw', decode)
    monkeypatch.setattr(messages, 'decode_compressed', decode)
    frames = [frame_of(raw(), 1, 1), frame_of(compressed(b'x'), 1, 1)]
    assert calls == []
    for frame in frames:
        assert frame.image is frame.image
    assert len(calls) == 2


def test_a_raw_image_is_decoded_to_its_pixels():
    """rgb8 unchanged, bgr8 with red and blue the right way round, row padding cut off."""
    assert np.array_equal(frame_of(raw(), 1, 1).image, RGB)
    assert np.array_equal(frame_of(raw(encoding='bgr8'), 1, 1).image, RGB[..., ::-1])
    padded = np.full((2, 12), 255, np.uint8)
    padded[:, :9] = RGB.reshape(2, 9)
    message = raw(step=12, data=array.array('B', padded.tobytes()))
    assert np.array_equal(frame_of(message, 1, 1).image, RGB)


def test_a_compressed_image_is_decoded_to_its_pixels():
    """PNG keeps every pixel; the format text is free and not relied on."""
    for kind in ('png', 'rgb8; png compressed bgr8', ''):
        assert np.array_equal(frame_of(compressed(png(RGB), kind), 1, 1).image, RGB)


@pytest.mark.parametrize(('message', 'words'), [
    (raw(data=array.array('B', bytes(10))), ('10 bytes', '18')),
    (raw(data=array.array('B')), ('0 bytes', '18')),
    (raw(step=1), ('step is 1', '9')),
    (raw(height=0), ('3x0', 'at least 1x1')),
    (raw(height=2**32 - 1, width=2**32 - 1, step=2**32 - 1), ('4294967295x4294967295', '50 megapixels')),
    (compressed(b''), ('0 bytes', 'JPEG or PNG')),
    (compressed(b'\xff\xd8\xff garbage'), ('11 bytes', 'JPEG or PNG')),
    (compressed(png(RGB)[:40]), ('40 bytes', 'JPEG or PNG')),
    (compressed(png(RGB), '16UC1; compressedDepth png'), ('compressedDepth', 'colour')),
])
def test_an_unusable_image_is_an_image_error_that_says_why(message, words):
    """What drivers really send when they fail: never another exception, which would end the worker."""
    with pytest.raises(ImageError) as caught:
        frame_of(message, 1, 1).image  # noqa: B018
    assert all(word in str(caught.value) for word in words), caught.value
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize('there', [True, False])
def test_depth_images_are_refused_with_and_without_cv_bridge(install, there):
    """A depth topic chosen by mistake: cv_bridge would make a picture of it."""
    install(StandIn() if there else None)
    with pytest.raises(ImageError, match='encoding is 16UC1: depth .* allowed: colour and grey images'):
        frame_of(raw(encoding='16UC1'), 1, 1).image  # noqa: B018


@pytest.mark.parametrize('encoding', ['bayer_rggb8', 'bayer_gbrg16', 'yuv422', 'yuv422_yuy2', 'new_in_2031'])
def test_cv_bridge_converts_what_costs_arithmetic_and_what_the_table_lacks(install, encoding):
    """Where it works; what is only copying bytes never goes there."""
    stand_in = install(StandIn())
    assert np.array_equal(frame_of(raw(encoding=encoding), 1, 1).image, RGB)
    assert np.array_equal(frame_of(raw(), 1, 1).image, RGB)
    assert stand_in.asked == [('bayer_rggb8', 'rgb8'), (encoding, 'rgb8')]
    assert bridge_module.describe() == (
        'raw Bayer and YUV 4:2:2 images are decoded by cv_bridge, the others without it')


@pytest.mark.parametrize('answer', [
    RuntimeError('[yuv422] is not\n a color format'), np.zeros((1, 3, 3), np.uint8),
    np.zeros((2, 3, 3), '>u2')])
def test_what_cv_bridge_cannot_convert_the_table_decodes(install, answer):
    """Its errors are of many kinds, and padded rows make it return another size."""
    install(StandIn(answer))
    grey = raw(encoding='bayer_rggb8', step=3, data=array.array('B', [90] * 6))
    assert (frame_of(grey, 1, 1).image == 90).all()
    with pytest.raises(ImageError, match="^the encoding is 'broken', allowed: the colour and grey ones"):
        frame_of(raw(encoding='broken'), 1, 1).image  # noqa: B018
    with pytest.raises(ImageError, match='^the data are 5 bytes, 3x2 pixels of bayer_rggb8 need 6$'):
        frame_of(raw(encoding='bayer_rggb8', step=3, data=array.array('B', [90] * 5)), 1, 1).image  # noqa: B018


def test_an_absurd_size_never_reaches_cv_bridge(install):
    """It would multiply the sizes in 32 bits."""
    stand_in = install(StandIn())
    with pytest.raises(ImageError, match='50 megapixels'):
        frame_of(raw(encoding='bayer_rggb8', height=2**31, width=2**31), 1, 1).image  # noqa: B018
    assert stand_in.asked == []


class BrokenAtUse(StandIn):
    """As cv_bridge of Jazzy and later under numpy 2: its C++ is loaded at the first conversion."""

    def imgmsg_to_cv2(self, message, encoding):
        """See cv_bridge."""
        raise SystemError('initialization of cv_bridge_boost\nraised unreported exception')


@pytest.mark.parametrize(('module', 'why'), [
    (BrokenAtUse(), 'initialization of cv_bridge_boost raised unreported exception'),
    (None, 'import of cv_bridge halted; None in sys.modules'),
])
def test_a_cv_bridge_that_does_not_work_counts_as_none(install, module, why):
    """Our own table takes over, and the log says so, and why."""
    install(module)
    grey = raw(encoding='yuv422', width=2, step=4, data=array.array('B', [128, 126] * 4))
    assert np.abs(frame_of(grey, 1, 1).image.astype(int) - 128).max() <= 1
    assert bridge_module.describe() == f'raw images are decoded without cv_bridge ({why})'


def test_a_cv_bridge_that_fails_at_its_import_counts_as_none(install, monkeypatch, tmp_path):
    """As Humble's does under numpy 2."""
    (tmp_path / 'cv_bridge.py').write_text("raise AttributeError('_ARRAY_API not found')")
    monkeypatch.syspath_prepend(str(tmp_path))
    install(None)
    monkeypatch.delitem(sys.modules, 'cv_bridge')
    assert bridge_module.describe() == 'raw images are decoded without cv_bridge (_ARRAY_API not found)'


BYTES = st.binary(max_size=200).map(lambda data: array.array('B', data))
SIZES = st.one_of(st.integers(0, 8), st.integers(0, 2**32 - 1))


@given(st.builds(
    raw, height=SIZES, width=SIZES, step=SIZES, data=BYTES, is_bigendian=st.integers(0, 255),
    encoding=st.one_of(st.sampled_from(sorted(ENCODINGS)), st.text())))
def test_random_raw_messages_raise_nothing_but_image_errors_and_stay_small(message):
    """Whatever a publisher puts into the fields: what is allocated follows the data, not the claim."""
    check_random(message)


@given(st.builds(
    CompressedImage, data=st.one_of(BYTES, BYTES.map(lambda data: array.array('B', png(RGB)) + data)),
    format=st.one_of(st.sampled_from(['jpeg', 'rgb8; png compressed rgb8', 'bayer_rggb8; png']), st.text())))
def test_random_compressed_messages_raise_nothing_but_image_errors_and_stay_small(message):
    """The same for files, some of which are good ones."""
    check_random(message)


def check_random(message: Image | CompressedImage) -> None:
    """Decode a message of some bytes."""
    tracemalloc.start()
    try:
        image = frame_of(message, 1, 1).image
        assert (image.dtype, image.ndim, image.shape[2]) == (np.uint8, 3, 3)
    except ImageError as error:
        assert '\n' not in str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1_000_000
