"""Another DDS implementation reads our messages: field by field what rclpy gets."""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from builtin_interfaces.msg import Time

from densereward_ros.msg import FailureEvent, RewardStamped
from densereward_ros.ros.messages import stamp_ns
from densereward_ros.types import Reason
from ros_bench import NS_PER_S, TOPIC, FakeCamera, wait_for

TASK = 'stelle die Tasse über den Löffel'
PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns="http://www.eprosima.com"><profiles>
  <participant profile_name="no_type_objects" is_default_profile="true"><rtps><propertiesPolicy><properties>
    <property><name>fastdds.type_propagation</name><value>disabled</value></property>
  </properties></propertiesPolicy></rtps></participant>
</profiles></dds>
"""
PROBABILITIES = (0.0625, 0.5, 0.25, 0.125, 0.0625, 0.0)


def plain(value: object) -> object:
    """A message as dictionaries, lists, texts and numbers, as JSON would have it."""
    if hasattr(value, 'get_fields_and_field_types'):
        return {name: plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def same(one: object, other: object) -> bool:
    """Equal, with NaN equal to itself and numbers as 32-bit floats."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or np.float32(one) == np.float32(other)
    return one == other


@pytest.fixture
def no_type_objects(tmp_path) -> dict[str, str]:
    """The environment of a node that does not describe its types on the network.

    Fast DDS 3.2 does so in a way that Cyclone DDS 11 finds invalid, for every type with an array or a
    sequence; Cyclone then ignores the topic. (ROS 2 over Cyclone does not look at these descriptions.)
    """
    profile = tmp_path / 'fastdds.xml'
    profile.write_text(PROFILE)
    return {'FASTDDS_DEFAULT_PROFILES_FILE': str(profile)}


def test_a_cyclone_dds_program_reads_rewards_and_events(client, processes, no_type_objects):
    """Two DDS stacks, hand-written types, texts beyond ASCII, NaN, and every field equal."""
    verdicts = [
        (0.75, Reason.CORRECT, None), (0.1, Reason.MISS, PROBABILITIES), (0.2, Reason.MISS, PROBABILITIES)]
    here = Path(__file__)
    processes([
        sys.executable, here.with_name('scripted_node.py'), json.dumps({'verdicts': verdicts}), '--ros-args',
        '-p', 'autostart:=true', '-p', 'frame_interval:=0.0', '-p', 'rate:=100.0', '-p', f'task:="{TASK}"'],
        **no_type_objects).wait_for_line('active: task')
    reader = processes([sys.executable, here.with_name('dds_reader.py'), os.environ['ROS_DOMAIN_ID'], '60'])
    reader.wait_for_line('listening')
    camera = FakeCamera(client, frame_id='Kamera/ü')
    rewards, events = client.listen(RewardStamped, '/reward'), client.listen(FailureEvent, '/failure_event')

    def read(topic: str) -> list[dict]:
        lines = [json.loads(line) for line in list(reader.lines) if line.startswith('[')]
        return [message for name, message in lines if name == topic]

    stamps_ns = itertools.count(100 * NS_PER_S + 1, NS_PER_S // 4)

    def film(verdict: int) -> None:
        camera.send(next(stamps_ns), np.full((4, 6, 3), verdict, np.uint8))
        time.sleep(0.1)

    deadline = time.monotonic() + 30.0
    while not read('reward') and time.monotonic() < deadline:  # until both programs know each other
        film(0)
    film(1)
    while not events and time.monotonic() < deadline:
        film(2)
    wait_for(lambda: read('failure_event'), what=f'an event in the other program: {reader.lines[-3:]}')
    ours = {stamp_ns(reward.header.stamp): plain(reward) for reward in rewards}
    theirs = read('reward')
    assert len(theirs) >= 3
    for message in theirs:
        assert same(message, ours[stamp_ns(Time(**message['header']['stamp']))]), message
    event, = read('failure_event')
    assert same(event, plain(events[0]))
    assert event['cameras'] == [TOPIC]
    assert (event['task'], event['reason'], event['sequence']) == (TASK, Reason.MISS, 1)
    assert event['probability'] == 0.5
    assert event['previous_reward'] == 0.75
    assert event['header']['frame_id'] == 'Kamera/ü'
