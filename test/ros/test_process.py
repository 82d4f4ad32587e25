"""The process around the node: signals in every state, exit codes, and that the node says goodbye.

The model is scripted here, so that a process starts in a second; test_reward_node.py starts the real one.
"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from lifecycle_msgs.srv import GetState

from densereward_ros.msg import FailureEvent, RewardStamped
from ros_bench import NS_PER_S, TASK, FakeCamera, wait_for

pytestmark = pytest.mark.slow

NUMBERS = itertools.count()
WAY_TO = {
    'unconfigured': [],
    'inactive': ['configure'],
    'active': ['configure', 'activate'],
    'finalized': ['configure', 'shutdown'],
}


@pytest.fixture
def start(processes, request):
    """Starts the node's main() in a process of its own.

    Each has its own node name: one that was killed stays in the graph, as a ghost, until its lease ends.
    """
    program = request.path.with_name('scripted_node.py')

    def start(*arguments, name='', **script):
        name = name or f'reward_node_{next(NUMBERS)}'
        process = processes([
            sys.executable, program, json.dumps(script), '--ros-args', '-r', f'__node:={name}', *arguments])
        process.name = name
        return process

    return start


@pytest.mark.parametrize('state', WAY_TO)
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_node_in_every_state(start, client, state, number):
    """Exit code 0 within two seconds, no traceback, and no ghost in the graph until a lease ends."""
    node = start()
    for transition in WAY_TO[state]:
        assert client.transition(transition, node.name)
    assert client.state(node.name) == state
    code, seconds = node.signal(number)
    assert (code, seconds < 2.0) == (0, True), (code, seconds, node.lines)
    assert not [line for line in node.lines if 'Traceback' in line or 'ERROR' in line]
    wait_for(lambda: node.name not in client.node.get_node_names(), 5.0, 'the node to leave the graph')


@pytest.mark.parametrize('busy', [False, True], ids=['waiting', 'computing'])
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_model_loads(start, number, busy):
    """Nothing can be freed then, but the process must go: `ros2 launch` would kill it after ten seconds."""
    node = start('-p', 'autostart:=true', load_s=60.0, busy=busy)
    node.wait_for_line('loading')
    time.sleep(0.2)
    code, seconds = node.signal(number)
    assert (code, seconds < 2.0) == (0, True), (code, seconds, node.lines)
    assert not [line for line in node.lines if 'Traceback' in line]


def test_a_signal_while_the_heavy_packages_are_imported(start):
    """Before there is a node at all."""
    node = start(import_s=60.0)
    node.wait_for_line('importing torch and transformers')
    code, seconds = node.signal()
    assert (code, seconds < 2.0) == (0, True), (code, seconds, node.lines)


def test_two_signals_are_as_good_as_one(start, client):
    """A terminal's Ctrl-C reaches the node itself, and `ros2 launch` sends it a second one."""
    node = start('-p', 'autostart:=true')
    wait_for(lambda: client.state(node.name) == 'active')
    node.process.send_signal(signal.SIGINT)
    code, seconds = node.signal(signal.SIGINT)
    assert (code, seconds < 2.0) == (0, True), (code, seconds, node.lines)


def test_a_killed_node_can_be_started_again(start, client):
    """kill -9 leaves nothing that a new one would stumble over."""
    first = start('-p', 'autostart:=true')
    wait_for(lambda: client.state(first.name) == 'active')
    assert first.signal(signal.SIGKILL)[0] == -signal.SIGKILL
    second = start('-p', 'autostart:=true', name=first.name)
    second.wait_for_line('active')
    wait_for(lambda: _state(client, second.name) == 'active')
    assert second.signal()[0] == 0


