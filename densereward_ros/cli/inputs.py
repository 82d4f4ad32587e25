"""What the words of a command line stand for: the episodes of recordings, label files and the demo world."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Sequence

if TYPE_CHECKING:
    from densereward_ros.recordings.episode import Episode

LABEL_SUFFIXES = ('.yaml', '.yml')
TABLETOP = re.compile(r'tabletop:(\d{1,6})(?:@(\d{1,9}))?')
ALLOWED = (
    'a video file, a folder of images, a bag, a LeRobot dataset, a label file, or tabletop:N for N episodes '
    'of the demo world')

Opener = Callable[[], 'list[Episode]']


def open_inputs(
    inputs: Sequence[str], task: str = '', rate: float = 0.0, topics: Sequence[str] = ()
) -> tuple[list[Episode], list[tuple[str, str]]]:
    """The episodes of all inputs, in order and with different names, and what could not be opened, and why.

    The same arguments give the same episodes, as long as the files are the same. inputs: files and folders;
    of a label file, or a folder with an episodes.yaml, every recording in it. task: for what has no task of
    its own, and in place of those of LeRobot datasets. rate, topics: as of open_episodes.

    Raises RecordingError for what is wrong with the arguments themselves: a missing or unusable task, a label
    file that cannot be read, an impossible tabletop:N.
    """
    from densereward_ros.recordings.base import RecordingError
    from densereward_ros.recordings.names import unique_names

    task = _cleaned(task, 'the command line')
    if not 0.0 <= rate < float('inf'):
        raise RecordingError(f'rate is {rate}; allowed: frames a second, 0 for those of the recordings')
    episodes, failed = [], []
    for source, open_it in [pair for text in inputs for pair in _sources(text, task, rate, tuple(topics))]:
        try:
            opened = open_it()
            episodes += [replace(one, task=_cleaned(one.task, one.source)) for one in opened]
        except RecordingError as error:
            failed.append((source, str(error)))
    names = unique_names(episode.name for episode in episodes)
    return [replace(episode, name=name) for episode, name in zip(episodes, names)], failed


def _sources(text: str, task: str, rate: float, topics: tuple[str, ...]) -> list[tuple[str, Opener]]:
    """What an argument stands for: the sources, and how to open each."""
    from densereward_ros.recordings.base import RecordingError
    from densereward_ros.recordings.labels import FILE
    from densereward_ros.recordings.lerobot_layout import is_dataset
    from densereward_ros.recordings.opening import open_episodes

    path = Path(text)
    if text.startswith('tabletop:') and not path.exists():
        return [(text, _tabletop(text))]
    if path.suffix.lower() in LABEL_SUFFIXES or (path.is_dir() and (path / FILE).is_file()):
        return _labelled(text, topics)
    if not task and path.exists() and not is_dataset(path):
        raise RecordingError(
            f'{text}: no task is given; allowed is --task with one line of text, what the robot is to do')
    if not path.exists():
        raise RecordingError(f'{text}: no such file or folder; allowed: {ALLOWED}')
    return [(text, lambda: open_episodes(text, task, rate, topics))]


def _labelled(text: str, topics: tuple[str, ...]) -> list[tuple[str, Opener]]:
    from densereward_ros.recordings.labels import read_labels
    from densereward_ros.recordings.opening import open_episodes

    def opener(entry) -> Opener:
        return lambda: [
            replace(episode, labels=entry.labels)
            for episode in open_episodes(str(entry.path), entry.task, entry.rate, topics)]

    return [(str(entry.path), opener(entry)) for entry in read_labels(text)]


def _tabletop(text: str) -> Opener:
    from densereward_ros.recordings.base import RecordingError

    match = TABLETOP.fullmatch(text)
    if not match or not int(match[1]):
        raise RecordingError(
            f'{text}: no number of episodes of the demo world; allowed: tabletop:N or tabletop:N@SEED, such '
            'as tabletop:2@7')

    def opener() -> list[Episode]:
        from densereward_ros.tabletop.labelled import episodes

        return episodes(int(match[1]), int(match[2] or 0))

    return opener


def _cleaned(task: str, source: str) -> str:
    from densereward_ros.models.prompt import clean_task
    from densereward_ros.recordings.base import RecordingError

    try:
        return clean_task(task)
    except ValueError as error:
        raise RecordingError(f'{source}: {error}') from None
