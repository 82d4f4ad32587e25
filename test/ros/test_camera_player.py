"""The camera player as a process: what it publishes, at which rate, and how it ends."""

from __future__ import annotations

import io
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from ament_index_python.packages import get_package_prefix
from PIL import Image as Picture
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger

from clips import colour_of, write_clip, write_images
from densereward_ros.recordings.opening import open_recording
from ros_bench import wait_for

pytestmark = pytest.mark.slow  # together they take most of a minute

PLAYER = Path(get_package_prefix('densereward_ros')) / 'lib' / 'densereward_ros' / 'camera_player'
TOPIC = '/camera/image_raw'
RELIABLE = QoSProfile(depth=50, reliability=QoSReliabilityPolicy.RELIABLE)
BEST_EFFORT = QoSProfile(depth=50, reliability=QoSReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(depth=1, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL)


def command(**parameters: str) -> list[str]:
    """The player's command line."""
    arguments = [part for name, value in parameters.items() for part in ('-p', f'{name}:={value}')]
    return [str(PLAYER), '--ros-args', *arguments]


def seconds(messages: list) -> np.ndarray:
    """The stamps of messages."""
    return np.array([message.header.stamp.sec + message.header.stamp.nanosec / 1e9 for message in messages])


def pixels(message: Image) -> np.ndarray:
    """The picture of a raw message."""
    return np.frombuffer(message.data, np.uint8).reshape(message.height, message.width, 3)


def test_video_raw(client, processes, tmp_path):
    """Every frame once, bit by bit as decoded, at the video's rate, to reliable and best-effort listeners."""
    clip = write_clip(tmp_path / 'clip.mp4', 12, rate=8)
    player = processes(command(source=clip, wait_for_subscribers='2', frame_id='wrist'))
    got, got_best_effort = client.listen(Image, TOPIC, RELIABLE), client.listen(Image, TOPIC, BEST_EFFORT)
    player.wait_for_line('ended after 12 frames', 20)
    assert player.process.wait(10) == 0
    wait_for(lambda: len(got) == 12 and len(got_best_effort) == 12, 2, 'twelve frames')
    for message, (_, image) in zip(got, open_recording(clip).frames()):
        assert (message.encoding, message.step, message.is_bigendian) == ('rgb8', 3 * 64, 0)
        assert message.header.frame_id == 'wrist'
        assert np.array_equal(pixels(message), image)
    gaps = np.diff(seconds(got))
    assert gaps.mean() == pytest.approx(1 / 8, rel=0.1) and gaps.min() > 0.03
    assert abs(seconds(got)[-1] - time.time()) < 15


def test_images_compressed(client, processes, tmp_path):
    """JPEG below the topic, in the words of image_transport, in the right colours and at the stated rate."""
    folder = write_images(tmp_path / 'run', 10)
    player = processes(command(source=folder, rate='20.0', compressed='true', wait_for_subscribers='1'))
    got = client.listen(CompressedImage, TOPIC + '/compressed', RELIABLE)
    player.wait_for_line('ended after 10 frames', 20)
    assert player.process.wait(10) == 0
    assert len(got) == 10
    for index, message in enumerate(got):
        assert message.format == 'rgb8; jpeg compressed bgr8'
        picture = Picture.open(io.BytesIO(message.data.tobytes()))
        assert picture.format == 'JPEG'
        assert np.abs(np.array(picture).astype(int) - colour_of(index)).max() <= 4
    assert np.diff(seconds(got)).mean() == pytest.approx(1 / 20, rel=0.15)


def test_loop_until_ctrl_c(client, processes, tmp_path):
    """A loop starts over without a pause; Ctrl-C ends it within two seconds with exit code 0."""
    folder = write_images(tmp_path / 'run', 3)
    player = processes(command(
        source=folder, rate='20.0', loop='true', topic='/wrist/rgb', wait_for_subscribers='1'))
    got = client.listen(Image, '/wrist/rgb', RELIABLE)
    wait_for(lambda: len(got) >= 9, 15, 'nine frames of a loop of three')
    code, took = player.signal()
    assert code == 0 and took < 2.0
    colours = [tuple(int(value) for value in pixels(message)[0, 0]) for message in got[:9]]
    assert colours == [colour_of(index % 3) for index in range(9)]
    assert np.diff(seconds(got[:9])).max() < 0.5


def test_ctrl_c_while_waiting(processes, tmp_path):
    """A player that waits for a subscriber that never comes can be stopped."""
    folder = write_images(tmp_path / 'run', 3)
    player = processes(command(source=folder, rate='5.0', wait_for_subscribers='9'))
    player.wait_for_line('waiting for subscribers of /camera/image_raw: 9', 20)
    code, took = player.signal()
    assert code == 0 and took < 2.0


@pytest.mark.parametrize('parameters, words', [
    ({'source': '/none.mp4'}, '/none.mp4: no such file or folder; allowed are'),
    ({'source': '""'}, 'no source given'),
    ({'source': __file__}, 'not a video'),
    ({'source': str(Path(__file__).parent), 'rate': '5.0'}, 'no image in this folder'),
    ({'source': str(Path(__file__).parent)}, 'a folder of images has no rate of its own'),
    ({'rate': '5'}, 'parameter rate is 5, an integer; write 5.0'),
    ({'rate': '-1.0'}, 'parameter rate is -1.0, allowed: 0.0 to 1000.0'),
    ({'jpeg_quality': '0'}, 'parameter jpeg_quality is 0, allowed: a whole number, 1 to 100'),
    ({'mishaps': '[miss, stumble]'}, "parameter mishaps names 'stumble', allowed: correct, miss"),
    ({'loop': 'perhaps'}, "parameter loop is 'perhaps', allowed: true or false"),
])
def test_bad_input(parameters, words):
    """One line that says what is wrong and what is allowed, and exit code 1."""
    ended = subprocess.run(command(**parameters), capture_output=True, text=True, timeout=30)
    assert ended.returncode == 1
    lines = ended.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith('camera_player: ') and words in lines[0]


def test_damage_on_the_way(client, processes, tmp_path):
    """What can be read is published; then one line, and exit code 1."""
    folder = write_images(tmp_path / 'run', 3)
    (folder / 'frame3.png').write_bytes(b'')
    player = processes(command(source=folder, rate='20.0', wait_for_subscribers='1'))
    got = client.listen(Image, TOPIC, RELIABLE)
    player.wait_for_line('frame3.png: not an image that can be read', 20)
    assert player.process.wait(10) == 1
    assert len(got) == 2


def test_simulated_robot(client, processes):
    """It tells its tasks, finishes them one after the other, recovers when asked to, and ends with them."""
    player = processes(command(
        mishaps='[miss, correct]', rate='40.0', seed='3', wait_for_subscribers='1', topic='/table'))
    progress = client.listen(Float64, '/camera_player/progress', 50)
    tasks = client.listen(String, '/camera_player/task', LATCHED)
    images = client.listen(Image, '/table', RELIABLE)
    wait_for(lambda: len(progress) > 20, 15, 'the robot at work')
    answers = [client.call_async(Trigger, '/camera_player/recover', Trigger.Request()) for _ in range(2)]
    wait_for(lambda: all(answer.done() for answer in answers), 10, 'the answers to recover')
    first, second = sorted((answer.result() for answer in answers), key=lambda result: not result.success)
    assert first.success and first.message == 'the arm is home and tries again'
    assert not second.success and second.message == 'already recovering'
    assert progress[-1].data < 0.3  # home again, with an empty hand
    player.wait_for_line('ended after', 30)
    assert player.process.wait(10) == 0
    texts = [message.data for message in tasks]
    assert len(texts) == 2 and texts[0] != texts[1] and all(' block ' in text for text in texts)
    values = [message.data for message in progress]
    finished = [i for i, value in enumerate(values[1:], 1) if value > 0.999 >= values[i - 1]]
    assert len(finished) == 2
    assert pixels(images[0]).shape == (96, 128, 3) and pixels(images[0]).std() > 10


@pytest.mark.slow
def test_real_videos(client, processes, video_folder):
    """Real recordings arrive complete and unchanged, at their own rate."""
    for path in sorted(video_folder.glob('*.mp4')):
        frames = list(open_recording(path).frames())
        player = processes(command(source=path, wait_for_subscribers='1'))
        got = client.listen(Image, TOPIC, RELIABLE)
        player.wait_for_line(f'ended after {len(frames)} frames', 30)
        assert player.process.wait(10) == 0
        assert len(got) == len(frames)
        assert all(np.array_equal(pixels(message), image) for message, (_, image) in zip(got, frames))
        assert seconds(got)[-1] - seconds(got)[0] == pytest.approx(frames[-1][0], abs=0.2)
        client.forget()
