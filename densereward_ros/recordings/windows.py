"""The windows that the node would score, had it watched the recording."""

from __future__ import annotations

from typing import Iterator

from densereward_ros.frames.window import FrameWindow
from densereward_ros.recordings.base import Recording
from densereward_ros.types import Frame, Window

NS_PER_S = 1_000_000_000


def windows_of(recording: Recording, task: str, frame_interval: float = 0.2) -> Iterator[Window]:
    """Yield every window of a recording in turn, formed by the code of the node, its frames decoded.

    frame_interval: seconds, 0 or more. Stamps count from the first frame. Raises RecordingError.
    """
    chooser = FrameWindow(frame_interval)
    for seconds, image in recording.frames():
        now_ns = round(seconds * NS_PER_S)
        chooser.add(Frame(now_ns, now_ns, lambda image=image: image))
        frames = chooser.take(now_ns)
        if frames:
            yield Window(recording.name, task, frames, chooser.segment)
