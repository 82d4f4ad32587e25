"""Multimodal rotary positions (M-RoPE) of a prompt, made by hand.

They equal the model's own `get_rope_index`, whose signature differs between releases of
transformers and which wants the whole prompt where the engine reads only its end.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

Span = int | tuple[int, int]
"""A run of text, as its number of tokens, or a picture, as its rows and columns of tokens."""


def rope_positions(spans: Iterable[Span]) -> tuple[np.ndarray, int]:
    """Positions (3, tokens), in time, height and width, and the position of whatever comes next.

    A text token takes one step in all three. A picture stands still in time, its rows and columns
    count from where it begins, and what follows begins after the longer side.
    """
    parts, here = [], 0
    for span in spans:
        if isinstance(span, int):
            parts.append(np.broadcast_to(np.arange(here, here + span), (3, span)))
            here += span
        else:
            rows, columns = span
            parts.append(here + np.indices((1, rows, columns)).reshape(3, -1))
            here += max(rows, columns)
    return np.concatenate(parts, axis=1), here
