"""Scores as MCAP files: what ROS reads from them, on which clock, and that they explain themselves."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rclpy.serialization import deserialize_message
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from std_msgs.msg import Float64

from clips import picture
from densereward_ros import share
from densereward_ros.msg import FailureEvent, RewardStamped
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.episode import Labels
from densereward_ros.recordings.opening import open_episodes
from densereward_ros.results import mcap
from densereward_ros.results.mcap import TOPICS, write_mcap
from densereward_ros.results.rows import ScoredEpisode, ScoredEvent, ScoredFrame
from densereward_ros.ros.messages import stamp_ns
from densereward_ros.types import Reason, Rule
from recordings_made import START_NS, make_bag

KINDS = {'/reward': RewardStamped, '/reward/value': Float64, '/failure_event': FailureEvent}
STEP_NS = 200_000_000
PROBABILITIES = (0.5, 0.125, 0.25, 0.0625, 0.03125, 0.03125)


def scored(frames: list[ScoredFrame], events: list[ScoredEvent] = (), camera: str = '/wrist/image_raw'):
    """An episode of these."""
    return ScoredEpisode(
        'run', 'run.mcap', camera, 'stäck the cup', Labels(), tuple(frames), tuple(events))


def frame(index: int, reward: float | None, **values) -> ScoredFrame:
    """A frame at its fifth of a second, logged 7 ms later."""
    at = START_NS + index * STEP_NS
    return ScoredFrame(
        index, at, index / 5, 0, reward,
        **{'reason': Reason.CORRECT, 'log_ns': at + 7_000_000,
           'window_ns': (at - 2 * STEP_NS, at - STEP_NS, at), **values})


def event(index: int, **values) -> ScoredEvent:
    """An event at a frame."""
    return ScoredEvent(**{
        'stamp_ns': START_NS + index * STEP_NS, 'seconds': index / 5, 'reason': Reason.FALL,
        'rule': Rule.WORD, 'reward': 0.25, 'previous_reward': 0.75, 'probability': 0.5, 'confirmations': 2,
        **values})


def read(file: Path) -> list[tuple[str, int, object]]:
    """Topic, log time and message, deserialised by ROS itself."""
    with Reader(file) as reader:
        return [(connection.topic, log_ns, deserialize_message(bytes(data), KINDS[connection.topic]))
                for connection, log_ns, data in reader.messages()]


def test_ros_reads_every_field(tmp_path):
    """The node's own message types, field by field; an event lies beside the reward that completed it."""
    frames = [frame(2, 0.75, reason_probabilities=PROBABILITIES), frame(3, 0.25, reason=Reason.FALL)]
    write_mcap([scored(frames, [event(3)])], tmp_path / 'mcap', model='tabletop', bounded=True)
    messages = read(tmp_path / 'mcap' / 'run.mcap')
    first, second = START_NS + 2 * STEP_NS, START_NS + 3 * STEP_NS
    assert [(topic, log_ns - 7_000_000) for topic, log_ns, _ in messages] == [
        ('/reward', first), ('/reward/value', first),
        ('/reward', second), ('/reward/value', second), ('/failure_event', second)]
    reward = messages[0][2]
    assert stamp_ns(reward.header.stamp) == first and reward.header.frame_id == ''
    assert (reward.camera, reward.task) == ('/wrist/image_raw', 'stäck the cup')
    assert (reward.reward, reward.bounded, reward.reason) == (0.75, True, RewardStamped.REASON_CORRECT)
    assert tuple(reward.reason_probabilities) == PROBABILITIES
    assert [stamp_ns(time) for time in reward.frame_stamps] == [START_NS, START_NS + STEP_NS, first]
    assert (reward.inference_time.sec, reward.inference_time.nanosec) == (0, 0)
    assert reward.model == 'tabletop'
    assert messages[2][2].reason == RewardStamped.REASON_FALL
    assert all(math.isnan(value) for value in messages[2][2].reason_probabilities)
    assert [messages[i][2].data for i in (1, 3)] == [0.75, 0.25]
    failure = messages[4][2]
    assert stamp_ns(failure.header.stamp) == second
    assert (list(failure.cameras), failure.task) == (['/wrist/image_raw'], 'stäck the cup')
    assert (failure.reason, failure.rule) == (FailureEvent.REASON_FALL, FailureEvent.RULE_WORD)
    assert (failure.reward, failure.previous_reward, failure.probability) == (0.25, 0.75, 0.5)
    assert (failure.confirmations, failure.sequence) == (2, 1)


def test_what_is_unknown_is_not_made_up(tmp_path):
    """NaN where nobody knows; a malformed reply gives no message; an unbounded reward says so."""
    frames = [frame(0, None, malformed='no number', window_ns=()), frame(1, -3.5, window_ns=()),
              frame(2, 2.5, reason=Reason.NONE)]
    events = [event(1, rule=Rule.REWARD_DROP, previous_reward=None, probability=None), event(2)]
    write_mcap([scored(frames, events)], tmp_path, 'head', bounded=False)
    messages = read(tmp_path / 'run.mcap')
    assert [topic for topic, _, _ in messages] == 2 * ['/reward', '/reward/value', '/failure_event']
    rewards = [message for topic, _, message in messages if topic == '/reward']
    assert [(reward.reward, reward.bounded, reward.reason) for reward in rewards] == [
        (-3.5, False, 1), (2.5, False, 0)]
    assert [stamp_ns(time) for time in rewards[0].frame_stamps] == [0, 0, START_NS + STEP_NS]
    failures = [message for topic, _, message in messages if topic == '/failure_event']
    assert [failure.sequence for failure in failures] == [1, 2]
    assert math.isnan(failures[0].previous_reward) and math.isnan(failures[0].probability)
    assert failures[0].rule == FailureEvent.RULE_REWARD_DROP


