"""The README's examples do what they say."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest
import rclpy
import yaml
from rclpy.duration import Duration
from rclpy.qos import QoSProfile

from densereward_ros.msg import FailureEvent, RewardStamped
from densereward_ros.ros.recovery_node import PARAMETERS

STAND_INS = Path(__file__).parent
REACTING = 'docs/reacting.md'


def code_blocks(repository: Path, language: str, file: str = 'README.md') -> list[str]:
    """The code blocks of a language in a file."""
    return re.findall(rf'```{language}\n(.*?)```', (repository / file).read_text(), re.DOTALL)


def python_block(repository: Path, word: str) -> str:
    """The one Python block of the README that has a word in it."""
    block, = [block for block in code_blocks(repository, 'python') if word in block]
    return block


@contextmanager
def running_beside(source: str, folder: Path, kind: type, topic: str, offered: QoSProfile | int = 10):
    """Run an example; yields a publisher that it hears, and what ends it and returns its output."""
    script = folder / 'example.py'
    script.write_text(source)
    process = subprocess.Popen(
        [sys.executable, str(script)], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True,
        cwd=folder)
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('readme_publisher', context=context)

    def stop() -> str:
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=10)[0]

    try:
        publisher = node.create_publisher(kind, topic, offered)
        deadline = time.monotonic() + 30
        while publisher.get_subscription_count() == 0:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        yield publisher, stop
    finally:
        process.kill()
        node.destroy_node()
        rclpy.shutdown(context=context)


def test_the_python_example_hears_a_failure(repository, tmp_path):
    """The example, run as it stands, logs the reason and the reward of an event that is published."""
    example = python_block(repository, 'RecoverOnFailure')
    with running_beside(example, tmp_path, FailureEvent, 'failure_event') as (publisher, stop):
        publisher.publish(FailureEvent(reason=FailureEvent.REASON_MISS, reward=0.25))
        publisher.wait_for_all_acked()
        time.sleep(0.5)
        output = stop()
    assert 'reason 2, reward 0.25: cancel, retract, retry' in output


def test_the_deadline_example_hears_the_silence(repository, tmp_path):
    """The example, run as it stands, says nothing while rewards come and calls out when they stop."""
    # What the node offers at its default rate of 5 Hz.
    offered = QoSProfile(depth=10, deadline=Duration(seconds=0.6))
    example = python_block(repository, 'deadline')
    with running_beside(example, tmp_path, RewardStamped, 'reward', offered) as (publisher, stop):
        for _ in range(10):
            publisher.publish(RewardStamped(reward=0.25))
            time.sleep(0.2)
        time.sleep(2.5)
        output = stop()
    heard = [line for line in output.splitlines() if 'reward 0.25' in line or 'no reward' in line]
    assert len(heard) >= 11, output
    assert all('reward 0.25' in line for line in heard[:10]), output
    assert all('no reward for a second: stop, or go on without a monitor' in line for line in heard[10:])


@pytest.mark.slow
@pytest.mark.parametrize(('file', 'number', 'count'), [
    ('README.md', 0, 1), (REACTING, 0, 2), (REACTING, 1, 2)], ids=['README', 'recovery', 'behavior tree'])
def test_the_cpp_examples_compile_against_the_message_headers(repository, tmp_path, file, number, count):
    """A field or constant that the messages do not have is an error here, as it would be for a user."""
    compiler = shutil.which('g++') or shutil.which('c++')
    assert compiler, 'no C++ compiler, which building the package needs too'
    blocks = code_blocks(repository, 'cpp', file)
    assert len(blocks) == count
    source = tmp_path / 'example.cpp'
    source.write_text(blocks[number])
    folders = [
        include
        for prefix in os.environ['AMENT_PREFIX_PATH'].split(':')
        for include in (Path(prefix) / 'include', *(Path(prefix) / 'include').glob('*'))
        if include.is_dir()
    ]
    # Last, so that an installed rclcpp wins.
    folders.append(STAND_INS)
    result = subprocess.run(
        [compiler, '-std=c++17', '-fsyntax-only', '-Wall', '-Wformat', '-Werror',
         *(f'-I{folder}' for folder in folders), str(source)],
        capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]


def test_the_tree_and_the_contract_can_be_read(repository):
    """Nobody here runs Nav2 or Rosetta; but the tree is XML with its budget, and the contract YAML."""
    tree, = code_blocks(repository, 'xml', REACTING)
    retried = ElementTree.fromstring(tree).find('.//RecoveryNode')
    assert retried.get('number_of_retries') == '3' and len(retried) == 2
    contract, = code_blocks(repository, 'yaml', REACTING)
    reward, = yaml.safe_load(contract)['rewards']
    assert (reward['key'], reward['topic'], reward['type']) == (
        'next.reward', '/reward/value', 'std_msgs/msg/Float64')


def test_the_documented_parameters_are_those_of_the_recovery_node(repository):
    """Names and defaults of the table."""
    rows = re.findall(r'^\| `(\w+)` \| `([^`]*)` \|', (repository / REACTING).read_text(), re.MULTILINE)
    assert dict(rows) == {
        spec.name: repr(spec.default) if spec.default == '' else str(spec.default) for spec in PARAMETERS}
