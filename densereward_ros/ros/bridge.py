"""cv_bridge, where there is one that works: the conversions that cost arithmetic are quicker in C++."""

from __future__ import annotations

import array
import functools

import numpy as np
from sensor_msgs.msg import Image

# What it has known in every release of ROS 2, and turns into colours. The rest is copying bytes, which our
# own table does better: it minds row padding and both byte orders.
ENCODINGS = frozenset({
    'yuv422', 'yuv422_yuy2',
    *(f'bayer_{pattern}{bits}' for pattern in ('rggb', 'bggr', 'gbrg', 'grbg') for bits in (8, 16))})


def convert(message: Image) -> np.ndarray | None:
    """RGB picture, uint8 of shape (height, width, 3); None where cv_bridge is missing or cannot."""
    converter, _ = _find()
    if converter is None:
        return None
    try:
        picture = converter.imgmsg_to_cv2(message, 'rgb8')
    except Exception:  # CvBridgeError, cv2.error, ValueError and more: it is not known or malformed
        return None
    fits = picture.shape == (message.height, message.width, 3) and picture.dtype == np.uint8
    return picture if fits else None


def describe() -> str:
    """Which code decodes raw images, in one line for the log."""
    converter, why_not = _find()
    if converter is None:
        return f'raw images are decoded without cv_bridge ({why_not})'
    return 'raw Bayer and YUV 4:2:2 images are decoded by cv_bridge, the others without it'


@functools.cache
def _find():
    """The bridge and '', or None and why not.

    One that was built for another numpy fails at its import, when it is made, or at its first conversion,
    which depends on the release.
    """
    try:
        from cv_bridge import CvBridge

        converter = CvBridge()
        pixels = Image(height=2, width=2, encoding='bayer_rggb8', step=2, data=array.array('B', bytes(4)))
        converter.imgmsg_to_cv2(pixels, 'rgb8')
    except Exception as error:
        return None, ' '.join(str(error).split())
    return converter, ''
