"""What differs between the releases of transformers that the engine runs on (4.57 and later)."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def cache_argument(language_model: Any) -> str:
    """What the language model's forward calls its key/value cache: `cache` since 5.24."""
    parameters = inspect.signature(inspect.unwrap(type(language_model).forward)).parameters
    return 'cache' if 'cache' in parameters else 'past_key_values'


def see(vision: Any, pixels: torch.Tensor, grids: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Merged and deepstack features of images: a tuple in 4.57, an object in 5."""
    seen = vision(pixels, grid_thw=grids)
    return seen if isinstance(seen, tuple) else (seen.pooler_output, seen.deepstack_features)
