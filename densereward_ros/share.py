"""What comes with the package beside its modules: message definitions, the demo checkpoint."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def places(name: str) -> list[Path]:
    """Where the folder of that name may be: in the source tree, and under share/ of any install."""
    package = Path(__file__).resolve().parent
    prefixes = [
        *package.parents,  # colcon: <prefix>/lib/python3.X/site-packages/densereward_ros
        Path(sys.prefix),  # pip
        *(Path(prefix) for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if prefix),
    ]
    return [package.parent / name, *(prefix / 'share' / 'densereward_ros' / name for prefix in prefixes)]
