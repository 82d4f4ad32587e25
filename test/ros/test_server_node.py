"""Reward nodes that share a real server, through its death and return; and what a node says of a bad one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from completion_stub import CompletionStub
from densereward_ros.models.base import ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.msg import RewardStamped
from densereward_ros.ros.messages import stamp_ns
from densereward_ros.tabletop.episode import LiveTable
from densereward_ros.types import Frame, Window
from relay import Relay
from ros_bench import TASK, TOPIC, Client, FakeCamera, NodeProcess

pytestmark = pytest.mark.slow
ROBOTS = ('left', 'right')


class Scene:
    """A tabletop before the camera that all robots watch, ten pictures a second."""

    def __init__(self, client: Client) -> None:
        self.table = LiveTable(5)
        self.pictures: dict[int, np.ndarray] = {}
        self.diagnostics = client.listen(DiagnosticArray, '/diagnostics', 100)
        self.rewards = {
            robot: client.listen(RewardStamped, f'/{robot}/reward', 1000) for robot in ROBOTS}
        self.camera = FakeCamera(client, TOPIC)

    def film(self, until: Callable[[], object], timeout_s: float = 90.0) -> None:
        """Until the condition holds."""
        due = time.monotonic()
        deadline = due + timeout_s
        while not until():
            assert time.monotonic() < deadline, {robot: len(all_) for robot, all_ in self.rewards.items()}
            self.table.step()
            now_ns = time.time_ns()
            self.pictures[now_ns] = self.table.render()
            self.camera.send(now_ns, self.pictures[now_ns])
            due = max(due + 0.1, time.monotonic())
            time.sleep(due - time.monotonic() if due > time.monotonic() else 0.0)

    def status(self, robot: str) -> DiagnosticStatus | None:
        """What a robot's node has said last of itself."""
        name = f'{robot}/reward_node'
        found = [status for array in list(self.diagnostics) for status in array.status if status.name == name]
        return found[-1] if found else None

    def circuit(self, robot: str) -> tuple[bytes, str]:
        """Level and state of the circuit."""
        status = self.status(robot)
        values = {pair.key: pair.value for pair in status.values} if status else {}
        return (status.level, values['server circuit']) if 'server circuit' in values else (b'', '')


@pytest.fixture
def robots(executable, processes) -> Callable[..., list[NodeProcess]]:
    """Starts a node for each robot, of its own namespace, on one camera."""
    def start(url: str, task: str, *names: str) -> list[NodeProcess]:
        parameters = {
            'engine': 'server', 'server_url': url, 'model': 'tabletop', 'image_topics': f'[{TOPIC}]',
            'task': task, 'rate': '2.0', 'server_timeout': '1.5', 'autostart': 'true'}
        given = [word for name, value in parameters.items() for word in ('-p', f'{name}:={value}')]
        return [processes([executable, '--ros-args', '-r', f'__ns:=/{name}', *given]) for name in names]

    return start


@pytest.fixture
def relay(demo_server) -> Iterator[Relay]:
    """A way to the real server."""
    way = Relay(demo_server.port)
    yield way
    way.cut()


@pytest.mark.timeout(300)
def test_two_robots_share_a_server_that_dies_and_comes_back(relay, client, robots):
    """Rewards are the local model's, none is made up meanwhile, no node blocks, and both recover alone."""
    task = LiveTable(5).task
    nodes = robots(relay.url, task, *ROBOTS)
    for node in nodes:
        node.wait_for_line(f'active: task "{task}"')
    scene = Scene(client)
    scene.film(lambda: all(len(rewards) >= 4 for rewards in scene.rewards.values()))
    assert [scene.circuit(robot)[1] for robot in ROBOTS] == ['closed'] * 2

    relay.cut()
    scene.film(lambda: all(
        scene.circuit(robot) == (DiagnosticStatus.ERROR, 'open') for robot in ROBOTS))
    for robot in ROBOTS:
        assert scene.status(robot).message.startswith(f'no reward: {relay.url} cannot be reached')
    before = {robot: len(rewards) for robot, rewards in scene.rewards.items()}
    started = time.monotonic()
    assert client.state('left/reward_node') == 'active'
    assert time.monotonic() - started < 2.0
    scene.film(lambda: time.monotonic() > started + 1.0)
    assert {robot: len(rewards) for robot, rewards in scene.rewards.items()} == before

    relay.mend()
    scene.film(lambda: all(len(scene.rewards[robot]) >= before[robot] + 3 for robot in ROBOTS))
    scene.film(lambda: all(
        scene.circuit(robot) == (DiagnosticStatus.OK, 'closed') for robot in ROBOTS), 20.0)
    model = open_model(ModelOptions(model='tabletop', device='cpu', dtype='float32'))
    for robot in ROBOTS:
        for reward in scene.rewards[robot]:
            frames = tuple(
                Frame(ns, ns, lambda ns=ns: scene.pictures[ns]) for ns in map(stamp_ns, reward.frame_stamps))
            verdict, = model.score([Window(TOPIC, task, frames)])
            assert (reward.reason, reward.model) == (verdict.reason, 'tabletop')
            assert reward.reward == pytest.approx(verdict.reward, abs=1e-6)
    model.close()
    for node in nodes:
        assert node.signal()[0] == 0
        assert not [line for line in node.lines if 'Traceback' in line or 'importing torch' in line]


@pytest.fixture
def stub() -> Iterator[CompletionStub]:
    """A server that says what a test wants."""
    server = CompletionStub()
    server.models = ['tabletop']
    yield server
    server.close()


def test_a_node_ends_and_deactivates_at_once_while_its_server_hangs(stub, client, robots):
    """A request that would take a minute holds up neither a transition nor Ctrl-C."""
    stub.answer = lambda exchange: exchange.hang()
    node, = robots(stub.url, TASK, 'left')
    node.wait_for_line('active: task')
    camera = FakeCamera(client, TOPIC)
    for _ in range(2):
        asked = len(stub.scored)
        while len(stub.scored) == asked:
            camera.send(time.time_ns())
            time.sleep(0.1)
        started = time.monotonic()
        assert client.transition('deactivate', 'left/reward_node')
        assert time.monotonic() - started < 1.5
        assert client.transition('activate', 'left/reward_node')
    code, seconds = node.signal()
    assert (code, seconds < 2.0) == (0, True), (code, seconds)


def test_a_wrong_key_leaves_the_node_unconfigured_with_one_line(stub, robots):
    """What waiting cannot mend is told at configure."""
    stub.warm_up = lambda exchange: exchange.error(401, 'Unauthorized')
    node, = robots(stub.url, TASK, 'left')
    line = node.wait_for_line('on_configure failed')
    assert f'{stub.url} answered 401 (it wants a key; ' in line
    assert not [line for line in node.lines if 'Traceback' in line]
