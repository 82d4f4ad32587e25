"""Several things going wrong at once, at random: whatever happens, what is published is true.

`make soak` does the same for half an hour with the real model and in a process of its own.
"""

from __future__ import annotations

import io
import random
import threading
import time

import numpy as np
import pytest
from PIL import Image as Picture
from sensor_msgs.msg import CompressedImage, Image

from densereward_ros.models.base import Interrupted, OutOfMemory
from densereward_ros.msg import RewardStamped
from densereward_ros.ros.messages import stamp_ns, to_time
from densereward_ros.types import MalformedReply, Reason, Verdict
from ros_bench import FakeCamera, ScriptedModel, wait_for

PNG = io.BytesIO()
Picture.new('RGB', (6, 4)).save(PNG, 'PNG')
PNG = PNG.getvalue()
TOPICS = ('/left', '/right', '/wrist/compressed')
SECONDS = 4.0


def chaotic_model(seed: int) -> ScriptedModel:
    """Half of its replies are verdicts, which tell by which camera and at which stamp they were given."""
    chance = random.Random(seed)

    def script(window):
        fate = chance.random()
        if fate < 0.1:
            return OutOfMemory('no memory')
        if fate < 0.2:
            return RuntimeError('assert\n[FATAL] x')
        if fate < 0.3:
            return Interrupted()
        if fate < 0.5:
            return MalformedReply('?', 'nonsense')
        share = window.newest.stamp_ns // 1_000_000 % 1000 / 1000
        return Verdict(share, Reason(1 + TOPICS.index(window.camera)))

    return ScriptedModel(script, delay_s=0.004)


def film(client, topic: str, seed: int, stop: threading.Event, sent: set[int]) -> None:
    """A camera that dies and returns, changes its size and its clock, and sends rubbish."""
    chance = random.Random(seed)
    compressed = topic.endswith('/compressed')
    publisher = client.node.create_publisher(CompressedImage if compressed else Image, topic, 5)
    stamp, side = 10 ** 12, 4
    while not stop.wait(0.01):
        fate = chance.random()
        if fate < 0.01:
            stop.wait(0.3)
        elif fate < 0.02:
            stamp += chance.choice((-50, 50)) * 10 ** 9
        elif fate < 0.04:
            side = chance.choice((1, 4, 40))
        stamp += 10_000_000
        message = FakeCamera.picture(stamp, np.zeros((side, side, 3), np.uint8))
        if compressed:
            message = CompressedImage(format='png', data=chance.choice((PNG, PNG, PNG, PNG[:20], b'')))
            message.header.stamp = to_time(stamp)
        elif fate > 0.97:
            message.encoding = chance.choice(('32FC1', 'x\ny', ''))
        elif fate > 0.94:
            message.data = message.data[:1]
        elif fate > 0.92:
            message.height = message.width = 2 ** 31
        sent.add(stamp)
        publisher.publish(message)
    client.node.destroy_publisher(publisher)


@pytest.mark.slow
@pytest.mark.parametrize('seed', [1, 2])
def test_whatever_happens_what_is_published_is_true(start_node, client, seed, log):
    """Cameras, model and managers misbehave together; afterwards the node works as ever."""
    chance = random.Random(seed)
    here = start_node(lambda *_: chaotic_model(chance.randrange(10 ** 6)), image_topics=list(TOPICS))
    rewards, wrong, silent = [], [], threading.Event()
    sent = {topic: set() for topic in TOPICS}
    silent.set()

    def check(reward: RewardStamped) -> None:
        rewards.append(reward)
        stamps = [stamp_ns(stamp) for stamp in reward.frame_stamps]
        if not set(stamps) <= sent[reward.camera] or stamps != sorted(set(stamps)):
            wrong.append(f'stamps {stamps}')
        if abs(reward.reward - stamps[-1] // 1_000_000 % 1000 / 1000) > 1e-6:
            wrong.append(f'reward {reward.reward} at {stamps[-1]}')
        if TOPICS[reward.reason - 1] != reward.camera:
            wrong.append(f'reason {reward.reason} of {reward.camera}')
        if silent.is_set():
            wrong.append('published while inactive')

    subscription = client.node.create_subscription(RewardStamped, '/reward', check, 100)
    stop = threading.Event()
    cameras = [
        threading.Thread(target=film, args=(client, topic, seed + i, stop, sent[topic]))
        for i, topic in enumerate(TOPICS)]
    for camera in cameras:
        camera.start()
    try:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            assert client.transition('configure')
            for _ in range(chance.randrange(1, 4)):
                silent.clear()
                assert client.transition('activate')
                client.transition(chance.choice(('activate', 'cleanup', 'configure')))
                time.sleep(chance.uniform(0.05, 0.5))
                assert client.transition('deactivate')
                time.sleep(0.1)  # what was published before is still on its way
                silent.set()
                time.sleep(0.05)
            assert client.transition('cleanup')
        assert client.transition('configure')
        silent.clear()
        assert client.transition('activate')
        heard = len(rewards)
        wait_for(lambda: len({reward.camera for reward in rewards[heard:]}) == 3, what='all three cameras')
    finally:
        stop.set()
        for camera in cameras:
            camera.join()
        client.node.destroy_subscription(subscription)
    assert wrong == []
    assert here.errors == []
    assert [line for line in log('ERROR') if not line.isprintable()] == []
