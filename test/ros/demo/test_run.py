"""The demo as a user starts it: what it refuses, what it shows, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from ament_index_python.packages import get_package_prefix
from PIL import Image

from clips import write_clip
from densereward_ros.ros.demo import run
from densereward_ros.ros.demo.processes import NAMESPACE
from ros_bench import wait_for

DEMO = Path(get_package_prefix('densereward_ros')) / 'lib' / 'densereward_ros' / 'demo'


def children_of(pid: int) -> dict[str, int]:
    """The demo's running child processes, by the name of their executable."""
    found = {}
    for entry in Path('/proc').iterdir():
        try:
            parent = int((entry / 'stat').read_text().rsplit(')', 1)[1].split()[1])
            command = (entry / 'cmdline').read_text().split('\0')
        except (OSError, ValueError, IndexError):
            continue
        if parent == pid and f'__ns:={NAMESPACE}' in command:
            found[Path(command[1]).name] = int(entry.name)
    return found


def all_three(pid: int) -> dict[str, int]:
    """The demo's children once all three are there; nothing before."""
    children = children_of(pid)
    return children if len(children) == 3 else {}


def is_alive(pid: int) -> bool:
    """True for a process that runs; a zombie does not."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False


@pytest.mark.parametrize('arguments, words', [
    (['--source', '/none.mp4', '--task', 'stack'], '/none.mp4: no such file or folder'),
    (['--source', __file__, '--task', 'stack'], 'not a video'),
    (['--source', 'CLIP'], 'a recording needs a task'),
    (['--source', 'CLIP', '--task', '  '], 'a recording needs a task'),
    (['--task', 'stack'], 'the simulated robot chooses its own'),
    (['--duration', '-1'], 'the duration is -1, allowed: 0 or more seconds'),
    (['--duration', 'nan'], 'the duration is nan, allowed: 0 or more seconds'),
    (['--output', '/proc/none'], '/proc/none: no folder can be made there'),
])
def test_refused(tmp_path, arguments, words):
    """Bad input is one line and exit code 1, before anything starts."""
    clip = str(write_clip(tmp_path / 'clip.mp4', 5, rate=10))
    output = [] if '--output' in arguments else ['--output', tmp_path / 'out']
    ended = subprocess.run(
        [DEMO, *(clip if part == 'CLIP' else part for part in arguments), *output],
        capture_output=True, text=True, timeout=30, cwd=tmp_path)
    assert ended.returncode == 1
    lines = ended.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith('demo: ') and words in lines[0]
    assert ended.stdout == '' and not (tmp_path / 'out' / 'camera_player.log').exists()


def test_private_domain(monkeypatch):
    """Without a domain of the user's it takes a free one; in every case it stays on this machine."""
    monkeypatch.setenv('ROS_STATIC_PEERS', '10.0.0.1')
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET')
    monkeypatch.delenv('ROS_DOMAIN_ID')
    run._private_domain()
    assert 1 <= int(os.environ['ROS_DOMAIN_ID']) <= 101
    assert os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'LOCALHOST'
    assert 'ROS_STATIC_PEERS' not in os.environ
    monkeypatch.setenv('ROS_DOMAIN_ID', '57')
    run._private_domain()
    assert os.environ['ROS_DOMAIN_ID'] == '57'


def test_a_used_domain_is_not_free(client):
    """The domain in which this very test has a node is recognised as taken."""
    assert not run._is_free(int(os.environ['ROS_DOMAIN_ID']))


def test_a_child_that_dies_ends_the_demo(processes, tmp_path):
    """The demo ends with the child's last lines and exit code 1, and takes the other children along."""
    run = processes([DEMO, '--output', tmp_path])
    children = wait_for(lambda: all_three(run.process.pid), 20)
    wait_for(lambda: 'waiting for' in (tmp_path / 'camera_player.log').read_text(), 20)
    os.kill(children['camera_player'], signal.SIGKILL)
    run.wait_for_line('demo: camera_player ended with exit code -9; its last lines:', 20)
    assert run.process.wait(10) == 1
    assert any('waiting for subscribers' in line for line in run.lines)
    assert not any(is_alive(pid) for pid in children.values())


def test_killed_demo_leaves_nothing(processes, tmp_path):
    """After kill -9 no child is left."""
    run = processes([DEMO, '--output', tmp_path])
    children = wait_for(lambda: all_three(run.process.pid), 20)
    run.process.kill()
    wait_for(lambda: not any(is_alive(pid) for pid in children.values()), 5, 'the end of every child')


def test_ctrl_c_at_the_start(processes, tmp_path):
    """Ctrl-C while the model loads ends the demo in two seconds; nothing was received, so it failed."""
    run = processes([DEMO, '--output', tmp_path])
    children = wait_for(lambda: all_three(run.process.pid), 20)
    time.sleep(1.0)
    code, took = run.signal()
    assert code == 1 and took < 2.5
    assert any('failed, nothing of this was received: reward, failure event' in line for line in run.lines)
    assert not any(is_alive(pid) for pid in children.values())


@pytest.mark.slow
def test_simulated_robot(tmp_path):
    """The whole demo: failures are noticed and recovered from, tasks get done, the picture is written."""
    ended = subprocess.run(
        [DEMO, '--duration', '25', '--output', tmp_path], capture_output=True, text=True, timeout=110)
    text = ended.stdout
    assert ended.returncode == 0, text + ended.stderr
    assert '\x1b' not in text
    figures = {name: int(count) for name, count in re.findall(
        r'^(rewards|failure events|recoveries|tasks done) +(\d+)', text, re.MULTILINE)}
    assert figures['rewards'] > 40 and figures['failure events'] >= 1
    assert figures['recoveries'] >= 1 and figures['tasks done'] >= 1
    order = [text.index(words) for words in ('/failure_event', 'recovery started', 'recovery done')]
    assert order == sorted(order)
    assert text.rindex('* task done') > order[-1]
    path = re.search(r'^picture +(.+)$', text, re.MULTILINE).group(1)
    with Image.open(path) as picture:
        assert picture.width == 1660


@pytest.mark.slow
def test_recording(tmp_path):
    """A recording is played to its end; the output says what the numbers are worth there."""
    clip = write_clip(tmp_path / 'clip.mp4', 40, rate=10)
    ended = subprocess.run(
        [DEMO, '--source', clip, '--task', 'on', '--output', tmp_path / 'out'],
        capture_output=True, text=True, timeout=110)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count('on a real recording its numbers mean nothing') == 2
    assert int(re.search(r'^rewards +(\d+)', ended.stdout, re.MULTILINE).group(1)) > 5
    assert int(re.search(r'(\d+) camera frames$', ended.stdout, re.MULTILINE).group(1)) == 40
    assert 'recoveries' not in ended.stdout
    assert (tmp_path / 'out' / 'timeline.png').exists()


@pytest.mark.slow
def test_ctrl_c_ends_an_endless_demo(processes, tmp_path):
    """Without a duration it runs until Ctrl-C, and ends in two seconds with the summary and the picture."""
    run = processes([DEMO, '--duration', '0', '--output', tmp_path])
    run.wait_for_line('recovery done', 100)
    children = children_of(run.process.pid)
    code, took = run.signal()
    assert code == 0 and took < 2.5
    assert any(line.startswith('recoveries ') for line in run.lines)
    assert any(line.startswith('picture ') for line in run.lines)
    assert not any(is_alive(pid) for pid in children.values())
