"""The nodes under test, in this process or in processes of their own, and a client to talk to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import rclpy
from ament_index_python.packages import get_package_prefix
from rclpy.context import Context
from rclpy.signals import SignalHandlerOptions

from ros_bench import Client, NodeHere, NodeProcess, ScriptedModel


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Between processes, over DDS and in time, much depends on what else the machine does.

    A failure counts when it happens twice; the summary says what was run again.
    """
    for item in items:
        if Path(__file__).parent in item.path.parents and {'client', 'processes'} & set(item.fixturenames):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope='session')
def context() -> Iterator[Context]:
    """A ROS context of the tests' own."""
    context = Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    yield context
    context.try_shutdown()


@pytest.fixture(scope='session')
def shared_client(context: Context) -> Iterator[Client]:
    """The node behind `client`."""
    client = Client(context, 'test_client')
    yield client
    client.close()


@pytest.fixture
def client(shared_client: Client) -> Iterator[Client]:
    """A node that talks to the nodes under test; its topics end with the test."""
    yield shared_client
    shared_client.forget()


@pytest.fixture
def log(capfd: pytest.CaptureFixture) -> Callable[..., list[str]]:
    """What the reward node here has logged so far at one severity: the texts, each of one or more lines.

    Not for polling: what is logged at the very moment of reading gets lost. That the stamps of the tests'
    images are of no time of this age is said of nearly all of them, and left out unless `clocks` is true.
    """
    text = []

    def read(severity: str, clocks: bool = False) -> list[str]:
        text.append(capfd.readouterr().err)
        entries = re.split(r'^\[(\w+)\] \[[\d.]+\] \[([\w.]+)\]: ', ''.join(text), flags=re.MULTILINE)[1:]
        return [
            line.strip() for kind, logger, line in zip(entries[::3], entries[1::3], entries[2::3])
            if (kind, logger) == (severity, 'reward_node') and (clocks or "the camera's clock" not in line)]

    return read


@pytest.fixture(scope='session')
def executable() -> Path:
    """The reward node as it was installed."""
    return Path(get_package_prefix('densereward_ros')) / 'lib' / 'densereward_ros' / 'reward_node'


@pytest.fixture
def processes() -> Iterator[Callable[..., NodeProcess]]:
    """Starts processes, and ends them with the test."""
    started: list[NodeProcess] = []

    def start(command: Sequence[str | Path], **environment: str) -> NodeProcess:
        started.append(NodeProcess(command, **environment))
        return started[-1]

    yield start
    for process in started:
        process.close()


@pytest.fixture
def start_node(context: Context, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., NodeHere]]:
    """Starts the node here; `model` is a ScriptedModel, or a function of options and progress."""
    from densereward_ros.ros import reward_node

    started: list[NodeHere] = []

    def start(model: ScriptedModel | Callable[..., ScriptedModel] | None = None, /, **parameters) -> NodeHere:
        model = model or ScriptedModel()
        opened = (lambda *_: model) if isinstance(model, ScriptedModel) else model
        monkeypatch.setattr(reward_node, 'open_model', opened)
        started.append(NodeHere(context, **parameters))
        return started[-1]

    yield start
    for node in started:
        node.close()
