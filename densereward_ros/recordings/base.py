"""What every recording format gives: images in time order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator, Protocol

if TYPE_CHECKING:
    import numpy as np


class RecordingError(ValueError):
    """A recording that cannot be used; the text names it, what was seen and what is allowed."""


class Recording(Protocol):
    """Images of one camera that can be read as often as needed, always from the start.

    name: what to call it in a message to the user.
    rate: its own frames per second, on average; greater than 0.
    """

    name: str
    rate: float

    def frames(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield (seconds since the first frame, uint8 image of shape (height, width, 3), RGB).

        The seconds start at 0 and never decrease. Raises RecordingError at the first frame
        that cannot be read.
        """
