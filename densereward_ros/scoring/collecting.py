"""From the journals of a run to its results: verdicts, events and targets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Iterable

from densereward_ros.events.detector import FailureDetector
from densereward_ros.events.settings import DetectorSettings
from densereward_ros.recordings.episode import Episode
from densereward_ros.results.rows import Results, ScoredEpisode, ScoredEvent, ScoredFrame
from densereward_ros.scoring.journal import Recorded
from densereward_ros.types import Frame, ImageError, Verdict, Window


def collect(
    recorded: Iterable[tuple[Episode, Recorded]], settings: DetectorSettings, run: dict[str, Any],
    failed: Iterable[tuple[str, str]] = (),
) -> Results:
    """The results of a run whose journals all have ended.

    run: where the numbers come from; what the journals tell is added. failed: what could not be opened.
    """
    episodes, broken, seconds, bounded, undecodable = [], list(failed), 0.0, True, {}
    for episode, one in recorded:
        if one.failed:
            broken.append((episode.source, one.failed))
            continue
        episodes.append(scored_episode(episode, one, settings))
        seconds += one.seconds
        bounded &= one.bounded
        if one.undecodable:
            undecodable[episode.name] = one.undecodable
    windows = sum(len(episode.frames) for episode in episodes)
    told = {
        **run, 'bounded': bounded, 'windows': windows,
        'seconds_per_window': seconds / windows if windows else None, 'undecodable': undecodable}
    return Results(tuple(episodes), told, tuple(broken))


def scored_episode(episode: Episode, recorded: Recorded, settings: DetectorSettings) -> ScoredEpisode:
    """An episode with the events that the detector finds in its verdicts, and the labelled targets."""
    detector, events = FailureDetector(settings), []
    for frame in recorded.frames:
        if frame.reward is None:
            continue
        verdict = Verdict(frame.reward, frame.reason, recorded.bounded, frame.reason_probabilities)
        event = detector.update(_window(episode, frame), verdict)
        if event is not None:
            events.append(ScoredEvent(
                frame.stamp_ns, frame.seconds, event.reason, event.rule, event.reward, event.previous_reward,
                event.probability, event.confirmations))
    frames = tuple(
        replace(frame, target=episode.labels.progress_at(frame.seconds)) for frame in recorded.frames)
    return ScoredEpisode(
        episode.name, episode.source, episode.camera, episode.task, episode.labels, frames, tuple(events),
        episode.index)


def _window(episode: Episode, scored: ScoredFrame) -> Window:
    """The window as the detector knows it: by its stamps."""
    frames = tuple(Frame(stamp_ns, scored.log_ns, _gone) for stamp_ns in scored.window_ns)
    return Window(episode.name, episode.task, frames, scored.segment)


def _gone():
    raise ImageError('the image was let go after it had been judged')