def test_an_event_without_its_frame_is_told(tmp_path):
    """It would be lost in silence; frames of equal stamps, after a jump of the clock, keep their own."""
    with pytest.raises(RecordingError, match=f'run: the event at {event(3).stamp_ns} ns is of no frame'):
        write_mcap([scored([frame(2, 0.5)], [event(3)])], tmp_path)
    assert os.listdir(tmp_path) == []
    again = frame(2, 0.25, log_ns=START_NS + 10**10)
    write_mcap([scored([frame(2, 0.5), frame(3, 0.5), again], [event(3), event(2)])], tmp_path)
    assert [log_ns for topic, log_ns, _ in read(tmp_path / 'run.mcap') if topic == '/failure_event'] == [
        frame(3, 0.5).log_ns, START_NS + 10**10]


def test_without_a_log_time_the_stamps_are_the_clock(tmp_path):
    """A video counts from its first frame, and has no topic to name."""
    frames = [ScoredFrame(i, i * STEP_NS, i / 5, 0, 0.5, Reason.CORRECT) for i in (0, 1)]
    write_mcap([scored(frames, camera='')], tmp_path)
    assert [(log_ns, message.camera) for topic, log_ns, message in read(tmp_path / 'run.mcap')
            if topic == '/reward'] == [(0, 'run'), (STEP_NS, 'run')]


def test_the_scores_of_a_bag_lie_beside_its_images(tmp_path):
    """Each reward has the log time of the image that it is about, to the nanosecond."""
    bag = make_bag(tmp_path / 'bag', [picture(i) for i in range(6)], delay_ns=31_234_567)
    episode, = open_episodes(bag, 'stack')
    frames = [ScoredFrame(i, seen.stamp_ns, i / 10, 0, 0.5, log_ns=seen.received_ns)
              for i, seen in enumerate(episode.frames())]
    write_mcap([replace(scored(frames), name=episode.name)], tmp_path / 'mcap')
    with Reader(bag) as reader:
        images = [log_ns for _, log_ns, _ in reader.messages()]
    rewards = read(tmp_path / 'mcap' / f'{episode.name}.mcap')
    assert [log_ns for topic, log_ns, _ in rewards if topic == '/reward'] == images
    assert images[0] == START_NS + 31_234_567


def test_the_file_explains_itself(tmp_path, repository):
    """A reader that knows none of our types finds their definitions, and ROS the hashes of its own."""
    write_mcap([scored([frame(2, 0.5)], [event(2)])], tmp_path)
    installed = [place for place in share.places('msg') if (place / 'RewardStamped.json').exists()]
    with Reader(tmp_path / 'run.mcap') as reader:
        assert {connection.topic: connection.msgtype for connection in reader.connections} == TOPICS
        for connection in reader.connections:
            types = get_typestore(Stores.EMPTY)
            types.register(get_types_from_msg(connection.msgdef.data, connection.msgtype))
            name = connection.msgtype.rsplit('/', 1)[1]
            if name != 'Float64' and installed:  # Humble hashes no types
                hashes = json.loads((installed[0] / f'{name}.json').read_text())['type_hashes']
                ours = next(entry for entry in hashes if entry['type_name'] == connection.msgtype)
                assert types.hash_rihs01(connection.msgtype) == ours['hash_string']
            for _, _, data in reader.messages([connection]):
                message = types.deserialize_cdr(data, connection.msgtype)
                value = message.data if name == 'Float64' else message.reward
                assert value == (0.25 if name == 'FailureEvent' else 0.5)


def test_each_file_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    """A failure leaves the file of an earlier run, and nothing half-written."""
    write_mcap([scored([frame(2, 0.5)])], tmp_path)
    before = (tmp_path / 'run.mcap').read_bytes()
    reward, calls = mcap._reward, []

    def fail_at_the_third(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise OSError('no space left')
        return reward(*arguments)

    monkeypatch.setattr(mcap, '_reward', fail_at_the_third)
    with pytest.raises(OSError, match='no space left'):
        write_mcap([scored([frame(i, 0.5) for i in range(9)])], tmp_path)
    assert (tmp_path / 'run.mcap').read_bytes() == before
    assert os.listdir(tmp_path) == ['run.mcap']


def test_an_episode_without_scores_gives_an_empty_file(tmp_path):
    """Which opens, and has the topics."""
    write_mcap([scored([])], tmp_path)
    with Reader(tmp_path / 'run.mcap') as reader:
        assert (reader.message_count, len(reader.connections)) == (0, 3)


def test_a_package_without_its_definitions_is_told(monkeypatch, tmp_path):
    """Instead of a traceback of a file that is missing."""
    monkeypatch.setattr(mcap, 'places', lambda name: [tmp_path / name])
    with pytest.raises(RecordingError, match='definitions are not there .* install the package again'):
        mcap.definitions()


def test_the_numbers_are_those_of_float32_at_most(tmp_path):
    """RewardStamped holds float32; the plain value keeps every digit."""
    write_mcap([scored([frame(2, 0.1)])], tmp_path)
    (_, _, reward), (_, _, value) = read(tmp_path / 'run.mcap')
    assert reward.reward == float(np.float32(0.1)) and value.data == 0.1
