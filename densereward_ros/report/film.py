"""The film strip of an episode: which of its windows it shows, and their newest frames as small pictures."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Sequence

from densereward_ros.report.timeline import Moment, Timeline, choose_frames
from densereward_ros.results.rows import ScoredEpisode

if TYPE_CHECKING:
    import numpy as np

PICTURES = 8
LEAST_DENSITY = 0.06  # bytes of a data URI a pixel: half of what most pictures need
# Width in pixels and quality, from the best to the least: 125 wide on a desk, twice that on a fine screen.
_SIZES = ((256, 78), (256, 60), (192, 60), (160, 55), (128, 50), (96, 45), (64, 35), (32, 30))


@dataclass(frozen=True)
class Still:
    """One picture of the strip: at a time in seconds, as a data URI, width and height in pixels."""

    seconds: float
    uri: str
    width: int
    height: int


def choose(episode: ScoredEpisode, most: int = PICTURES) -> list[int]:
    """Indices into episode.frames: those at events and labelled failures first, the rest spread over time."""
    moments = [*_spread(episode.events, most), *_spread(episode.labels.failures or (), most)]
    first = min((frame.seconds for frame in episode.frames), default=0.0)
    last = max((frame.seconds for frame in episode.frames), default=0.0)
    return choose_frames(
        Timeline('', max(last - first, 1e-3), frames=[(frame.seconds, None) for frame in episode.frames],
                 failures=[Moment(moment.seconds, '') for moment in moments]),
        most)


def _spread(moments: Sequence, most: int) -> Sequence:
    """At most so many of them, evenly over all."""
    if len(moments) <= most:
        return moments
    return [moments[i * len(moments) // most] for i in range(most)]


def still(seconds: float, image: np.ndarray, most_bytes: int) -> Still:
    """The picture of a frame, uint8 (height, width, 3) RGB, at the best size and quality within the bytes.

    Where even the least is larger, that is it: about one kilobyte.
    """
    from PIL import Image, features

    kind, options = ('webp', {'method': 2}) if features.check('webp') else ('jpeg', {'optimize': True})
    whole = Image.fromarray(image)
    for width, quality in _SIZES:
        scale = min(1.0, width / whole.width, width / whole.height)
        size = max(1, round(scale * whole.width)), max(1, round(scale * whole.height))
        if LEAST_DENSITY * size[0] * size[1] > most_bytes and width > _SIZES[-1][0]:
            continue
        picture = whole.resize(size, reducing_gap=2.0)
        file = io.BytesIO()
        picture.save(file, kind, quality=quality, **options)
        uri = f'data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode("ascii")}'
        if len(uri) <= most_bytes:
            break
    return Still(seconds, uri, picture.width, picture.height)
