"""~/debug_image/compressed: only while somebody looks, and never in the way of the inference."""

from __future__ import annotations

import io
import json
import threading
import time

import numpy as np
from PIL import Image
from sensor_msgs.msg import CompressedImage

from densereward_ros.msg import RewardStamped
from densereward_ros.report.overlay import WIDTH
from densereward_ros.ros import debug_image
from densereward_ros.ros.messages import stamp_ns
from ros_bench import FakeCamera, ScriptedModel, wait_for

TOPIC = '/reward_node/debug_image/compressed'


def activate(client) -> None:
    """From unconfigured to active."""
    assert client.transition('configure')
    assert client.transition('activate')


def test_somebody_who_looks_gets_a_picture_of_every_camera(start_node, client):
    """A JPEG with the newest frame's header; frames of both cameras are in it."""
    start_node(image_topics=['/left', '/right'])
    activate(client)
    left, right = FakeCamera(client, '/left', frame_id='left'), FakeCamera(client, '/right')
    pictures = client.listen(CompressedImage, TOPIC)
    red, blue = (np.full((48, 64, 3), colour, np.uint8) for colour in ((220, 30, 30), (30, 30, 220)))
    stamp = 10**9

    def film() -> bool:
        nonlocal stamp
        stamp += 10**8
        left.send(stamp, red), right.send(stamp, blue)
        time.sleep(0.05)
        if not pictures:
            return False
        pixels = np.asarray(Image.open(io.BytesIO(pictures[-1].data.tobytes()))).astype(int)
        assert pixels.shape[1] == WIDTH
        return all((np.abs(pixels - colour).max(axis=2) < 20).sum() > 50_000 for colour in (
            (220, 30, 30), (30, 30, 220)))

    wait_for(film)
    assert pictures[-1].format == 'jpeg'
    assert pictures[-1].header.frame_id in ('left', 'camera')
    assert pictures[-1].header.stamp.sec >= 1


def test_without_a_subscriber_nothing_is_drawn_and_no_picture_is_kept(start_node, client, monkeypatch):
    """A monitor must not pay for what nobody looks at."""
    drawn = []
    monkeypatch.setattr(debug_image, 'draw_overlay', lambda *_: drawn.append(1))
    here = start_node()
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    camera.stream(6)
    wait_for(lambda: len(rewards) >= 2)
    time.sleep(0.2)
    assert drawn == []
    assert [history.window for history in here.node._monitor._debug_image._histories.values()] == [None]


def test_a_picture_that_takes_long_holds_up_no_reward(start_node, client, monkeypatch):
    """Drawing hangs for a while: rewards go on, and only the newest state is drawn afterwards."""
    begun, release, drawn = threading.Event(), threading.Event(), []

    def draw(task, panels):
        drawn.append([len(panel.rewards) for panel in panels])
        begun.set()
        release.wait(10)
        return Image.new('RGB', (8, 8))

    monkeypatch.setattr(debug_image, 'draw_overlay', draw)
    here = start_node()
    activate(client)
    pictures, rewards = client.listen(CompressedImage, TOPIC), client.listen(RewardStamped, '/reward')
    camera = here.camera(client)
    wait_for(lambda: here.node._monitor._debug_image._publisher.get_subscription_count())
    stamps = camera.stream(3)
    wait_for(begun.is_set)
    stamps += camera.stream(10, start_ns=stamps[-1] + 200_000_000)
    wait_for(lambda: len(rewards) >= 11)
    assert pictures == []
    release.set()
    wait_for(lambda: len(pictures) == 2)
    time.sleep(0.3)
    assert drawn == [[1], [11]]
    assert stamp_ns(pictures[-1].header.stamp) == stamps[-1]
    assert len(pictures) == 2


def test_a_picture_that_cannot_be_drawn_costs_no_reward(start_node, client, monkeypatch, log):
    """The overlay is a help for people, and no part of the monitor."""
    monkeypatch.setattr(debug_image, 'draw_overlay', lambda *_: 1 / 0)
    here = start_node()
    activate(client)
    client.listen(CompressedImage, TOPIC)
    wait_for(lambda: here.node._monitor._debug_image._publisher.get_subscription_count())
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    camera.stream(12)
    wait_for(lambda: len(rewards) >= 5)
    time.sleep(0.3)
    assert log('ERROR') == ["no debug image: ZeroDivisionError('division by zero')"]


def test_at_most_ten_pictures_a_second(start_node, client):
    """Verdicts at 50 Hz do not make 50 pictures a second."""
    here = start_node(ScriptedModel())
    activate(client)
    pictures = client.listen(CompressedImage, TOPIC)
    wait_for(lambda: here.node._monitor._debug_image._publisher.get_subscription_count())
    camera = here.camera(client)
    started = time.monotonic()
    camera.stream(50)
    took = time.monotonic() - started
    assert 2 <= len(pictures) <= 10 * took + 2


def test_the_foxglove_layout_shows_topics_that_exist(start_node, client, repository):
    """Every panel is placed, and every topic is one of the node's."""
    layout = json.loads((repository / 'docs' / 'foxglove_layout.json').read_text())
    text = json.dumps(layout['layout'])
    assert all(f'"{panel}"' in text for panel in layout['configById'])
    start_node()
    assert client.transition('configure')
    used = set()
    for config in layout['configById'].values():
        used |= {config.get('topicPath'), config.get('topicToRender')}
        used.add(config.get('imageMode', {}).get('imageTopic'))
        used |= {path['value'].split('.')[0] for path in config.get('paths', ())}
    used.discard(None)
    assert len(used) >= 5
    wait_for(lambda: all(client.node.count_publishers(topic) for topic in used), what=f'publishers of {used}')
