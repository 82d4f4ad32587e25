"""The installed executable with the demo checkpoint: real processes, real frames, real verdicts."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from std_msgs.msg import Float64, String

from densereward_ros.models.base import ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.msg import EpisodeState, FailureEvent, RewardStamped
from densereward_ros.ros.messages import stamp_ns
from densereward_ros.ros.publications import LATCHED_QOS
from densereward_ros.tabletop.episode import LiveTable
from densereward_ros.types import Frame, Reason, Window
from ros_bench import NS_PER_S, TOPIC, Client, FakeCamera, NodeProcess, wait_for

pytestmark = pytest.mark.slow

NAME = 'reward_node'


# With the demo checkpoint; it comes up active and without a task.
ARGUMENTS = ('--ros-args', '-p', 'model:=tabletop', '-p', 'autostart:=true', '-p', 'device:=cpu')
UP = 'active, but idle'


@pytest.fixture(scope='module')
def node(executable) -> Iterator[NodeProcess]:
    """The reward node, for all tests but the one that ends it."""
    process = NodeProcess([executable, *ARGUMENTS])
    process.wait_for_line(UP)
    yield process
    process.close()


class Table:
    """The demo world before the node's camera, in real time, and what the node made of it."""

    def __init__(self, client: Client, seed: int, *mishaps: Reason) -> None:
        self.table = LiveTable(seed, mishaps)
        self.pictures: dict[int, np.ndarray] = {}
        self.rewards = client.listen(RewardStamped, '/reward', 1000)
        self.values = client.listen(Float64, '/reward/value', 1000)
        self.events = client.listen(FailureEvent, '/failure_event')
        self.camera = FakeCamera(client, TOPIC, 'table_camera')
        client.speak(String, f'/{NAME}/task').publish(String(data=self.table.task))
        states = client.listen(EpisodeState, f'/{NAME}/episode_state', LATCHED_QOS)
        wait_for(lambda: states and states[-1].task == self.table.task)

    def film(self, until, timeout_s: float = 40.0) -> None:
        """Ten pictures a second until the condition holds."""
        due = time.monotonic()
        deadline = due + timeout_s
        while not until():
            assert time.monotonic() < deadline, f'{len(self.rewards)} rewards'
            self.table.step()
            now_ns = time.time_ns()
            self.pictures[now_ns] = self.table.render()
            self.camera.send(now_ns, self.pictures[now_ns])
            due += 0.1
            time.sleep(max(0.0, due - time.monotonic()))


def test_rewards_are_those_of_the_model_on_the_same_frames(node, client):
    """Each /reward is what the model says, called directly, about the pictures with these stamps."""
    at = Table(client, 3)
    at.film(lambda: len(at.rewards) >= 12)
    model = open_model(ModelOptions(model='tabletop', device='cpu', engine='reference'))
    for reward in at.rewards:
        stamps = [stamp_ns(stamp) for stamp in reward.frame_stamps]
        frames = tuple(Frame(ns, ns, lambda ns=ns: at.pictures[ns]) for ns in stamps)
        verdict, = model.score([Window(TOPIC, at.table.task, frames)])
        assert reward.reward == pytest.approx(verdict.reward, abs=1e-6)
        assert reward.reason == verdict.reason
        assert stamp_ns(reward.header.stamp) == stamps[-1]
        assert (np.diff(stamps) > 0.17 * NS_PER_S).all()
        assert (reward.header.frame_id, reward.camera) == ('table_camera', TOPIC)
        assert (reward.task, reward.model, reward.bounded) == (at.table.task, 'tabletop', True)
        assert reward.inference_time.sec + reward.inference_time.nanosec > 0
    model.close()
    newest = [stamp_ns(reward.header.stamp) for reward in at.rewards]
    assert newest == sorted(set(newest))
    time.sleep(0.2)
    assert [value.data for value in at.values] == pytest.approx([reward.reward for reward in at.rewards])


