"""What every test stands on: the built package, a private ROS domain, videos and a random checkpoint."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from demo_server import DemoServer, missing_packages

HOW_TO_BUILD = (
    'densereward_ros.msg cannot be imported: {reason}. Run the suite with `make test`, or run `make build`, '
    'source scripts/environment.bash and start pytest in test/ (in the root of the repository Python finds '
    'the source folder first, and that has no messages).'
)

# Every run gets its own domain, so that two runs, or a robot on the same network, do not hear each other.
# Above 101 the ports of a domain lie among those that Linux gives to outgoing connections.
os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randrange(1, 102))
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
if os.environ.get('ROS_DISTRO') == 'humble':  # it knows only this one, and later ones warn about it
    os.environ['ROS_LOCALHOST_ONLY'] = '1'

# The tests' models are tiny: several threads for one only fight over the cores with the nodes under test.
os.environ.setdefault('OMP_NUM_THREADS', '1')

# How long an example takes says more of the machine than of the code.
hypothesis.settings.register_profile('suite', deadline=None)
hypothesis.settings.load_profile('suite')

# A script that runs the suite in the background has it started with Ctrl-C ignored, and every process
# that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure() -> None:
    """Stop before the first test when the built package is not the one that Python finds."""
    try:
        import densereward_ros.msg  # noqa: F401
    except ImportError as error:
        pytest.exit(HOW_TO_BUILD.format(reason=error), returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.fixture(scope='session')
def repository() -> Path:
    """The root of the source tree."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope='session')
def video_folder() -> Path:
    """The folder of real recordings; skips where DENSEREWARD_TEST_VIDEOS names none."""
    folder = os.environ.get('DENSEREWARD_TEST_VIDEOS', '')
    if not folder:
        pytest.skip('DENSEREWARD_TEST_VIDEOS is not set: it names a folder of real recordings')
    path = Path(folder)
    if not any(path.glob('*.mp4')):
        pytest.fail(f'DENSEREWARD_TEST_VIDEOS is {folder!r}, which holds no .mp4 files')
    return path


@pytest.fixture(scope='session')
def random_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny Qwen3-VL checkpoint of random weights."""
    from densereward_ros.tabletop.checkpoint import new_checkpoint

    folder = tmp_path_factory.mktemp('random_checkpoint')
    new_checkpoint(folder, seed=0)
    return folder


@pytest.fixture(scope='session')
def demo_server(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoServer]:
    """`transformers serve` with the demo checkpoint; skips where its extra packages are missing."""
    if missing := missing_packages():
        pytest.skip(f'{", ".join(missing)} not installed, which `transformers serve` needs')
    server = DemoServer(repository / 'models' / 'tabletop', tmp_path_factory.mktemp('demo_server'))
    try:
        server.launch()
        server.ready()
        yield server
    finally:
        server.kill()
