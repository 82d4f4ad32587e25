"""Folders of images, one file a frame."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Iterator

from densereward_ros.recordings.base import RecordingError

if TYPE_CHECKING:
    import numpy as np

SUFFIXES = ('.png', '.jpg', '.jpeg', '.bmp', '.webp', '.ppm')
# Pillow clips these to 8 bits when it converts them: the picture would be white.
DEEP_MODES = ('I', 'F', 'I;16', 'I;16B', 'I;16L', 'I;16N')


class ImageFolder:
    """The images of a folder, sorted as a person counts (frame2 before frame10); a Recording."""

    def __init__(self, path: str | Path, rate: float) -> None:
        """List the folder and read its first image, so that a bad folder is refused at once.

        rate: frames per second, greater than 0. Raises RecordingError.
        """
        self.path = Path(path)
        self.name = self.path.name
        self.rate = rate
        if not self.path.is_dir():
            raise RecordingError(f'{self.path}: not a folder; allowed is a folder of images')
        if not rate > 0:
            raise RecordingError(
                f'{self.path}: a folder of images has no rate of its own, and the rate given is {rate}; '
                'allowed is a rate above 0'
            )
        self.files = sorted(
            (file for file in self.path.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file()),
            key=lambda file: _natural(file.name),
        )
        if not self.files:
            raise RecordingError(f'{self.path}: no image in this folder; allowed are {", ".join(SUFFIXES)}')
        next(self.frames())

    def frames(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield (seconds since the first frame, uint8 RGB image of shape (height, width, 3)).

        Raises RecordingError.
        """
        for index, file in enumerate(self.files):
            yield index / self.rate, _read(file)


def _natural(name: str) -> tuple[tuple[str, int], ...]:
    """Split a name into (text, number) pairs, so that numbers compare as numbers; the name breaks ties."""
    pairs = re.findall(r'(\D*)(\d*)', name)
    return (*((text.lower(), int(digits or -1)) for text, digits in pairs), (name, 0))


def _read(file: Path) -> np.ndarray:
    import numpy as np
    from PIL import Image, ImageOps

    try:
        with Image.open(file) as picture:
            if picture.mode in DEEP_MODES:
                raise RecordingError(
                    f'{file}: a picture of mode {picture.mode}, as depth has; allowed are 8-bit pictures')
            return np.array(ImageOps.exif_transpose(picture).convert('RGB'))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(
            f'{file}: not an image that can be read ({error}); allowed are {", ".join(SUFFIXES)}') from error
