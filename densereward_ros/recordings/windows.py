"""The windows that the node would score, had it watched the recording."""

from __future__ import annotations

from typing import Callable, Iterator, NamedTuple

from densereward_ros.frames.window import FrameWindow
from densereward_ros.recordings.episode import Episode
from densereward_ros.types import Frame, ImageError, Window

NS_PER_S = 1_000_000_000


class EpisodeWindow(NamedTuple):
    """A window, and where in its episode it ends.

    frame: the index of its newest frame, from 0. seconds: from the arrival of the first frame to that of the
    newest one: a clock that jumps does not move it.
    """

    frame: int
    seconds: float
    window: Window


def _ignore(error: ImageError) -> None:
    """An image that cannot be used, of which nobody wants to hear."""


def windows_of(
    episode: Episode,
    frame_interval: float = 0.2,
    max_frame_age: float = 1.0,
    refused: Callable[[ImageError], None] = _ignore,
) -> Iterator[EpisodeWindow]:
    """Yield every window of an episode in turn, formed by the code of the node, its images decoded.

    frame_interval, max_frame_age: as of FrameWindow. The camera of a window is the episode's name. A frame
    that cannot be decoded is left out, as in the node, and refused is told. Raises RecordingError.
    """
    chooser = FrameWindow(frame_interval, max_frame_age)
    begun_ns = None
    for index, frame in enumerate(episode.frames()):
        begun_ns = frame.received_ns if begun_ns is None else begun_ns
        chooser.add(frame)
        frames = chooser.take(frame.received_ns)
        if frames and _decoded(frames, chooser, refused):
            seconds = (frame.received_ns - begun_ns) / NS_PER_S
            yield EpisodeWindow(index, seconds, Window(episode.name, episode.task, frames, chooser.segment))


def _decoded(
    frames: tuple[Frame, ...], chooser: FrameWindow, refused: Callable[[ImageError], None]
) -> bool:
    """Decode the images, oldest first; False where one cannot be, which the window then forgets."""
    for frame in frames:
        try:
            frame.image  # noqa: B018 (decoded once, then kept by the frame)
        except ImageError as error:
            chooser.drop(frame)
            refused(error)
            return False
    return True
