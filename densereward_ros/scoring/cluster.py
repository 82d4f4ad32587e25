"""Episodes over the workers of a Ray cluster: Ray Data hands them out, and journals keep what is scored."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

from densereward_ros.models.base import ModelError, ModelOptions, first_line
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.episode import Episode
from densereward_ros.scoring.journal import Journal, Recorded, read_journal
from densereward_ros.scoring.run import Scorer, Windowing, head_of
from densereward_ros.scoring.run_folder import journal_file

if TYPE_CHECKING:
    import numpy as np

# A worker that was killed lets go of its journal at once; one whose machine was lost, when the file server
# notices.
PATIENCE_S = 60.0
RETRIES = 3  # of a recording that takes its worker down at the same window each time
REACH_S = 10.0
OBJECT_STORE = 100_000_000  # bytes; only numbers of episodes travel


class Worker:
    """One process with one model: Ray Data makes it, and another in its place when it dies."""

    def __init__(
        self, episodes: Sequence[Episode], folder: Path, asked: dict[str, Any], options: ModelOptions,
        windowing: Windowing, place: str,
    ) -> None:
        """place: the working folder, as of the command: paths of recordings may be relative to it."""
        self._episodes, self._folder = episodes, folder
        self._scorer, self._error = None, ''
        try:
            os.chdir(place)
            self._scorer = Scorer(folder, asked, options, windowing)
        except (ModelError, RecordingError, OSError) as error:  # raised here, Ray would try again for ever
            self._error = str(error)

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, list]:
        """Score the episodes of these numbers. error: what ends the run, one line; '' for nothing."""
        errors = [self._error or self._score(self._episodes[number]) for number in batch['number'].tolist()]
        return {'number': batch['number'].tolist(), 'error': errors}

    def _score(self, episode: Episode) -> str:
        try:
            if self._has_killed(episode):
                file = journal_file(self._folder, episode.name)
                with Journal(file, head_of(episode), PATIENCE_S) as journal:
                    journal.fail(f'{episode.source}: took {RETRIES + 1} workers down at the same window')
            else:
                self._scorer.score(episode, patience_s=PATIENCE_S)
            _tries_file(self._folder, episode).unlink()
        except (ModelError, RecordingError) as error:
            return str(error)
        return ''

    def _has_killed(self, episode: Episode) -> bool:
        """Note down that this worker tries; True when too many did and came no further.

        Ray itself would give a recording that crashes its reader to one new worker after the other, for ever.
        """
        scored = len(read_journal(journal_file(self._folder, episode.name)).frames)
        with _tries_file(self._folder, episode).open('a+', encoding='utf-8') as file:
            file.write(f'{scored}\n')
            file.seek(0)
            return file.read().split().count(str(scored)) > RETRIES + 1


def score_on_ray(
    episodes: Sequence[Episode], folder: Path, asked: dict[str, Any], options: ModelOptions,
    windowing: Windowing, address: str = '', say: Callable[[str], None] = print,
) -> Iterator[tuple[Episode, Recorded]]:
    """Score episodes into the journals of a folder that all machines see; yields each that has ended.

    folder: absolute; this process holds its lock. address: of the cluster; '' starts one on this machine. A
    worker has a GPU of its own, or where there is none, or the device is the CPU, a core. Raises ModelError
    and RecordingError.
    """
    if ':' in options.device:
        raise ModelError(
            f"device is '{options.device}' (with Ray each worker has a GPU of its own: 'auto', 'cpu' and "
            "'cuda' are allowed)")
    for episode in episodes:
        _tries_file(folder, episode).unlink(missing_ok=True)
    ray = _connect(address)
    try:
        gpus = int(ray.cluster_resources().get('GPU', 0)) if options.device != 'cpu' else 0
        workers = min(len(episodes), gpus or int(ray.cluster_resources()['CPU']))
        say(f'{workers} workers, each with a {"GPU" if gpus else "core"} and a model of its own')
        ray.data.DataContext.get_current().enable_progress_bars = False
        scored = ray.data.from_items(
            [{'number': number} for number in range(len(episodes))], override_num_blocks=len(episodes),
        ).map_batches(
            Worker, batch_size=1, compute=ray.data.ActorPoolStrategy(size=workers), num_cpus=1,
            num_gpus=1 if gpus else 0,
            fn_constructor_args=(list(episodes), folder, asked, options, windowing, os.getcwd()))
        for row in scored.iter_rows():
            if row['error']:
                raise RecordingError(row['error'])
            episode = episodes[row['number']]
            yield episode, read_journal(journal_file(folder, episode.name))
    except ray.exceptions.RayError as error:
        raise ModelError(
            f'the Ray cluster failed ({first_line(error)}); what was scored is kept, and the same command '
            'goes on from there') from error
    finally:
        ray.shutdown()


def _tries_file(folder: Path, episode: Episode) -> Path:
    return journal_file(folder, episode.name).with_suffix('.tries')


def _connect(address: str) -> Any:
    """Ray, connected. Raises ModelError."""
    if not address:
        # On one machine nobody asked for a cluster, and so not for its logs or for one that tells of its use.
        os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
        os.environ.setdefault('RAY_BACKEND_LOG_LEVEL', 'fatal')
    logging.getLogger('ray').setLevel(logging.ERROR)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ModelError(f'--ray needs the Python package ray ({error}): pip install "ray[data]"') from error
    here = {} if address else {'include_dashboard': False, 'object_store_memory': OBJECT_STORE}
    try:
        _reach(address)
        ray.init(
            address=address or 'local', log_to_driver=False, logging_level=logging.ERROR, **here)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise ModelError(f'no Ray cluster at {address or "this machine"}: {first_line(error)}') from error
    logging.getLogger('ray.data').setLevel(logging.ERROR)
    return ray


def _reach(address: str) -> None:
    """Raise OSError where nobody listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition(':')
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), REACH_S).close()
