"""What the vision tower sees in a frame, computed once for all the windows that the frame slides through."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from densereward_ros.models.fast import versions
from densereward_ros.models.prompt import picture
from densereward_ros.models.reference import checked_image

if TYPE_CHECKING:
    import torch

    from densereward_ros.models.loading import LoadedModel
    from densereward_ros.types import Frame

# A window needs three frames a camera. Whoever keeps more frames alive than this (a recording, say)
# does not thereby keep their features.
MAX_FRAMES = 32


@dataclass(frozen=True, eq=False)
class Features:
    """A frame as the language model reads it.

    serial: a number that no other features ever had. rows, columns: of image tokens.
    tokens: (rows * columns, hidden). deepstack: the same shape, one for each of the language
    model's first layers.
    """

    serial: int
    rows: int
    columns: int
    tokens: torch.Tensor
    deepstack: tuple[torch.Tensor, ...]


class FeatureCache:
    """Features by the identity of their frame; those of a frame that nobody holds any more are gone."""

    def __init__(self, loaded: LoadedModel, keep: bool = True) -> None:
        """keep: false encodes every frame of every window anew."""
        self.encoded = 0  # frames that went through the vision tower
        self._loaded = loaded
        self._limit = MAX_FRAMES if keep else 0
        self._serials = itertools.count()
        self._features: weakref.WeakKeyDictionary[Frame, Features] = weakref.WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._features)

    def of(self, frames: Iterable[Frame]) -> dict[Frame, Features]:
        """The features of frames; those not yet known are computed together. Raises ImageError."""
        wanted = dict.fromkeys(frames)
        # Taken out and put back at the end: the dictionary's order says which were used least recently.
        found = {frame: self._features.pop(frame) for frame in wanted if frame in self._features}
        missing = [frame for frame in wanted if frame not in found]
        try:
            if missing:
                found.update(zip(missing, self._encode(missing)))
        finally:
            self._features.update(found)
            while len(self._features) > self._limit:
                del self._features[next(iter(self._features))]
        return found

    def forget(self, frames: Iterable[Frame]) -> None:
        """Drop the features of these frames."""
        for frame in frames:
            self._features.pop(frame, None)

    def clear(self) -> None:
        """Drop all features."""
        self._features.clear()

    def _encode(self, frames: list[Frame]) -> list[Features]:
        import torch

        network = self._loaded.network
        vision = network.model.visual
        pixels, grids = zip(*(self._pixels(frame) for frame in frames))
        grid = torch.cat(grids)
        tokens, deepstack = versions.see(
            vision, torch.cat(pixels).to(network.device, vision.dtype), grid.to(network.device)
        )
        self.encoded += len(frames)
        merge = vision.spatial_merge_size
        shapes = [(rows // merge, columns // merge) for _, rows, columns in grid.tolist()]
        sizes = [rows * columns for rows, columns in shapes]
        # Of its own, not a view: a view would keep the features of all frames of this call alive.
        layers = [[part.clone() for part in layer.split(sizes)] for layer in (tokens, *deepstack)]
        return [
            Features(next(self._serials), *shape, parts[0], tuple(parts[1:]))
            for shape, *parts in zip(shapes, *layers)
        ]

    def _pixels(self, frame: Frame) -> tuple[torch.Tensor, torch.Tensor]:
        """Patches and grid of one frame, to the pixel those of the reference, which takes three at once."""
        from PIL import Image
        from qwen_vl_utils import process_vision_info

        shown = picture(Image.fromarray(checked_image(frame)), self._loaded.max_pixels)
        images, _ = process_vision_info([{'role': 'user', 'content': [shown]}])
        processed: Any = self._loaded.processor.image_processor(images=images, return_tensors='pt')
        return processed['pixel_values'], processed['image_grid_thw']
