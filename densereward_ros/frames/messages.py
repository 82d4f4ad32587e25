"""Image messages, as rclpy and rosbags give them, as frames that are decoded when a window needs them."""

from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np

from densereward_ros.frames.compressed import decode_compressed
from densereward_ros.frames.encodings import ENCODINGS, RawImage, Refused, decode_raw
from densereward_ros.types import Frame

NS_PER_S = 1_000_000_000


def stamp_ns(time: Any) -> int:
    """Nanoseconds of a message's time; 0, as for a time that was left out, when it is none."""
    return time.sec * NS_PER_S + time.nanosec if time.nanosec < NS_PER_S else 0


def frame_of(
    message: Any, received_ns: int, stamp_ns: int, picture_of: Callable[[Any], np.ndarray]
) -> Frame:
    """The frame of a message; nothing is decoded or copied yet.

    received_ns: arrival on the steady clock. stamp_ns: the message's own, or what stands in for one of zero,
    which says nothing about the order of frames. picture_of: decodes the message.
    """
    return Frame(
        stamp_ns=stamp_ns,
        received_ns=received_ns,
        decode=functools.partial(picture_of, message),
        frame_id=message.header.frame_id,
    )


def raw_picture(message: Any) -> np.ndarray:
    """RGB picture of a sensor_msgs/Image, uint8 of shape (height, width, 3). Raises ImageError."""
    return decode_raw(RawImage(
        message.encoding, message.height, message.width, message.step, message.data,
        bool(message.is_bigendian)))


def compressed_picture(message: Any) -> np.ndarray:
    """RGB picture of a sensor_msgs/CompressedImage, as raw_picture. Raises ImageError."""
    return decode_compressed(message.data, message.format)


def shows_colours(message: Any) -> bool:
    """False for an image, raw or compressed, that states numbers which are no colours, such as depth."""
    stated = message.format if hasattr(message, 'format') else message.encoding
    if 'compressedDepth' in stated:
        return False
    return not isinstance(ENCODINGS.get(stated.split(';')[0].strip()), Refused)
