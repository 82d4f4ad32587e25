"""The loop that scores episodes: windows in, verdicts into journals."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

from densereward_ros.models.base import ModelOptions, RewardModel
from densereward_ros.models.opening import open_model
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.episode import Episode
from densereward_ros.recordings.windows import EpisodeWindow, windows_of
from densereward_ros.results.rows import ScoredFrame
from densereward_ros.scoring.batches import Batch, batches_of, lot_size, score_batch
from densereward_ros.scoring.journal import Journal, Recorded, read_journal
from densereward_ros.scoring.provenance import model_provenance
from densereward_ros.scoring.run_folder import begin, journal_file
from densereward_ros.types import ImageError, MalformedReply, Verdict

Watch = Callable[[int], None]


@dataclass(frozen=True)
class Windowing:
    """How windows are formed and put together. frame_interval, max_frame_age: as of FrameWindow."""

    frame_interval: float = 0.2
    max_frame_age: float = 1.0
    batch: int = 8


def _ignore(value: object) -> None:
    """Progress that nobody asked for."""


class Scorer:
    """A model that scores episodes into the journals of a run's folder."""

    def __init__(
        self, folder: Path, asked: dict[str, Any], options: ModelOptions, windowing: Windowing,
        say: Callable[[str], None] = _ignore,
    ) -> None:
        """Open the model, and see whether it is the one that the folder was begun with.

        folder, asked: as of RunFolder, which some process holds. say: hears what the opening says. Raises
        ModelError and RecordingError.
        """
        self._folder = folder
        self._windowing = windowing
        self._model = open_model(options, say)
        try:
            begin(folder, asked, {
                'model': self._model.name, **model_provenance(options),
                'runs_on': getattr(self._model, 'runs_on', None)})
        except BaseException:
            self.close()
            raise

    def score(self, episode: Episode, watch: Watch = _ignore, patience_s: float = 0.0) -> Recorded:
        """Score an episode to its end, or to what is wrong with it; what its journal then holds.

        patience_s: as of Journal. Raises as score_episode does.
        """
        file = journal_file(self._folder, episode.name)
        with Journal(file, head_of(episode), patience_s) as journal:
            if not journal.recorded.complete:
                score_episode(self._model, episode, journal, self._windowing, watch)
            return journal.recorded

    def close(self) -> None:
        """Free the model's memory."""
        self._model.close()

    def __enter__(self) -> Scorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def head_of(episode: Episode) -> dict[str, Any]:
    """What a journal is of: with another task or camera it is another episode."""
    return {
        'name': episode.name, 'source': os.path.abspath(episode.source), 'camera': episode.camera,
        'task': episode.task, 'index': episode.index}


def is_scored(episode: Episode, folder: Path) -> bool:
    """Whether its journal is complete. Raises RecordingError."""
    recorded = read_journal(journal_file(folder, episode.name))
    return recorded.complete and recorded.head == head_of(episode)


def score_episode(
    model: RewardModel, episode: Episode, journal: Journal, windowing: Windowing, watch: Watch
) -> None:
    """Score what the journal lacks of an episode, to its end or to what is wrong with the recording.

    Of the lot in which a run was cut, the windows that the journal has are scored again and not written
    again: that puts the model where it was. watch: is told the index of the newest frame, now and then.
    Raises RecordingError for a journal that cannot be written, ModelError and Interrupted as score does.
    """
    bad_images: list[str] = []
    done = tuple(journal.recorded.frames)
    first = len(done) // lot_size(windowing.batch) * lot_size(windowing.batch)
    windows = _from(first, done, episode, windowing, lambda error: bad_images.append(str(error)))
    batches = batches_of(windows, windowing.batch, first)
    while True:
        try:
            batch = next(batches, None)
            if batch is None:
                break
            started = time.perf_counter()
            outcomes = score_batch(model, batch)
        except (ValueError, OSError) as error:  # RecordingError, ImageError, a task that the model refuses
            text = str(error)
            journal.fail(text if isinstance(error, RecordingError) else f'{episode.source}: {text}')
            return
        if batch.first >= len(done):
            journal.add(*_kept(batch, outcomes), time.perf_counter() - started)
        watch(batch.windows[-1].frame)
    if journal.recorded.frames:
        journal.complete(len(bad_images))
    elif bad_images:
        journal.fail(f'{episode.source}: {len(bad_images)} images cannot be decoded ({bad_images[0]})')
    else:
        journal.fail(
            f'{episode.source}: too short for a verdict, which takes three frames '
            f'{windowing.frame_interval:g} s apart')


def _from(
    first: int, done: Sequence[ScoredFrame], episode: Episode, windowing: Windowing,
    refused: Callable[[ImageError], None],
) -> Iterator[EpisodeWindow]:
    """Yield the windows from the first one on. All are formed, since each depends on those before it."""
    known = iter(done)
    seen = windows_of(episode, windowing.frame_interval, windowing.max_frame_age, refused)
    for number, one in enumerate(seen):
        before = next(known, None)
        if before is not None and before.window_ns != _stamps(one):
            raise _changed(episode)
        if number >= first:
            yield one
    if next(known, None) is not None:
        raise _changed(episode)


def _changed(episode: Episode) -> RecordingError:
    return RecordingError(
        f'{episode.source}: has changed since a part of it was scored; the same command scores it anew')


def _kept(batch: Batch, outcomes: Sequence[Verdict | MalformedReply]) -> tuple[list[ScoredFrame], bool]:
    """What the journal keeps of a batch, and whether its verdicts are bounded."""
    frames = []
    for one, outcome in zip(batch.windows, outcomes, strict=True):
        newest = one.window.newest
        scored = ScoredFrame(
            frame=one.frame, stamp_ns=newest.stamp_ns, seconds=one.seconds, segment=one.window.segment,
            reward=None, log_ns=newest.received_ns, window_ns=_stamps(one))
        if isinstance(outcome, Verdict):
            frames.append(replace(
                scored, reward=outcome.reward, reason=outcome.reason,
                reason_probabilities=outcome.reason_probabilities))
        else:
            frames.append(replace(scored, malformed=outcome.why))
    return frames, all(outcome.bounded for outcome in outcomes if isinstance(outcome, Verdict))


def _stamps(one: EpisodeWindow) -> tuple[int, ...]:
    return tuple(frame.stamp_ns for frame in one.window.frames)
