"""`densereward download` as a user runs it, against a hub on this machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from densereward_ros.models import checkpoint
from hub_stub import COMMIT, REPOSITORY, HubStub


@pytest.fixture
def hub(random_checkpoint, tmp_path):
    """A hub with the random checkpoint."""
    stub = HubStub(Path(shutil.copytree(random_checkpoint, tmp_path / 'repository')))
    yield stub
    stub.close()


def start(hub: HubStub, tmp_path: Path, *arguments: str) -> subprocess.Popen:
    """Start the command with an empty cache in tmp_path."""
    environment = {**os.environ, 'HF_ENDPOINT': hub.url, 'HF_HOME': str(tmp_path / 'home')}
    return subprocess.Popen(
        [sys.executable, '-m', 'densereward_ros.cli', 'download', *arguments],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_model_is_fetched_checked_and_named(hub, tmp_path):
    """The last line says where it is and that it is usable; standard error stays empty."""
    process = start(hub, tmp_path, REPOSITORY)
    out, err = process.communicate(timeout=60)
    parameters = round(checkpoint.check(hub.folder, 'mine').parameters / 1e6)
    folder = tmp_path / f'home/hub/models--owner--model/snapshots/{COMMIT}'
    assert (process.returncode, err) == (0, '')
    assert out.splitlines()[-1] == f'{REPOSITORY} is ready: {parameters} million parameters in {folder}'
    assert (folder / 'model.safetensors').is_file()


def test_a_failure_is_one_line_and_exit_code_1(hub, tmp_path):
    """No traceback for a name that does not exist."""
    process = start(hub, tmp_path, 'owner/nothing', '--revision', 'v2')
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, '')
    assert err == (
        f'densereward: {hub.url} has no model owner/nothing, or it is private '
        "(then log in with 'hf auth login')\n"
    )


def test_what_arrives_broken_is_told(hub, tmp_path):
    """A repository that is no Qwen3-VL checkpoint is found out here and not on the robot."""
    (hub.folder / 'system_prompt.txt').unlink()
    process = start(hub, tmp_path, REPOSITORY)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.startswith(f'densereward: {REPOSITORY} is not complete: system_prompt.txt missing in ')


def test_ctrl_c_ends_a_download_at_once_and_leaves_no_partial_file(hub, tmp_path):
    """Exit code 130 within two seconds, one line, and no gigabytes that nobody takes up again."""
    hub.chunk_pause = 0.5
    process = start(hub, tmp_path, REPOSITORY)
    while 'model.safetensors' not in hub.fetched():
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 2
    assert (process.returncode, err) == (130, 'densereward: interrupted\n')
    # A partial file under the content's own name is taken up again by the clients that write it.
    assert list((tmp_path / 'home').rglob('*.????????.incomplete')) == []
