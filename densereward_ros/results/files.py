"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable


def in_one_step(file: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside it, then put it in place. Raises what `write` raises, and leaves no part behind.

    write: is given the path to write to.
    """
    part = file.with_name(f'.{file.name}.part')
    try:
        write(part)
        os.replace(part, file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