def test_controllers_and_cameras_notice_nothing_of_a_respawn_but_the_gap(start, client):
    """kill -9 and a new process: the same camera is seen and the same subscriptions hear it, from 1 again."""
    first = start('-p', 'autostart:=true', '-p', f'task:={TASK}', '-p', 'frame_interval:=0.0', '-p',
                  'confirmations:=1', '-p', 'cooldown:=0.0', verdicts=[(0.25, 2, None), (0.75, 1, None)])
    events, rewards = client.listen(FailureEvent, '/failure_event'), client.listen(RewardStamped, '/reward')
    camera = FakeCamera(client)
    seconds = itertools.count(1)

    def film() -> None:
        second = next(seconds)
        picture = np.full((4, 6, 3), second // 5 % 2, np.uint8)
        camera.send(second * NS_PER_S // 5, picture)
        time.sleep(0.02)

    wait_for(lambda: film() or (len(events) >= 2 and rewards), 30.0)
    assert first.signal(signal.SIGKILL)[0] == -signal.SIGKILL
    for _ in range(10):
        film()
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    del events[:], rewards[:]
    start('-p', 'autostart:=true', '-p', f'task:={TASK}', '-p', 'frame_interval:=0.0', '-p',
          'confirmations:=1', '-p', 'cooldown:=0.0', name=first.name,
          verdicts=[(0.25, 2, None), (0.75, 1, None)])
    wait_for(lambda: film() or (len(events) >= 2 and rewards), 30.0)
    assert events[0].sequence == 1
    assert {reward.reason for reward in rewards} <= {1, 2}


def _state(client, name: str) -> str:
    """The state, or '' when the question went to the node that was killed."""
    answer = client.call_async(GetState, f'/{name}/get_state', GetState.Request())
    deadline = time.monotonic() + 2.0
    while not answer.done() and time.monotonic() < deadline:
        time.sleep(0.01)
    return answer.result().current_state.label if answer.done() else ''


@pytest.mark.parametrize(('arguments', 'words'), [
    (['-p', 'rate:=.nan'], 'parameter rate is nan, allowed: 0.1 to 100.0'),
    (['-p', 'image_topics:=[]'], 'parameter image_topics is empty, allowed: a list of at least one text'),
    (['-p', 'task:=on'], 'parameter task is True, allowed: a text; put it in quotes'),
    (['-p', 'confirmations:=0'], 'parameter confirmations is 0, allowed: a whole number, 1 to 100'),
    (['--params-file', '/no/such/file.yaml'], '/no/such/file.yaml'),
    (['-r', '__node:=9lives'], "'-r __node:=9lives'"),
])
def test_a_wrong_start_value_is_one_line_and_exit_code_1(start, arguments, words):
    """As YAML and the command line really deliver it: no traceback, and the value is named."""
    node = start(*arguments)
    assert node.process.wait(30) == 1
    node.close()
    lines = [line for line in node.lines if not line.startswith('[')]
    assert len(lines) == 1, node.lines
    assert words in lines[0]


@pytest.mark.parametrize(('limit', 'more'), [('limit_arenas()', False), ('', True)])
def test_new_threads_share_the_memory_arenas_that_there_are(limit, more):
    """What threads that have ended freed is used again; without the limit each has its own."""
    code = (
        'import ctypes, os, tempfile, threading\n'
        'from densereward_ros.ros.process import limit_arenas\n'
        'libc = ctypes.CDLL(None)\n'
        'libc.fdopen.restype = ctypes.c_void_p\n'
        'def arenas():\n'
        '    with tempfile.TemporaryFile() as file:\n'
        '        told = ctypes.c_void_p(libc.fdopen(os.dup(file.fileno()), b"w"))\n'
        '        libc.malloc_info(0, told)\n'
        '        libc.fclose(told)\n'
        '        file.seek(0)\n'
        '        return file.read().count(b"<heap nr=")\n'
        'before = arenas()\n'
        f'{limit}\n'
        'together = threading.Barrier(16)\n'
        'def allocate():\n'
        '    kept = bytearray(100_000)\n'
        '    together.wait()\n'
        'threads = [threading.Thread(target=allocate) for _ in range(16)]\n'
        'for thread in threads: thread.start()\n'
        'for thread in threads: thread.join()\n'
        'print(before, arenas())\n')
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert (after > max(before, 2)) is more
