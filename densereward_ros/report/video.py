"""A video of an episode with the model's verdicts in it: the node's debug image, one picture a verdict."""

from __future__ import annotations

import math
import os
from collections import deque
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from densereward_ros.report.overlay import SPAN_S, Panel, draw_overlay
from densereward_ros.report.timeline import Moment, Reward
from densereward_ros.results.rows import ScoredEpisode, ScoredFrame
from densereward_ros.types import Window

if TYPE_CHECKING:
    from PIL import Image

TICKS = 1000  # a second
STEP = 200  # ticks that the first picture after a jump back of the clock comes later than the one before it
LAST = 1000  # ticks for which the last picture stays
ENCODERS = ('libx264', 'mpeg4')  # the second where a build of FFmpeg lacks the first
OPTIONS = {'libx264': {'crf': '23', 'preset': 'veryfast', 'bf': '0'}, 'mpeg4': {'qmin': '3', 'qmax': '6'}}


class OverlayVideo:
    """Writes the video as verdicts are added in order; each picture stays until the next verdict.

    The file is there when it is complete, after close(); discard() leaves none.
    """

    def __init__(self, file: Path, episode: ScoredEpisode) -> None:
        """Nothing is opened before the first verdict. Raises ModuleNotFoundError without PyAV."""
        import av

        self._av = av
        self._file, self._part = file, file.with_name(f'.{file.name}.part')
        self._episode = episode
        self._rewards: deque[Reward] = deque()
        self._container = None
        self._shift, self._ticks = 0, -1
        self._broken = 0

    def add(self, window: Window, scored: ScoredFrame) -> None:
        """Draw what was said of a window; a malformed reply leaves the picture before it standing.

        Raises ImageError for a frame that cannot be decoded, OSError where the file cannot be written.
        """
        if scored.reward is None:
            self._broken += 1
            return
        now = scored.seconds
        self._rewards.append(Reward(
            now, scored.reward, scored.reason, f'{scored.segment} {self._broken}'))
        while not now - SPAN_S <= self._rewards[0].seconds <= now:
            self._rewards.popleft()
        newest_ns = window.newest.stamp_ns
        panel = Panel(
            self._episode.camera or self._episode.name, [frame.image for frame in window.frames],
            [(newest_ns - frame.stamp_ns) / 1e9 for frame in window.frames], tuple(self._rewards),
            [Moment(event.seconds, f'{event.reason.word} at {event.reward:.3f}')
             for event in self._episode.events if now - SPAN_S <= event.seconds <= now],
            gap=math.inf)
        self._encode(draw_overlay(self._episode.task, [panel]), round(now * TICKS))

    def close(self) -> bool:
        """Finish the file; False where there was no verdict, and so no video."""
        if self._container is None:
            return False
        self._write(self._picture, self._ticks + LAST)
        self._container.mux(self._stream.encode())
        self._container.close()
        os.replace(self._part, self._file)
        self._container = None
        return True

    def discard(self) -> None:
        """Leave nothing of a video that is not finished; of no effect on one that is."""
        if self._container is not None:
            self._container.close()
            self._container = None
        self._part.unlink(missing_ok=True)

    def _encode(self, picture: Image.Image, ticks: int) -> None:
        if self._container is None:
            self._open(picture)
            ticks = 0  # the first verdict is shown from the start, so that the video has the episode's times
        elif ticks + self._shift <= self._ticks:
            self._shift = self._ticks + STEP - ticks
        self._picture, self._ticks = picture, ticks + self._shift
        self._write(picture, self._ticks)

    def _open(self, picture: Image.Image) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._container = self._av.open(
            str(self._part), 'w', format='mp4', options={'movflags': '+faststart'})
        encoder = next(name for name in ENCODERS if name in self._av.codecs_available)
        self._stream = self._container.add_stream(encoder, rate=25, options=OPTIONS[encoder])
        self._stream.width, self._stream.height = picture.width, picture.height - picture.height % 2
        self._stream.pix_fmt = 'yuv420p'
        self._stream.codec_context.time_base = Fraction(1, TICKS)

    def _write(self, picture: Image.Image, ticks: int) -> None:
        frame = self._av.VideoFrame.from_image(
            picture.crop((0, 0, self._stream.width, self._stream.height)))
        frame.pts, frame.time_base = ticks, Fraction(1, TICKS)
        self._container.mux(self._stream.encode(frame))
