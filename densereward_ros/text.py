"""Text from outside, made safe for one line of a log."""

from __future__ import annotations

MAX_LINE = 1000


def one_line(text: str, limit: int = MAX_LINE) -> str:
    r"""Line breaks and other control or invisible characters as \n, \x1b and so on; printable text as it is.

    limit: of the characters that are returned; a longer text ends in three dots.
    """
    line = ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: limit + 1])
    return line if len(line) <= limit else line[: limit - 3] + '...'
