"""Fetching a model from the Hugging Face hub into its local cache, with progress."""

from __future__ import annotations

import contextlib
import errno
import re
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from densereward_ros.models.base import ModelError, first_line
from densereward_ros.models.sizes import human_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

_SUFFIXES = ('.safetensors', '.json', '.txt', '.jinja')
_PICKLES = ('.bin', '.pt', '.pth')
_TIMEOUT = 15.0  # seconds until a silent hub counts as unreachable
_INTERVAL = 2.0  # seconds between two lines of progress
_STALE = 600.0  # seconds without growth after which a partial file belongs to nobody
_PRIVATE_PARTIAL = re.compile(r'.+\.[0-9a-f]{8}\.incomplete')


def cached_folder(model: str, revision: str) -> Path | None:
    """The folder of a model in the local cache, complete or not; None where there is none. Asks no hub."""
    from huggingface_hub import try_to_load_from_cache

    _check_id(model)
    path = try_to_load_from_cache(model, 'config.json', revision=revision)
    return Path(path).parent if isinstance(path, str) else None


def download(model: str, revision: str, progress: Callable[[str], None], interval: float = _INTERVAL) -> Path:
    """Fetch what a model needs and the cache lacks; returns its folder.

    Files that are already there are not fetched again. progress receives a line every interval
    seconds, from another thread. Raises ModelError, also when the disk has not enough room.
    """
    import huggingface_hub
    from huggingface_hub import constants

    _check_id(model)
    cache = Path(constants.HF_HUB_CACHE)
    try:
        info = huggingface_hub.HfApi().model_info(
            model, revision=revision, files_metadata=True, timeout=_TIMEOUT
        )
        sizes = _needed_files(info.siblings, model)
        missing = [
            name
            for name in sizes
            if not isinstance(huggingface_hub.try_to_load_from_cache(model, name, revision=info.sha), str)
        ]
        total, to_fetch = sum(sizes.values()), sum(sizes[name] for name in missing)
        blobs = cache / f'models--{model.replace("/", "--")}' / 'blobs'
        _remove_stale_partials(blobs)
        _check_space(cache, to_fetch, model)
        if missing:
            progress(
                f'downloading {model}: {human_bytes(to_fetch)} to fetch into {cache} '
                f"('{_command(model, revision)}' does it beforehand)"
            )
        with _reported(blobs, model, total, total - to_fetch, progress, interval), _quiet_hub():
            # One after the other and in this thread, so that Ctrl-C ends it at once. The revision is
            # pinned, so that a push meanwhile cannot mix two versions.
            for name in missing:
                huggingface_hub.hf_hub_download(model, name, revision=info.sha)
            # Asked for by its name once more, the cache notes which commit the revision stands for.
            path = huggingface_hub.hf_hub_download(model, 'config.json', revision=revision)
    except Exception as error:
        raise _explained(error, model, revision, cache) from error
    if missing:
        progress(f'downloaded {model}: {human_bytes(total)} in {Path(path).parent}')
    return Path(path).parent


def _check_id(model: str) -> None:
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(model)
    except HFValidationError as error:
        raise ModelError(f"'{model}' is not a hub id 'owner/name': {first_line(error)}") from error


def _needed_files(siblings: Sequence[Any], model: str) -> dict[str, int]:
    """Names and sizes in bytes of the files to fetch, the small ones first."""
    names = [sibling.rfilename for sibling in siblings]
    if 'config.json' not in names:
        raise ModelError(f'{model} is not a checkpoint: the hub lists no config.json for it')
    if not any(name.endswith('.safetensors') for name in names):
        kind = 'pickled weights only' if any(name.endswith(_PICKLES) for name in names) else 'no weights'
        raise ModelError(f'{model} has {kind} on the hub (only safetensors are read)')
    wanted = {
        sibling.rfilename: sibling.size or 0
        for sibling in siblings
        if '/' not in sibling.rfilename and sibling.rfilename.endswith(_SUFFIXES)
    }
    return dict(sorted(wanted.items(), key=lambda item: item[1]))


