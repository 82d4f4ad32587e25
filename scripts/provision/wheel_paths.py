"""Point the CMake files of the ROS wheels at this virtual environment's Python and numpy headers.

The wheels carry the include folders of the machine that built them, and CMake refuses folders that do not
exist. Run with the interpreter of the virtual environment; running it again changes nothing.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

import numpy

BUILDERS_PREFIX = r'/opt/python/[^/;"\s]+'
NUMPY_HEADERS = re.compile(BUILDERS_PREFIX + r'/lib/[^;"\s]*/numpy/_?core/include')
PYTHON_HEADERS = re.compile(BUILDERS_PREFIX + r'/include/python[0-9.]+')


def fix_folder(share: Path, python_headers: str, numpy_headers: str) -> int:
    """Rewrite share/*/cmake/*.cmake; returns the number of files that changed."""
    changed = 0
    for path in sorted(share.glob('*/cmake/*.cmake')):
        text = path.read_text(encoding='utf-8')
        fixed = NUMPY_HEADERS.sub(lambda _: numpy_headers, text)
        fixed = PYTHON_HEADERS.sub(lambda _: python_headers, fixed)
        if fixed != text:
            path.write_text(fixed, encoding='utf-8')
            changed += 1
    return changed


if __name__ == '__main__':
    fix_folder(Path(sys.prefix) / 'share', sysconfig.get_paths()['include'], numpy.get_include())
