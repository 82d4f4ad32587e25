"""Camera messages as frames that are decoded when a window needs them."""

from __future__ import annotations

import functools

import numpy as np
from sensor_msgs.msg import CompressedImage, Image

from densereward_ros.frames.encodings import RAW_ENCODINGS, check_size, decode_compressed, decode_raw
from densereward_ros.ros.messages import stamp_ns
from densereward_ros.types import Frame, ImageError


def message_type(topic: str) -> type[Image] | type[CompressedImage]:
    """The type that a camera topic has by the naming convention of image_transport."""
    return CompressedImage if topic.endswith('/compressed') else Image


def frame_of(message: Image | CompressedImage, received_ns: int, stamp_if_none_ns: int) -> Frame:
    """The frame of a message; nothing is decoded or copied yet.

    received_ns: arrival on the steady clock. stamp_if_none_ns: stands in for a stamp of zero,
    which says nothing about the order of frames.
    """
    decode = _decode_compressed if isinstance(message, CompressedImage) else _decode_raw
    return Frame(
        stamp_ns=stamp_ns(message.header.stamp) or stamp_if_none_ns,
        received_ns=received_ns,
        decode=functools.partial(decode, message),
        frame_id=message.header.frame_id,
    )


def _decode_raw(message: Image) -> np.ndarray:
    if message.encoding in RAW_ENCODINGS:
        return decode_raw(message.encoding, message.height, message.width, message.step, message.data)
    bridge = _cv_bridge()
    if bridge is None:
        raise ImageError(
            f'the encoding is {message.encoding[:40]!r}, allowed without cv_bridge: '
            f'{", ".join(RAW_ENCODINGS)}')
    check_size(message.height, message.width)
    try:
        return bridge.imgmsg_to_cv2(message, 'rgb8')
    except Exception as error:  # CvBridgeError, cv2.error, and ValueError from reshaping truncated data
        why = ' '.join(str(error).split())
        raise ImageError(f'cv_bridge cannot convert {message.encoding[:40]!r} to rgb8: {why}') from None


def _decode_compressed(message: CompressedImage) -> np.ndarray:
    if 'compressedDepth' in message.format:
        raise ImageError(f'the format is {message.format[:40]!r}, allowed: JPEG and PNG colour images')
    return decode_compressed(message.data)


@functools.cache
def _cv_bridge():
    """The bridge, or None: it comes with ROS 2 from apt, and fails under a numpy newer than its own."""
    try:
        from cv_bridge import CvBridge
    except Exception:  # ImportError, and AttributeError when the numpy does not fit
        return None
    return CvBridge()
