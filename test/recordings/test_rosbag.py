"""Bags of ROS 2: pictures, clocks, topics, and what is refused."""

from __future__ import annotations

import itertools
import os
import sqlite3
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

import recordings_made
from clips import colour_of, picture
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.opening import open_episodes
from densereward_ros.types import ImageError
from recordings_made import NS_PER_S, RAW, START_NS, TOPIC, TYPES, image_message, make_bag, write_bag

STORAGES = pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
SUFFIX = {'mcap': '.mcap', 'sqlite3': '.db3'}


def pictures(count: int) -> list[np.ndarray]:
    """The first of the numbered pictures."""
    return [picture(i) for i in range(count)]


def only_file(bag: Path) -> Path:
    """The file of a bag that its messages are in."""
    return next(file for file in bag.iterdir() if file.name != 'metadata.yaml')


@pytest.mark.parametrize('compressed', ['', 'png', 'jpeg'])
@pytest.mark.parametrize(('storage', 'zstd'), [
    *itertools.product(('mcap', 'sqlite3'), ('', 'file', 'message')), ('mcap', 'storage')])
def test_pictures_stamps_and_arrival(tmp_path, storage, compressed, zstd):
    """Raw or as files, stored in every way: the header's stamp, the log time as arrival, and every pixel."""
    bag = make_bag(tmp_path / 'run', pictures(5), storage=storage, compressed=compressed, zstd=zstd)
    episode, = open_episodes(bag, 'stack the cup')
    assert (episode.name, episode.source, episode.camera) == ('run-camera_image_raw', str(bag), TOPIC)
    assert (episode.task, episode.count, episode.index) == ('stack the cup', 5, None)
    for _ in range(2):
        frames = list(episode.frames())
        assert [frame.stamp_ns for frame in frames] == [START_NS + i * 10**8 for i in range(5)]
        assert [frame.received_ns - frame.stamp_ns for frame in frames] == [5_000_000] * 5
        assert {frame.frame_id for frame in frames} == {'camera_optical'}
        for index, frame in enumerate(frames):
            assert frame.image.shape == (48, 64, 3)
            assert np.abs(frame.image.astype(int) - colour_of(index)).max() <= 2 * (compressed == 'jpeg')


@STORAGES
def test_a_file_of_a_bag_without_its_metadata(tmp_path, storage):
    """A recording that was stopped hard has no metadata.yaml; its files are given one by one."""
    bag = make_bag(tmp_path / 'run', pictures(3), storage=storage)
    (bag / 'metadata.yaml').unlink()
    episode, = open_episodes(only_file(bag), 'stack')
    assert (episode.name, episode.count) == ('run-camera_image_raw', 3)
    assert len(list(episode.frames())) == 3
    with pytest.raises(RecordingError, match=rf'one by one \(run{SUFFIX[storage]}\), or the folder after'):
        open_episodes(bag, 'stack')


@STORAGES
def test_a_stamp_of_zero_is_replaced_by_the_log_time(tmp_path, storage):
    """As in the node, where the time of arrival stands in; so does it for a time that is none."""
    broken = image_message(picture(1), START_NS)
    broken.header.stamp.nanosec = NS_PER_S
    messages = [
        (TOPIC, START_NS + 1, image_message(picture(0), 0)), (TOPIC, START_NS + 2, broken),
        (TOPIC, START_NS + 3, image_message(picture(2), START_NS - 5))]
    episode, = open_episodes(write_bag(tmp_path / 'run', messages, storage), 'stack')
    assert [frame.stamp_ns - START_NS for frame in episode.frames()] == [1, 2, -5]


@STORAGES
def test_frames_come_in_the_order_of_the_bag(tmp_path, storage):
    """That is of their log times; what the stamps say about it is for the window to judge."""
    stamps = [START_NS + i * 10**8 for i in (0, 2, 1, 1, 4)]
    episode, = open_episodes(make_bag(tmp_path / 'run', pictures(5), stamps=stamps, storage=storage), 'stack')
    frames = list(episode.frames())
    assert [frame.stamp_ns for frame in frames] == stamps
    assert [tuple(frame.image[0, 0]) for frame in frames] == [colour_of(i) for i in range(5)]
    late = [(TOPIC, START_NS + ns, image_message(picture(ns), START_NS)) for ns in (5, 1, 9, 3)]
    episode, = open_episodes(write_bag(tmp_path / 'late', late, storage), 'stack')
    assert [frame.received_ns - START_NS for frame in episode.frames()] == [1, 3, 5, 9]


