"""Names of episodes, which are names of files too."""

from __future__ import annotations

import re
from typing import Iterable

# File systems allow 255; what is written about an episode adds to it.
MAX_BYTES = 150


def path_name(*parts: str) -> str:
    """One name of all parts, fit for a path below a folder; 'episode' where nothing of them is left.

    Letters, digits, '.', '-' and '_' stay as they are. A part that is too long loses its end.
    """
    limit = MAX_BYTES // max(1, len(parts)) - 1
    words = (
        re.sub(r'[^\w.-]+', '_', part).strip('._-').encode()[:limit].decode(errors='ignore').rstrip('._-')
        for part in parts)
    return '-'.join(word for word in words if word) or 'episode'


def unique_names(names: Iterable[str]) -> list[str]:
    """The names in order; what an earlier one has, in capitals or not, gets the next free _2, _3, ..."""
    taken: set[str] = set()
    result = []
    for name in names:
        free, number = name, 1
        while free.casefold() in taken:
            number += 1
            free = f'{name}_{number}'
        taken.add(free.casefold())
        result.append(free)
    return result
