"""docs/serving.md quotes the committed figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def lines(repository: Path) -> list[str]:
    """Of the page."""
    return (repository / 'docs' / 'serving.md').read_text().splitlines()


def test_the_jpeg_table_is_that_of_the_benchmark(repository, lines):
    """A row for each format."""
    found = json.loads((repository / 'benchmark' / 'jpeg.json').read_text())['formats']
    assert len(found) == 4
    for name, row in found.items():
        shown = name.replace(' ', ', quality ')
        assert (
            f'| {shown} | {row["equal_words"]:.4f} | {row["mean_difference"]:.4f} '
            f'| {row["largest_difference"]:.3f} | {row["bytes_a_frame"]} |') in lines


def test_the_fleet_table_is_that_of_the_benchmark(repository, lines):
    """A row for each number of robots, and where it saturates."""
    found = json.loads((repository / 'benchmark' / 'fleet.json').read_text())
    for row in found['levels']:
        assert (
            f'| {row["robots"]} | {row["asked_hz"]:g} | {row["verdicts_hz"]:.1f} | {row["age_p50_s"]:.2f} '
            f'| {row["age_p95_s"]:.2f} | {row["jain"]:.2f} | {row["unanswered"]} |') in lines
    saturates = f'from {found["saturated_from_robots"]} robots on, at {found["most_verdicts_hz"]:g} verdicts'
    assert any(saturates in line for line in lines)


def test_the_arithmetic_is_that_of_the_script(repository, lines):
    """The table of what a fleet needs; a part of a robot is none."""
    printed = subprocess.run(
        [sys.executable, repository / 'benchmark' / 'needs.py'], capture_output=True, text=True, check=True)
    rows = [line.split() for line in printed.stdout.splitlines()[2:6]]
    assert len(rows) == 4
    for *cells, fast, fast_robots, slow, slow_robots in rows:
        whole = [fast, str(int(float(fast_robots))), slow, str(int(float(slow_robots)))]
        assert f'| {" | ".join([*cells, *whole])} |' in lines
