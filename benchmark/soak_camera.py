"""A camera of the soak test, which does what cameras do."""

from __future__ import annotations

import array
import io
import random
import threading
import time
from collections import Counter, deque

import numpy as np
from PIL import Image as Picture
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image

from densereward_ros.ros.messages import to_time
from densereward_ros.tabletop.episode import LiveTable

CAMERA_HZ = 15.0
NS_PER_S = 1_000_000_000


class Camera(threading.Thread):
    """Films a tabletop at 15 Hz and does what cameras do: dies, comes back, changes, sends rubbish."""

    def __init__(self, node: Node, topic: str, seed: int, happened: Counter) -> None:
        super().__init__(daemon=True)
        self._compressed = topic.endswith('/compressed')
        self._publisher = node.create_publisher(CompressedImage if self._compressed else Image, topic, 5)
        self._chance = random.Random(seed)
        self._table = LiveTable(seed)
        self._happened = happened
        self._shift_ns = 0
        self._scale = 1
        self._encoding = 'rgb8'
        self.sent: deque[int] = deque(maxlen=2000)
        self.unstamped_at = float('-inf')
        self.stop = threading.Event()

    def run(self) -> None:
        """Film until told to stop."""
        while not self.stop.wait(1.0 / CAMERA_HZ):
            self._table.step()
            if self._table.done:
                self._table.next_task()
            if self._chance.random() < 0.01:
                self._misbehave()
            message = self._message(self._picture())
            if self._chance.random() < 0.01:
                self._spoil(message)
            self._publisher.publish(message)

    def _picture(self) -> np.ndarray:
        picture = self._table.render()
        return picture.repeat(self._scale, 0).repeat(self._scale, 1)

    def _message(self, picture: np.ndarray) -> Image | CompressedImage:
        stamp = time.time_ns() + self._shift_ns
        self.sent.append(stamp)
        if self._compressed:
            file = io.BytesIO()
            Picture.fromarray(picture).save(file, 'JPEG' if self._encoding == 'rgb8' else 'PNG')
            message = CompressedImage(format='jpeg', data=array.array('B', file.getvalue()))
        else:
            if self._encoding == 'bgr8':
                picture = picture[..., ::-1]
            height, width, _ = picture.shape
            message = Image(height=height, width=width, encoding=self._encoding, step=3 * width)
            message.data.frombytes(np.ascontiguousarray(picture).tobytes())
        message.header.stamp = to_time(stamp)
        return message

    def _misbehave(self) -> None:
        kind = self._chance.choice(('dies', 'clock jumps', 'resolution', 'encoding'))
        self._happened[f'camera: {kind}'] += 1
        if kind == 'dies':
            self.stop.wait(self._chance.uniform(0.5, 4.0))
        elif kind == 'clock jumps':
            self._shift_ns = round(self._chance.uniform(-100, 100) * NS_PER_S)
        elif kind == 'resolution':
            self._scale = self._chance.choice((1, 1, 2, 4))
        else:
            self._encoding = self._chance.choice(('rgb8', 'bgr8'))

    def _spoil(self, message: Image | CompressedImage) -> None:
        kind = self._chance.choice(('no stamp', 'truncated', 'rubbish', 'empty', 'absurd size'))
        self._happened[f'image: {kind}'] += 1
        if kind == 'no stamp':
            message.header.stamp = to_time(0)
            self.unstamped_at = time.monotonic()
        elif kind == 'truncated':
            message.data = message.data[:len(message.data) // 2]
        elif kind == 'empty':
            message.data = array.array('B')
        elif isinstance(message, CompressedImage):
            message.data = array.array('B', self._chance.randbytes(500))
        elif kind == 'rubbish':
            message.encoding = self._chance.choice(('16UC1', '32FC1', 'x\n[FATAL] y', ''))
        else:
            message.height, message.width = 2**31, 2**31
