"""Lets the tests of this folder import clips.py."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # pytest's import mode leaves the tests' folder out