def _check_space(cache: Path, needed: int, model: str) -> None:
    folder = cache
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise ModelError(
            f'{model} needs {human_bytes(needed)} more on disk, but {folder} has {human_bytes(free)} free: '
            'make room, or set HF_HOME to a folder on a larger disk'
        )


def _remove_stale_partials(blobs: Path) -> None:
    """Remove what an interrupted download left and no version of the hub client would take up again.

    Recent clients write to a name of their own each time, so a killed process leaves gigabytes.
    """
    for partial in blobs.glob('*.incomplete'):
        with contextlib.suppress(FileNotFoundError):
            if _PRIVATE_PARTIAL.fullmatch(partial.name) and time.time() - partial.stat().st_mtime > _STALE:
                partial.unlink()


@contextlib.contextmanager
def _reported(
    blobs: Path, model: str, total: int, had: int, progress: Callable[[str], None], interval: float
) -> Iterator[None]:
    """Say every few seconds how far a download has come, by the growth of the cache's files.

    The client's own bars report in different ways in each of its versions; the files do not.
    """
    done = threading.Event()
    before = _bytes_in(blobs)

    def watch() -> None:
        last, fetched_last = time.monotonic(), 0
        while not done.wait(interval):
            now, fetched = time.monotonic(), _bytes_in(blobs) - before
            rate = max(fetched - fetched_last, 0) / (now - last)
            last, fetched_last = now, fetched
            percent = 100 * min(max(had + fetched, 0) / max(total, 1), 1)
            progress(f'downloading {model}: {percent:.0f}% of {human_bytes(total)}, {human_bytes(rate)}/s')

    watcher = threading.Thread(target=watch, name='download progress', daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.glob('*'):
        with contextlib.suppress(FileNotFoundError):  # renamed or removed meanwhile
            total += path.stat().st_size
    return total


@contextlib.contextmanager
def _quiet_hub() -> Iterator[None]:
    """No bars of the client's own beside our lines."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _command(model: str, revision: str) -> str:
    return f'densereward download {model}' + ('' if revision == 'main' else f' --revision {revision}')


def _explained(error: Exception, model: str, revision: str, cache: Path) -> ModelError:
    """What went wrong with the hub or the disk, as one line that says what to do."""
    from huggingface_hub import constants
    from huggingface_hub.utils import (
        GatedRepoError,
        HfHubHTTPError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    beforehand = f"fetch it beforehand with '{_command(model, revision)}'"
    if isinstance(error, ModelError):
        return error
    if isinstance(error, GatedRepoError):
        return ModelError(
            f'{model} is gated: accept its terms on {constants.ENDPOINT}/{model}, '
            "then log in with 'hf auth login'"
        )
    if isinstance(error, RepositoryNotFoundError):
        return ModelError(
            f"{constants.ENDPOINT} has no model {model}, or it is private (then log in with 'hf auth login')"
        )
    if isinstance(error, RevisionNotFoundError):
        return ModelError(f"{model} has no revision '{revision}' (a branch, tag or commit of it is needed)")
    if isinstance(error, OfflineModeIsEnabled):
        return ModelError(
            f'{model} is not complete in {cache}, and HF_HUB_OFFLINE forbids asking the hub: {beforehand}'
        )
    if isinstance(error, HfHubHTTPError) and error.response is not None:
        return ModelError(
            f'{constants.ENDPOINT} answered {error.response.status_code} for {model}: {first_line(error)}'
        )
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return ModelError(
            f'the disk of {cache} is full: make room, or set HF_HOME to a folder on a larger disk'
        )
    if isinstance(error, PermissionError):
        return ModelError(
            f'cannot write to {error.filename or cache}: {error.strerror} (HF_HOME names another folder)'
        )
    return ModelError(
        f'cannot reach {constants.ENDPOINT} for {model} ({first_line(error)}): '
        f'check the network, or {beforehand}'
    )
