"""Byte counts as people write them."""

from __future__ import annotations


def human_bytes(count: float) -> str:
    """A number of bytes in decimal units with two significant places, such as '8.9 GB'."""
    for unit in ('bytes', 'kB', 'MB'):
        if count < 999.5:
            return f'{count:.0f} {unit}'
        count /= 1000
    return f'{count:.1f} GB'
