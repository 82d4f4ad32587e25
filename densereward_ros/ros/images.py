"""Camera messages as frames that are decoded when a window needs them."""

from __future__ import annotations

import functools

import numpy as np
from sensor_msgs.msg import CompressedImage, Image

from densereward_ros.frames.compressed import decode_compressed
from densereward_ros.frames.encodings import ENCODINGS, RawImage, check_size, decode_raw
from densereward_ros.ros import bridge
from densereward_ros.types import Frame


def message_type(topic: str) -> type[Image] | type[CompressedImage]:
    """The type that a camera topic has by the naming convention of image_transport."""
    return CompressedImage if topic.endswith('/compressed') else Image


def frame_of(message: Image | CompressedImage, received_ns: int, stamp_ns: int) -> Frame:
    """The frame of a message; nothing is decoded or copied yet.

    received_ns: arrival on the steady clock. stamp_ns: the message's own, or what stands in for one of zero,
    which says nothing about the order of frames.
    """
    decode = _decode_compressed if isinstance(message, CompressedImage) else _decode_raw
    return Frame(
        stamp_ns=stamp_ns,
        received_ns=received_ns,
        decode=functools.partial(decode, message),
        frame_id=message.header.frame_id,
    )


def _decode_raw(message: Image) -> np.ndarray:
    if message.encoding in bridge.ENCODINGS or message.encoding not in ENCODINGS:
        check_size(message.height, message.width)
        picture = bridge.convert(message)
        if picture is not None:
            return picture
    return decode_raw(RawImage(
        message.encoding, message.height, message.width, message.step, message.data,
        bool(message.is_bigendian)))


def _decode_compressed(message: CompressedImage) -> np.ndarray:
    return decode_compressed(message.data, message.format)
