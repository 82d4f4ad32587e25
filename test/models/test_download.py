"""Fetching a model: progress, only what is needed, no byte twice, and a clear line for every failure."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections import namedtuple

import pytest
from huggingface_hub import constants

from densereward_ros.models import checkpoint as checkpoints
from densereward_ros.models import download
from densereward_ros.models.base import ModelError
from densereward_ros.models.sizes import human_bytes
from hub_stub import COMMIT, REPOSITORY, HubStub

pytestmark = pytest.mark.slow  # together they take most of a minute

NEEDED = {
    'chat_template.json', 'config.json', 'generation_config.json', 'model.safetensors',
    'preprocessor_config.json', 'system_prompt.txt', 'tokenizer.json', 'tokenizer_config.json',
    'video_preprocessor_config.json',
}  # fmt: skip


def nothing(line: str) -> None:
    """Progress that no test looks at."""


@pytest.fixture
def hub(random_checkpoint, tmp_path, monkeypatch):
    """A hub with one model and much that a reward node does not need, and an empty cache."""
    folder = tmp_path / 'repository'
    shutil.copytree(random_checkpoint, folder)
    for name in ('README.md', 'pytorch_model.bin', 'training_args.pt', 'original/model.safetensors'):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b'not needed')
    stub = HubStub(folder)
    point_to(stub.url, monkeypatch)
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(tmp_path / 'cache'))
    yield stub
    stub.close()


def point_to(url: str, monkeypatch) -> None:
    """Make huggingface_hub ask this address."""
    monkeypatch.setattr(constants, 'ENDPOINT', url)
    monkeypatch.setattr(
        constants, 'HUGGINGFACE_CO_URL_TEMPLATE', url + '/{repo_id}/resolve/{revision}/{filename}'
    )


def size(hub: HubStub) -> str:
    """The size of all needed files, as the lines say it."""
    return human_bytes(sum((hub.folder / name).stat().st_size for name in NEEDED))


def refusal(model: str = REPOSITORY, revision: str = 'main') -> str:
    """The line with which a download fails."""
    with pytest.raises(ModelError) as caught:
        download.download(model, revision, nothing)
    assert '\n' not in str(caught.value)
    return str(caught.value)


def test_only_what_is_needed_is_fetched_and_the_result_is_complete(hub, tmp_path, capfd):
    """No pickles, no read-me, no second copy of the weights; the folder passes every check."""
    lines = []
    folder = download.download(REPOSITORY, 'main', lines.append)
    assert {path.name for path in folder.iterdir()} == NEEDED
    assert set(hub.fetched()) == NEEDED
    assert checkpoints.check(folder, 'mine').weight_bytes > 4_000_000
    assert lines[0] == (
        f'downloading {REPOSITORY}: {size(hub)} to fetch into {tmp_path / "cache"} '
        f"('densereward download {REPOSITORY}' does it beforehand)"
    )
    assert lines[-1] == f'downloaded {REPOSITORY}: {size(hub)} in {folder}'
    assert capfd.readouterr() == ('', '')


def test_a_second_time_nothing_is_fetched(hub):
    """Complete files stay; the cache is then found by the revision's name, without the hub."""
    folder = download.download(REPOSITORY, 'main', nothing)
    hub.requests.clear()
    assert download.download(REPOSITORY, 'main', nothing) == folder
    assert hub.fetched() == []
    hub.requests.clear()
    assert download.cached_folder(REPOSITORY, 'main') == folder
    assert download.cached_folder(REPOSITORY, COMMIT) == folder
    assert download.cached_folder(REPOSITORY, 'v2') is None
    assert checkpoints.find(REPOSITORY, 'main', nothing).folder == folder
    assert hub.requests == []


def test_find_downloads_what_is_not_there(hub):
    """Opening a model by its hub id needs no command before."""
    lines = []
    found = checkpoints.find(REPOSITORY, 'main', lines.append)
    assert found.name == REPOSITORY
    assert found.folder.name == COMMIT
    assert lines[0].startswith(f'downloading {REPOSITORY}: ')


def test_progress_counts_up_every_interval(hub, monkeypatch):
    """Percent of the whole and the rate, so that nobody takes a download for a hang."""
    monkeypatch.setattr(constants, 'DOWNLOAD_CHUNK_SIZE', 65536)  # 10 MB otherwise, twice this model's size
    hub.chunk_pause = 0.02
    lines = []
    download.download(REPOSITORY, 'main', lines.append, interval=0.2)
    counted = [line for line in lines if f'% of {size(hub)}, ' in line]
    percents = [int(line.removeprefix(f'downloading {REPOSITORY}: ').split('%')[0]) for line in counted]
    assert len(percents) >= 4
    assert percents == sorted(percents)
    assert 0 <= percents[0] < 50 < percents[-1] <= 100
    assert counted[-1].endswith('B/s')


def test_a_broken_connection_is_taken_up_where_it_broke(hub, monkeypatch):
    """The rest of a file is asked for, not the file again."""
    monkeypatch.setattr(time, 'sleep', lambda seconds: None)
    hub.break_after = 1_000_000
    folder = download.download(REPOSITORY, 'main', nothing)
    assert checkpoints.check(folder, 'mine').parameters > 0
    assert (folder / 'model.safetensors').read_bytes() == (hub.folder / 'model.safetensors').read_bytes()
    assert hub.fetched().count('model.safetensors') == 2


