"""Three raw cameras of 640x480 and a compressed one of 1920x1080, in a process of their own.

For each line `PREFIX SECONDS RATE` on the standard input it publishes that long below that prefix, and
then answers with a line of JSON: how many images it sent, and in which time.
"""

from __future__ import annotations

import array
import io
import json
import sys
import time

import rclpy
from PIL import Image as Picture
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Image

from densereward_ros.tabletop.episode import LiveTable

QOS = QoSProfile(depth=2, reliability=QoSReliabilityPolicy.BEST_EFFORT)
PICTURES = 40


def messages() -> list[list[Image | CompressedImage]]:
    """For each of forty moments, the message of each camera."""
    table = LiveTable(3, scale=5)
    rows = []
    for _ in range(PICTURES):
        table.step()
        picture = table.render()
        raw = Image(height=480, width=640, encoding='rgb8', step=3 * 640)
        raw.data.frombytes(picture.tobytes())
        file = io.BytesIO()
        Picture.fromarray(picture).resize((1920, 1080)).save(file, 'JPEG', quality=85)
        jpeg = CompressedImage(format='rgb8; jpeg compressed bgr8', data=array.array('B', file.getvalue()))
        rows.append([raw, raw, raw, jpeg])
    return rows


def main() -> None:
    """Serve until the standard input ends."""
    rclpy.init()
    node = rclpy.create_node('cameras')
    rows = messages()
    kinds = [type(message) for message in rows[0]]
    publishers = {}
    print(json.dumps({'ready': True, 'jpeg_bytes': len(rows[0][3].data)}), flush=True)
    for line in sys.stdin:
        prefix, seconds, rate = line.split()
        if prefix not in publishers:
            publishers[prefix] = [
                node.create_publisher(kind, topic, QOS) for kind, topic in zip(kinds, topics(prefix))]
        begun = started = time.monotonic()
        sent = tick = 0
        while time.monotonic() < begun + float(seconds):
            due = started + tick / float(rate)
            if (late := time.monotonic() - due) < 0:
                time.sleep(-late)
            elif late > 0.5:
                started += late  # what cannot be kept up with is not made up for in a burst
            # One after the other within the period, as cameras that know nothing of each other.
            row = rows[tick // 3 % PICTURES]
            for publisher, message in zip(publishers[prefix], row):
                message.header.stamp = node.get_clock().now().to_msg()
                publisher.publish(message)
                sent += 1
            tick += 1
        print(json.dumps({'sent': sent, 'seconds': time.monotonic() - begun}), flush=True)


def topics(prefix: str) -> list[str]:
    """The topics of the four cameras."""
    return [f'{prefix}/camera0', f'{prefix}/camera1', f'{prefix}/camera2', f'{prefix}/camera3/compressed']


if __name__ == '__main__':
    main()