@STORAGES
def test_each_camera_is_an_episode(tmp_path, storage):
    """In the order of the topics' names, or of those that are asked for; each sees its own pictures."""
    bag = make_bag(tmp_path / 'run', {
        '/wrist/image': pictures(3), '/front/image': [image[::-1] // 2 for image in pictures(6)]},
        storage=storage)
    front, wrist = open_episodes(bag, 'stack')
    assert [(episode.name, episode.camera, episode.count) for episode in (front, wrist)] == [
        ('run-front_image', '/front/image', 6), ('run-wrist_image', '/wrist/image', 3)]
    for episode, factor in ((front, 2), (wrist, 1)):
        for index, frame in enumerate(episode.frames()):
            assert (frame.image == np.array(colour_of(index)) // factor).all()
    picked = open_episodes(bag, 'stack', topics=['/wrist/image', '/front/image', '/wrist/image'])
    assert [episode.name for episode in picked] == ['run-wrist_image', 'run-front_image']
    assert [episode.name for episode in open_episodes(bag, 'stack', topics=['/wrist/image'])] == [
        'run-wrist_image']


def test_names_differ_where_topics_hardly_do(tmp_path):
    """Both become file names."""
    bag = make_bag(tmp_path / 'run', {'/a/b': pictures(1), '/a_b': pictures(1), '/A_B': pictures(1)})
    names = {episode.camera: episode.name for episode in open_episodes(bag, 'stack')}
    assert names == {'/A_B': 'run-A_B', '/a/b': 'run-a_b_2', '/a_b': 'run-a_b_3'}
    picked, = open_episodes(bag, 'stack', topics=['/a_b'])
    assert picked.name == 'run-a_b_3'


def test_depth_is_left_out(tmp_path):
    """By what its messages state, whatever its topic is called; colours and grey stay."""
    depth = np.full((4, 6), 900, np.uint16)
    text = TYPES.types['std_msgs/msg/String']
    messages = [
        ('/depth/image', START_NS, image_message(depth, START_NS)),
        ('/depth/image/compressedDepth', START_NS, image_message(
            picture(0), START_NS, 'png', format='16UC1; compressedDepth png')),
        ('/depth/image/compressed', START_NS, image_message(
            picture(0), START_NS, 'png', format='16UC1; png compressed ')),
        ('/flow', START_NS, image_message(picture(0), START_NS, encoding='32FC2')),
        ('/depth/colours', START_NS, image_message(picture(0), START_NS)),
        ('/infrared', START_NS, image_message(depth.astype(np.uint8), START_NS)),
        ('/says', START_NS, text(data='hello'))]
    bag = write_bag(tmp_path / 'run', messages)
    assert [episode.camera for episode in open_episodes(bag, 'stack')] == ['/depth/colours', '/infrared']
    with pytest.raises(RecordingError, match='no colour images: /depth/image is depth or other measure'):
        open_episodes(bag, 'stack', topics=['/infrared', '/depth/image'])
    bag = write_bag(tmp_path / 'depth', messages[:2])
    with pytest.raises(RecordingError, match='no colour images: /depth/image is depth .*, /depth/image/comp'):
        open_episodes(bag, 'stack')


@STORAGES
def test_a_topic_that_has_no_images_is_refused(tmp_path, storage):
    """With those that have."""
    text = TYPES.types['std_msgs/msg/String']
    messages = [('/says', START_NS, text(data='hello')), (TOPIC, START_NS, image_message(picture(0), 1))]
    bag = write_bag(tmp_path / 'run', messages, storage, topics=[('/other/image', RAW)])
    for topic in ('/says', '/camera/image_rew'):
        with pytest.raises(RecordingError, match=(
                rf'run: {topic} is no topic of images in it; allowed: /camera/image_raw, /other/image$')):
            open_episodes(bag, 'stack', topics=[TOPIC, topic])
    assert [episode.camera for episode in open_episodes(bag, 'stack')] == [TOPIC]
    with pytest.raises(RecordingError, match='no colour images: /other/image holds no message'):
        open_episodes(bag, 'stack', topics=['/other/image'])
    bag = write_bag(tmp_path / 'talk', messages[:1], storage)
    with pytest.raises(RecordingError, match='no topic of images; allowed are .*, seen: std_msgs/msg/String'):
        open_episodes(bag, 'stack')


@STORAGES
def test_empty_bags_and_single_images(tmp_path, storage):
    """No topic, no message, one message."""
    with pytest.raises(RecordingError, match='no topic of images; .* seen: none'):
        open_episodes(write_bag(tmp_path / 'nothing', [], storage), 'stack')
    with pytest.raises(RecordingError, match='no colour images: /camera/image_raw holds no message'):
        open_episodes(make_bag(tmp_path / 'empty', [], storage=storage), 'stack')
    episode, = open_episodes(make_bag(tmp_path / 'one', pictures(1), storage=storage), 'stack')
    assert [frame.stamp_ns for frame in episode.frames()] == [START_NS]


@STORAGES
def test_types_that_nobody_knows_do_not_matter(tmp_path, monkeypatch, storage):
    """A bag of a real robot has messages of its maker; only the images are looked at."""
    types = get_typestore(Stores.LATEST)
    types.register(get_types_from_msg('float32[] torques', 'maker_msgs/msg/Arm'))
    monkeypatch.setattr(recordings_made, 'TYPES', types)
    arm = types.types['maker_msgs/msg/Arm'](torques=np.zeros(3, np.float32))
    bag = write_bag(
        tmp_path / 'run', [('/arm', START_NS, arm), (TOPIC, START_NS, image_message(picture(2), 5))], storage)
    episode, = open_episodes(bag, 'stack')
    assert [tuple(frame.image[0, 0]) for frame in episode.frames()] == [colour_of(2)]


def test_images_are_decoded_when_asked_for(tmp_path):
    """A broken one hurts nobody who does not look at it, and then says why, as in the node."""
    absurd = image_message(picture(0), 1, height=2**31, width=2**31, step=2**32 - 1)
    messages = [
        (TOPIC, START_NS, image_message(picture(0), 1)), (TOPIC, START_NS + 1, absurd),
        (TOPIC, START_NS + 2, image_message(picture(0), 1, data=np.zeros(5, np.uint8))),
        (TOPIC, START_NS + 3, image_message(picture(3), 1))]
    episode, = open_episodes(write_bag(tmp_path / 'run', messages), 'stack')
    good, huge, short, last = episode.frames()
    assert (good.image == colour_of(0)).all() and (last.image == colour_of(3)).all()
    tracemalloc.start()
    with pytest.raises(ImageError, match='2147483648x2147483648 pixels, allowed: at most 50 megapixels'):
        huge.image  # noqa: B018
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    with pytest.raises(ImageError, match='the data are 5 bytes'):
        short.image  # noqa: B018


@STORAGES
def test_a_message_that_is_none_stops_the_reading(tmp_path, storage):
    """With the topic, and how far it was good."""
    good = image_message(picture(0), 1)
    whole = bytes(TYPES.serialize_cdr(good, RAW))
    for number, data in enumerate((b'', b'\x00\x01', whole[:60], whole[:-1], bytes(len(whole)))):
        messages = [(TOPIC, START_NS, good), (TOPIC, START_NS + 1, good), (TOPIC, START_NS + 2, data)]
        episode, = open_episodes(write_bag(tmp_path / f'run{number}', messages, storage), 'stack')
        count = 0
        with pytest.raises(RecordingError, match=rf'{TOPIC} is damaged after message 2 \(') as error:
            for frame in episode.frames():
                count += frame.image.size > 0
        assert count == 2 and '\n' not in str(error.value)


@STORAGES
@pytest.mark.parametrize('content', [b'', b'\x89MCAP0\r\n', b'SQLite format 3\x00', bytes(range(256)) * 9])
def test_a_file_that_is_no_bag_is_refused(tmp_path, storage, content):
    """At once, with what is allowed."""
    path = tmp_path / f'run{SUFFIX[storage]}'
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=r'not a bag that can be read \(.+\); allowed is a bag') as error:
        open_episodes(path, 'stack')
    assert str(path) in str(error.value) and '\n' not in str(error.value)


@STORAGES
@pytest.mark.parametrize('share', [0.2, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_refused(tmp_path, storage, share):
    """As a robot leaves it that lost its power, or a copy that broke off."""
    bag = make_bag(tmp_path / 'run', pictures(40), storage=storage)
    file = only_file(bag)
    file.write_bytes(file.read_bytes()[:int(file.stat().st_size * share)])
    for path in (bag, file):
        with pytest.raises(RecordingError) as error:
            for episode in open_episodes(path, 'stack'):
                for frame in episode.frames():
                    frame.image  # noqa: B018
        assert str(path) in str(error.value) and '\n' not in str(error.value)


@pytest.fixture(scope='module')
def bytes_of_bags(tmp_path_factory) -> dict[str, bytes]:
    """The good files that are damaged."""
    folder = tmp_path_factory.mktemp('bags')
    return {storage: only_file(make_bag(folder / storage, pictures(6), storage=storage)).read_bytes()
            for storage in ('mcap', 'sqlite3')}


@STORAGES
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_damage_anywhere_gives_errors_of_ours_or_pictures(tmp_path, bytes_of_bags, storage, data):
    """Never another exception, which would end the run over many recordings."""
    content = bytearray(bytes_of_bags[storage])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content) - 1))
        new = data.draw(st.binary(min_size=1, max_size=20))
        content[start:start + len(new)] = new
    path = tmp_path / f'run{SUFFIX[storage]}'
    path.write_bytes(content)
    try:
        for episode in open_episodes(path, 'stack'):
            for frame in episode.frames():
                try:
                    assert frame.image.ndim == 3
                except ImageError:
                    pass
    except RecordingError as error:
        assert '\n' not in str(error)


@pytest.mark.parametrize(('content', 'words'), [
    ('', 'not a bag'), ('{', 'not a bag'), ('a: b', 'a metadata key is missing'),
    ('rosbag2_bagfile_information: {version: 99}', 'version 99 not supported')])
def test_broken_metadata_is_told(tmp_path, content, words):
    """The bag may well be whole: its file can be given instead."""
    bag = make_bag(tmp_path / 'run', pictures(2))
    (bag / 'metadata.yaml').write_text(content)
    with pytest.raises(RecordingError, match=f'(?i){words}') as error:
        open_episodes(bag, 'stack')
    assert '\n' not in str(error.value)
    assert open_episodes(only_file(bag), 'stack')


def test_a_bag_whose_file_is_gone(tmp_path):
    """Only the metadata were copied."""
    bag = make_bag(tmp_path / 'run', pictures(2))
    only_file(bag).unlink()
    with pytest.raises(RecordingError, match='files are missing'):
        open_episodes(bag, 'stack')


def test_a_bag_of_sqlite_in_use_is_read(tmp_path):
    """A recorder that still has it open: what is in the file so far."""
    bag = make_bag(tmp_path / 'run', pictures(4), storage='sqlite3')
    with sqlite3.connect(only_file(bag)) as holder:
        holder.execute('SELECT * FROM messages').fetchone()
        episode, = open_episodes(only_file(bag), 'stack')
        assert len(list(episode.frames())) == 4


def test_other_files_are_told_what_is_allowed(tmp_path):
    """A bag of ROS 1, and a file that only its metadata explain."""
    for name, words in (('old.bag', r'a bag of ROS 1; .* \(rosbags-convert --src old.bag'),
                        ('run.db3.zstd', 'allowed is the folder of the bag')):
        (tmp_path / name).write_bytes(b'#ROSBAG V2.0\n')
        with pytest.raises(RecordingError, match=words):
            open_episodes(tmp_path / name, 'stack')


@pytest.mark.parametrize('module', ['rosbags', 'lz4.frame'])
def test_a_missing_library_is_told(tmp_path, monkeypatch, module):
    """Also one that rosbags itself needs, for compressed chunks."""
    bag = make_bag(tmp_path / 'run', pictures(1))
    for name in [name for name in sys.modules if name.split('.')[0] == 'rosbags']:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RecordingError, match=r'a bag needs the Python package rosbags \(.*: pip install'):
        open_episodes(bag, 'stack')


