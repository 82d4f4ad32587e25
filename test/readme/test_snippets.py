"""The README's examples do what they say."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rclpy

from densereward_ros.msg import FailureEvent

STAND_INS = Path(__file__).parent


def code_block(repository: Path, language: str) -> str:
    """The one code block of a language in the README."""
    blocks = re.findall(rf'```{language}\n(.*?)```', (repository / 'README.md').read_text(), re.DOTALL)
    assert len(blocks) == 1
    return blocks[0]


def test_the_python_example_hears_a_failure(repository, tmp_path):
    """The example, run as it stands, logs the reason and the reward of an event that is published."""
    script = tmp_path / 'recover.py'
    script.write_text(code_block(repository, 'python'))
    process = subprocess.Popen(
        [sys.executable, str(script)], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True,
        cwd=tmp_path)
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('readme_publisher', context=context)
    try:
        publisher = node.create_publisher(FailureEvent, 'failure_event', 10)
        deadline = time.monotonic() + 30
        while publisher.get_subscription_count() == 0:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        publisher.publish(FailureEvent(reason=FailureEvent.REASON_MISS, reward=0.25))
        publisher.wait_for_all_acked()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=10)
    finally:
        process.kill()
        node.destroy_node()
        rclpy.shutdown(context=context)
    assert 'reason 2, reward 0.25: cancel, retract, retry' in output


@pytest.mark.slow
def test_the_cpp_example_compiles_against_the_message_headers(repository, tmp_path):
    """A field or constant that the messages do not have is an error here, as it would be for a user."""
    compiler = shutil.which('g++') or shutil.which('c++')
    assert compiler, 'no C++ compiler, which building the package needs too'
    source = tmp_path / 'recover.cpp'
    source.write_text(code_block(repository, 'cpp'))
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