def test_files_that_arrived_before_a_failure_are_kept(hub, monkeypatch):
    """After a failure only the missing files are fetched, and progress starts at what is there."""
    weights = hub.folder / 'model.safetensors'
    hidden = weights.rename(hub.folder.parent / 'hidden')
    weights.mkdir()  # the listing leaves it out
    (hub.folder / 'small.safetensors').write_bytes(b'x')
    download.download(REPOSITORY, 'main', nothing)
    weights.rmdir()
    hidden.rename(weights)
    hub.requests.clear()
    download.download(REPOSITORY, 'main', nothing)
    assert hub.fetched() == ['model.safetensors']


def test_what_a_killed_download_left_is_removed(hub, tmp_path):
    """Old partial files under a private name; fresh ones may belong to another process."""
    blobs = tmp_path / 'cache/models--owner--model/blobs'
    blobs.mkdir(parents=True)
    old, fresh, resumable = (
        blobs / 'abc.0123abcd.incomplete',
        blobs / 'abc.89abcdef.incomplete',
        blobs / 'abc.incomplete',
    )
    for path in (old, fresh, resumable):
        path.write_bytes(b'part')
    for path in (old, resumable):
        os.utime(path, (time.time() - 3600,) * 2)
    download.download(REPOSITORY, 'main', nothing)
    assert (old.exists(), fresh.exists(), resumable.exists()) == (False, True, True)


def test_too_little_room_is_told_before_a_byte_is_fetched(hub, tmp_path, monkeypatch):
    """What is needed, what is free, where, and what to do."""
    usage = namedtuple('usage', 'total used free')
    monkeypatch.setattr(download.shutil, 'disk_usage', lambda path: usage(10**9, 10**9, 1_000_000))
    assert refusal() == (
        f'owner/model needs {size(hub)} more on disk, but {tmp_path} has 1 MB free: '
        'make room, or set HF_HOME to a folder on a larger disk'
    )
    assert hub.fetched() == []


def test_no_such_model(hub):
    """A typing error in the id."""
    assert refusal('owner/nothing') == (
        f"{hub.url} has no model owner/nothing, or it is private (then log in with 'hf auth login')"
    )


def test_no_such_revision(hub):
    """A typing error in the revision."""
    assert (
        refusal(revision='v9') == "owner/model has no revision 'v9' (a branch, tag or commit of it is needed)"
    )


def test_a_gated_model(hub):
    """It exists, but its terms must be accepted first."""
    assert refusal('owner/gated') == (
        f"owner/gated is gated: accept its terms on {hub.url}/owner/gated, then log in with 'hf auth login'"
    )


def test_a_hub_in_trouble(hub):
    """Any other answer is named with its status."""
    assert refusal('owner/broken').startswith(f'{hub.url} answered 500 for owner/broken: ')


def test_a_hub_that_cannot_be_reached(hub, monkeypatch):
    """A robot without a network learns within seconds, and how to prepare."""
    point_to('http://127.0.0.1:9', monkeypatch)
    began = time.monotonic()
    line = refusal()
    assert time.monotonic() - began < 20
    assert line.startswith('cannot reach http://127.0.0.1:9 for owner/model (')
    assert line.endswith(
        "): check the network, or fetch it beforehand with 'densereward download owner/model'"
    )


def test_offline_by_choice(hub, tmp_path, monkeypatch):
    """HF_HUB_OFFLINE is named, since the network itself may be fine."""
    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', True)
    assert refusal() == (
        f'owner/model is not complete in {tmp_path / "cache"}, and HF_HUB_OFFLINE forbids asking the hub: '
        "fetch it beforehand with 'densereward download owner/model'"
    )
    assert refusal(revision='v2').endswith("'densereward download owner/model --revision v2'")


@pytest.mark.parametrize(
    ('keep', 'line'),
    [
        (['README.md'], 'owner/model is not a checkpoint: the hub lists no config.json for it'),
        (['config.json'], 'owner/model has no weights on the hub (only safetensors are read)'),
        (
            ['config.json', 'pytorch_model.bin'],
            'owner/model has pickled weights only on the hub (only safetensors are read)',
        ),
    ],
)  # fmt: skip
def test_a_repository_that_holds_no_usable_weights(hub, keep, line):
    """Seen from the list of files, before anything is fetched."""
    for path in hub.folder.rglob('*'):
        if path.is_file() and path.name not in keep:
            path.unlink()
    assert refusal() == line
    assert hub.fetched() == []


@pytest.mark.parametrize('model', ['owner/a b', 'owner/..', '-x/y'])
def test_an_impossible_id(model):
    """Never sent anywhere."""
    assert refusal(model).startswith(f"'{model}' is not a hub id 'owner/name': ")


def test_a_disk_that_fills_up_meanwhile(hub, tmp_path, monkeypatch):
    """Another process took the room that was there at the start."""

    def full(*_, **__):
        raise OSError(errno.ENOSPC, 'No space left on device')

    monkeypatch.setattr('huggingface_hub.hf_hub_download', full)
    assert refusal() == (
        f'the disk of {tmp_path / "cache"} is full: make room, or set HF_HOME to a folder on a larger disk'
    )


def test_a_cache_that_may_not_be_written(hub, tmp_path, monkeypatch):
    """A cache of another user."""

    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, 'Permission denied', '/cache/blobs')

    monkeypatch.setattr('huggingface_hub.hf_hub_download', forbidden)
    assert refusal() == 'cannot write to /cache/blobs: Permission denied (HF_HOME names another folder)'