@STORAGES
def test_memory_stays_flat(tmp_path, storage):
    """A long recording needs no more than a short one: 60 MB of images pass through less than 10."""
    images = [np.full((480, 640, 3), i, np.uint8) for i in range(4)]
    bag = make_bag(tmp_path / 'run', (images[i % 4] for i in range(66)), storage=storage)
    episode, = open_episodes(bag, 'stack')
    next(episode.frames())
    tracemalloc.start()
    for frame in episode.frames():
        assert frame.image.shape == (480, 640, 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert os.path.getsize(only_file(bag)) > 60_000_000
    assert peak < 10_000_000


@pytest.mark.slow
def test_real_videos_as_bags(video_folder, tmp_path):
    """Recordings of robots, written as bags in every way: as many frames, at their times, the same pixels."""
    for path in sorted(video_folder.glob('*.mp4')):
        video, = open_episodes(path, 'stack')
        images = [frame.image for frame in video.frames()]
        for storage in ('mcap', 'sqlite3'):
            for compressed in ('', 'jpeg'):
                bag = make_bag(
                    tmp_path / f'{path.stem}_{storage}_{compressed or "raw"}', images, storage=storage,
                    compressed=compressed, rate=5.0)
                episode, = open_episodes(bag, 'stack')
                assert episode.count == len(images)
                for index, frame in enumerate(episode.frames()):
                    assert frame.stamp_ns == START_NS + index * 200_000_000
                    error = np.abs(frame.image.astype(int) - images[index])
                    assert error.max() == 0 if not compressed else error.mean() < 4
