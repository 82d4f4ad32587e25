"""Writing a report: the page, and beside it a picture and a video of each episode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterable, Sequence

from densereward_ros.evaluation.figures import Figure
from densereward_ros.recordings.base import RecordingError
from densereward_ros.report.curves import event_words, stretches
from densereward_ros.report.episode import Pictures
from densereward_ros.report.film import PICTURES, choose, still
from densereward_ros.report.page import bounded_of, in_full, page
from densereward_ros.report.timeline import Moment, Reward, Timeline, draw_timeline
from densereward_ros.report.video import OverlayVideo
from densereward_ros.results.files import in_one_step
from densereward_ros.results.rows import Results, ScoredEpisode
from densereward_ros.text import one_line
from densereward_ros.types import ImageError, Window

PICTURE_BYTES = 12_000_000  # of all pictures in the page together
BEST_PICTURE_BYTES = 16_000  # of one, where there is room

Windows = Callable[[ScoredEpisode], Iterable[Window]]


@dataclass(frozen=True)
class Written:
    """What a report consists of. missing: (episode, why) for each that is shown without pictures."""

    page: Path
    pictures: int
    videos: int
    missing: tuple[tuple[str, str], ...]


def write_report(
    results: Results, folder: Path, title: str, windows: Windows, video: bool = True,
    figures: Sequence[Figure] = (), progress: Callable[[str], None] = lambda name: None,
) -> Written:
    """Write folder/index.html, and for each episode NAME.png and NAME.mp4.

    windows: gives an episode's windows again, in order; it or its iterator raises RecordingError where the
    recording is gone, and the episode is then shown without its images. figures: the metrics of the run.
    progress: told the name of each episode that is done. Every file appears when it is complete, the page
    last. Raises OSError, and ModuleNotFoundError without matplotlib, or without PyAV where videos are made.
    """
    bounded, shown = bounded_of(results), len(in_full(results.episodes))
    most_bytes = min(BEST_PICTURE_BYTES, PICTURE_BYTES // max(1, shown * PICTURES))
    made: list[tuple[str, Pictures]] = []
    folder.mkdir(parents=True, exist_ok=True)

    def pictures(episode: ScoredEpisode) -> Pictures:
        found = _pictures(episode, folder, title, windows, video, most_bytes, bounded)
        made.append((episode.name, found))
        progress(episode.name)
        return found

    text = page(title, results, pictures, figures)
    file = folder / 'index.html'
    in_one_step(file, lambda part: part.write_text(text, encoding='utf-8'))
    return Written(
        file, sum(bool(each.png) for _, each in made), sum(bool(each.video) for _, each in made),
        tuple((name, each.missing) for name, each in made if each.missing))


def _pictures(
    episode: ScoredEpisode, folder: Path, title: str, windows: Windows, video: bool, most_bytes: int,
    bounded: bool,
) -> Pictures:
    png, mp4 = (_beside(folder, f'{episode.name}.{kind}') for kind in ('png', 'mp4'))
    film = OverlayVideo(mp4, episode) if video else None
    chosen, images, missing = set(choose(episode)), {}, ''
    has_video = False
    try:
        for i, window in enumerate(_matching(episode, windows) if episode.frames else ()):
            if i in chosen:
                images[i] = window.newest.image
            if film:
                film.add(window, episode.frames[i])
        has_video = film is not None and film.close()
    except (RecordingError, ImageError) as error:
        images, missing = {}, str(error)
    finally:
        if film:
            film.discard()
    stills = tuple(still(episode.frames[i].seconds, image, most_bytes) for i, image in images.items())
    frames = [(episode.frames[i].seconds, image) for i, image in images.items()]
    if not episode.frames:
        return Pictures(missing=missing)
    timeline = _timeline(episode, title, frames, bounded)
    in_one_step(png, lambda part: draw_timeline(timeline, part))
    return Pictures(
        stills, missing, png.relative_to(folder).as_posix(),
        mp4.relative_to(folder).as_posix() if has_video else '')


def _beside(folder: Path, name: str) -> Path:
    """A file of that name below the folder. Raises RecordingError for a name that leads elsewhere."""
    file = folder / name
    if '..' in Path(name).parts or Path(name).is_absolute():
        raise RecordingError(f'an episode is called {name!r}; allowed is a path below a folder')
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _matching(episode: ScoredEpisode, windows: Windows) -> Iterable[Window]:
    """The windows that were scored. Raises RecordingError when the recording now has others."""
    found = iter(windows(episode))
    for frame in episode.frames:
        window = next(found, None)
        if window is None or window.newest.stamp_ns != frame.stamp_ns:
            raise RecordingError(f'{episode.source}: not as it was when it was scored: there is no window at '
                                 f'{frame.seconds:g} s')
        yield window


def _timeline(episode: ScoredEpisode, title: str, frames: list, bounded: bool) -> Timeline:
    """What the picture shows. Where the curve breaks it has another task: segments, malformed replies."""
    return Timeline(
        title=one_line(episode.task, 90), subtitle=one_line(f'{episode.name} · {title}', 150),
        duration=max([frame.seconds for frame in episode.frames] + [1e-3]),
        frames=frames,
        rewards=[Reward(frame.seconds, frame.reward, frame.reason, str(number))
                 for number, run in enumerate(stretches(episode.frames)) for frame in run],
        truth=list(episode.labels.progress or ()) if bounded else [],
        failures=[Moment(event.seconds, event_words(event)) for event in episode.events],
        gap=math.inf)
