"""The reward model on a real server, `transformers serve`, beside the local one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from densereward_ros.models.base import ModelError, ModelOptions
from densereward_ros.models.circuit import State
from densereward_ros.models.opening import open_model
from densereward_ros.tabletop.evaluation import held_out_episode, windows
from densereward_ros.types import Verdict, Window

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
EPISODES = (1, 3, 4, 6, 7)
WHERE = slice(8, 18, 2)  # their failures: miss, collision, fall, smooth, failure


@pytest.fixture(scope='module')
def watched() -> list[Window]:
    """Windows of five episodes that training never saw."""
    return [window for number in EPISODES for _, window in windows(held_out_episode(number))[WHERE]]


@pytest.fixture(scope='module')
def local(watched) -> list[tuple]:
    """Reason and reward of each, by the model card's own procedure in this process."""
    model = open_model(ModelOptions(model='tabletop', engine='reference', device='cpu', dtype='float32'))
    try:
        return [(verdict.reason, verdict.reward) for verdict in model.score(watched)]
    finally:
        model.close()


@pytest.fixture
def remote(demo_server) -> Iterator[Callable[..., object]]:
    """Opens models on the real server, and closes them."""
    models = []

    def start(**options):
        values = {'model': 'tabletop', 'server_timeout': 60.0, **options}
        models.append(open_model(ModelOptions(engine='server', server_url=demo_server.url, **values)))
        return models[-1]

    yield start
    for model in models:
        model.close()


def told(verdicts: list) -> list[tuple]:
    """Reason and reward of each."""
    assert all(isinstance(verdict, Verdict) for verdict in verdicts)
    return [(verdict.reason, verdict.reward) for verdict in verdicts]


def test_every_verdict_equals_the_local_one(remote, watched, local):
    """Pictures as PNG, float32 on both sides; several words and many rewards are among them."""
    assert len({reason for reason, _ in local}) >= 5 and len({reward for _, reward in local}) >= 10
    model = remote()
    assert [told(model.score([window]))[0] for window in watched] == local


def test_two_models_with_several_windows_at_once_get_their_own(remote, watched, local):
    """As two robots with three cameras each: nobody gets another's verdict."""
    found: dict[int, list] = {}

    def ask(number: int, model) -> None:
        chosen = watched[number::2][:9]
        found[number] = told(sum((model.score(chosen[start:start + 3]) for start in (0, 3, 6)), []))

    threads = [threading.Thread(target=ask, args=(number, remote())) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: local[number::2][:9] for number in range(2)}


def test_jpeg_is_near(remote, watched, local):
    """Not equal: docs/serving.md says how near, over some hundred windows."""
    verdicts = remote(image_format='jpeg', jpeg_quality=95).score(watched[:8])
    assert all(
        abs(verdict.reward - reward) < 0.2 for verdict, (_, reward) in zip(verdicts, local) if verdict.reward)


def test_a_server_that_is_killed_and_started_again_is_used_again(remote, demo_server, watched, local):
    """In mid-run, with kill -9: no verdict while it is gone, and afterwards those of the local model."""
    model = remote(server_timeout=2.0)
    assert told(model.score(watched[:2])) == local[:2]
    demo_server.kill()
    for _ in range(4):
        with pytest.raises(ModelError):
            model.score(watched[2:4])
    assert model.circuit.state is not State.CLOSED
    demo_server.launch()
    demo_server.ready()
    deadline = time.monotonic() + 60.0
    while True:
        try:
            verdicts = model.score(watched[2:4])
            break
        except ModelError:
            assert time.monotonic() < deadline, demo_server.log()
            time.sleep(0.2)
    assert told(verdicts) == local[2:4]
    assert model.circuit.state is State.CLOSED
