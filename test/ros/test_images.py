"""Camera messages become frames, and are decoded when a window needs them."""

from __future__ import annotations

import array
import io
import sys
import types

import numpy as np
import pytest
from PIL import Image as Picture
from sensor_msgs.msg import CompressedImage, Image

from densereward_ros.ros import images
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


@pytest.fixture
def bridge(monkeypatch):
    """A stand-in of cv_bridge, as it comes with ROS 2 from apt; records what it was asked."""
    asked = []

    class CvBridge:
        def imgmsg_to_cv2(self, message, encoding):
            asked.append((message.encoding, encoding))
            if message.encoding == 'broken':
                raise RuntimeError('[broken] is not\n a color format\n')
            return RGB

    monkeypatch.setitem(sys.modules, 'cv_bridge', types.SimpleNamespace(CvBridge=CvBridge))
    images._cv_bridge.cache_clear()
    yield asked
    images._cv_bridge.cache_clear()


@pytest.fixture
def no_bridge(monkeypatch):
    """An interpreter without cv_bridge, as with the wheels."""
    monkeypatch.setitem(sys.modules, 'cv_bridge', None)
    images._cv_bridge.cache_clear()
    yield
    images._cv_bridge.cache_clear()


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
    """The stamp to the nanosecond as the camera set it, the arrival as it was measured."""
    message = raw()
    message.header.stamp.sec, message.header.stamp.nanosec = 1_796_079_648, 891_938_258
    message.header.frame_id = 'wrist_optical'
    frame = frame_of(message, received_ns=55, stamp_if_none_ns=99)
    assert frame.stamp_ns == 1_796_079_648_891_938_258
    assert frame.received_ns == 55
    assert frame.frame_id == 'wrist_optical'


def test_a_stamp_of_zero_is_replaced_by_the_arrival():
    """Many drivers leave the stamp empty, which would put every frame at the same time."""
    assert frame_of(raw(), received_ns=55, stamp_if_none_ns=99).stamp_ns == 99


def test_nothing_is_decoded_before_the_image_is_asked_for_and_then_once(monkeypatch):
    """At 30 Hz most frames are never scored; decoding them on the executor would starve it."""
    calls = []

    def decode(*arguments):
        calls.append(arguments)
        return RGB

    monkeypatch.setattr(images, 'decode_raw', decode)
    monkeypatch.setattr(images, 'decode_compressed', decode)
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


def test_depth_images_are_refused_without_cv_bridge(no_bridge):
    """A depth topic chosen by mistake: the error names its encoding and what is allowed."""
    with pytest.raises(ImageError, match="'16UC1'.*rgb8, bgr8"):
        frame_of(raw(encoding='16UC1'), 1, 1).image  # noqa: B018


def test_other_encodings_go_through_cv_bridge_where_there_is_one(bridge):
    """nv12, bayer and yuv422 are what USB and CSI cameras send; those we decode ourselves never ask it."""
    assert np.array_equal(frame_of(raw(encoding='nv12'), 1, 1).image, RGB)
    assert np.array_equal(frame_of(raw(), 1, 1).image, RGB)
    assert bridge == [('nv12', 'rgb8')]


def test_what_cv_bridge_refuses_is_an_image_error(bridge):
    """cv_bridge raises its own kinds of errors, some of several lines; this is one, with the encoding."""
    line = "^cv_bridge cannot convert 'broken' to rgb8: .* not a color format$"
    with pytest.raises(ImageError, match=line):
        frame_of(raw(encoding='broken'), 1, 1).image  # noqa: B018


def test_a_cv_bridge_built_for_another_numpy_counts_as_none(monkeypatch):
    """Under numpy 2 the apt cv_bridge fails at import with AttributeError: _ARRAY_API not found."""
    class Broken(types.ModuleType):
        def __getattr__(self, name):
            raise AttributeError('_ARRAY_API not found')

    monkeypatch.setitem(sys.modules, 'cv_bridge', Broken('cv_bridge'))
    images._cv_bridge.cache_clear()
    try:
        with pytest.raises(ImageError, match='without cv_bridge'):
            frame_of(raw(encoding='nv12'), 1, 1).image  # noqa: B018
    finally:
        images._cv_bridge.cache_clear()
