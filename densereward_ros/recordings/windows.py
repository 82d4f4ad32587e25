"""The windows of a recording, formed by the same code as a camera's in the node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from densereward_ros.frames.window import FrameWindow
from densereward_ros.recordings.base import Recording
from densereward_ros.types import Frame, Window

_NS_PER_S = 1_000_000_000


def windows_of(recording: Recording, task: str, frame_interval: float = 0.2) -> Iterator[Window]:
    """Every window of a recording, in order, as if its frames arrived at their own times.

    frame_interval: seconds between the three frames; 0 takes the last three as they come. Raises
    RecordingError at a frame that cannot be read.
    """
    window = FrameWindow(frame_interval)
    camera = Path(recording.name).name
    for seconds, image in recording.frames():
        stamp_ns = round(seconds * _NS_PER_S)
        window.add(Frame(stamp_ns, stamp_ns, lambda image=image: image))
        frames = window.take(stamp_ns)
        if frames is not None:
            yield Window(camera, task, frames, window.segment)
