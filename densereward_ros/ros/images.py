"""Camera messages as frames; where cv_bridge works, it decodes what costs arithmetic."""

from __future__ import annotations

import numpy as np
from sensor_msgs.msg import CompressedImage, Image

from densereward_ros.frames import messages
from densereward_ros.frames.encodings import ENCODINGS, check_size
from densereward_ros.ros import bridge
from densereward_ros.types import Frame


def message_type(topic: str) -> type[Image] | type[CompressedImage]:
    """The type that a camera topic has by the naming convention of image_transport."""
    return CompressedImage if topic.endswith('/compressed') else Image


def frame_of(message: Image | CompressedImage, received_ns: int, stamp_ns: int) -> Frame:
    """The frame of a message, as messages.frame_of; nothing is decoded or copied yet."""
    compressed = isinstance(message, CompressedImage)
    picture_of = messages.compressed_picture if compressed else _raw_picture
    return messages.frame_of(message, received_ns, stamp_ns, picture_of)


def _raw_picture(message: Image) -> np.ndarray:
    if message.encoding in bridge.ENCODINGS or message.encoding not in ENCODINGS:
        check_size(message.height, message.width)
        picture = bridge.convert(message)
        if picture is not None:
            return picture
    return messages.raw_picture(message)