def test_the_reward_climbs_and_a_failing_robot_is_an_event(node, client):
    """The main job: progress is seen, and a failure of the robot becomes an event that names it."""
    at = Table(client, 11, Reason.MISS, Reason.FALL, Reason.MISS, Reason.FALL)
    at.film(lambda: at.events, 60.0)
    event = at.events[0]
    assert Reason(event.reason).is_failure
    assert (event.rule, list(event.cameras), event.task) == (FailureEvent.RULE_WORD, [TOPIC], at.table.task)
    assert event.confirmations == 2
    assert stamp_ns(event.header.stamp) in at.pictures
    wait_for(lambda: any(reward.header == event.header for reward in at.rewards))
    confirming, = [reward for reward in at.rewards if reward.header == event.header]
    assert (confirming.reason, confirming.reward) == (event.reason, event.reward)
    onset_ns = stamp_ns(event.header.stamp)
    before = [reward.reward for reward in at.rewards if stamp_ns(reward.header.stamp) < onset_ns]
    assert max(before) > before[0] + 0.1
    late = client.listen(EpisodeState, f'/{NAME}/episode_state', LATCHED_QOS)
    wait_for(lambda: late)
    assert late[0].state in (EpisodeState.STATE_FAILING, EpisodeState.STATE_RUNNING)
    assert late[0].task == at.table.task


def test_a_camera_that_stops_stops_the_rewards_and_shows(node, client):
    """Within max_frame_age, and the diagnostics say ERROR and which topic."""
    at = Table(client, 5)
    diagnostics = client.listen(DiagnosticArray, '/diagnostics')
    at.film(lambda: len(at.rewards) >= 3)
    stopped = time.monotonic()
    name = f'{NAME}: camera {TOPIC}'
    del diagnostics[:]

    def complaints() -> list[str]:
        return [
            status.message for array in diagnostics for status in array.status
            if status.name == name and status.level == DiagnosticStatus.ERROR]

    assert wait_for(complaints, 5.0)[0].startswith(f'no reward: the last image on {TOPIC} came')
    time.sleep(max(0.0, stopped + 2.0 - time.monotonic()))
    seen = len(at.rewards)
    time.sleep(0.5)
    assert len(at.rewards) == seen


def test_ctrl_c_while_active_ends_the_real_process(executable, client, node, processes):
    """With torch's threads and a model in memory; exit code 0 within two seconds. Ends the module's node."""
    if node.process.poll() is not None:  # the test runs a second time
        node = processes([executable, *ARGUMENTS])
        node.wait_for_line(UP)
    at = Table(client, 7)
    at.film(lambda: len(at.rewards) >= 3)
    code, seconds = node.signal()
    assert (code, seconds < 2.0) == (0, True), (code, seconds, node.lines[-5:])
    assert not [line for line in node.lines if 'Traceback' in line]


@pytest.mark.parametrize('line', ['importing torch and transformers', 'loading tabletop'])
def test_ctrl_c_while_importing_and_loading(executable, processes, line):
    """The seconds in which Python itself is busy; exit code 0 within two seconds."""
    node = processes([executable, '--ros-args', '-p', 'model:=tabletop', '-p', 'autostart:=true'])
    node.wait_for_line(line)
    time.sleep(0.05)
    code, seconds = node.signal(signal.SIGINT)
    assert (code, seconds < 2.0) == (0, True), (code, seconds, node.lines)
    assert not [line for line in node.lines if 'Traceback' in line]


def test_a_wrong_model_path_leaves_the_node_unconfigured(executable, processes, client, tmp_path):
    """One clear line in the log and in the diagnostics."""
    wrong, name = tmp_path / 'typo', f'{NAME}_typo'
    node = processes([
        executable, '--ros-args', '-r', f'__node:={name}', '-p', f'model:={wrong}', '-p', 'autostart:=true'])
    line = node.wait_for_line('on_configure failed')
    assert str(wrong) in line
    assert 'no such folder' in line
    assert client.state(name) == 'unconfigured'
    diagnostics = client.listen(DiagnosticArray, '/diagnostics')
    wait_for(lambda: any(
        status.name == name and status.level == DiagnosticStatus.ERROR and str(wrong) in status.message
        for array in diagnostics for status in array.status))
    assert not [text for text in node.lines if 'Traceback' in text]
    assert node.signal()[0] == 0
