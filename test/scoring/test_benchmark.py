"""The benchmark runs, and its figures are those that the docs tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_the_benchmark_writes_its_figures(repository, tmp_path):
    """One recording: every side is there, and no verdict differs."""
    command = [
        sys.executable, repository / 'benchmark' / 'score.py', '--inputs', 'tabletop:1@29', '--device', 'cpu',
        '--output', tmp_path / 'score.json']
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, 'OMP_NUM_THREADS': '1'})
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / 'score.json').read_text())
    assert list(figures['frames_per_second']) == ['reference_loop', 'fast_loop', 'score']
    assert set(figures['verdicts_differing'].values()) == {0}
    assert figures['windows'] > 10
    assert figures['processor_ratio'] > 2


def test_the_docs_tell_the_figures_of_the_file(repository):
    """And these pass the bar: twice a loop of single calls."""
    figures = json.loads((repository / 'benchmark' / 'score.json').read_text())
    scoring = (repository / 'docs' / 'scoring.md').read_text(encoding='utf-8')
    cluster = (repository / 'docs' / 'cluster.md').read_text(encoding='utf-8')
    rates = figures['frames_per_second']
    for side in ('reference_loop', 'fast_loop', 'score'):
        assert f'| {rates[side]:.1f} | {rates[side] / rates["reference_loop"]:.2f} |' in scoring
    assert f'worth {figures["ratio_to_fast_loop"]:.2f} times' in scoring
    assert f'no verdict of the {figures["windows"]} differed' in scoring
    assert f'| {rates["score"]:.1f} | 1 | {rates["score"] * 86_400 / 1e6:.1f} million |' in cluster
    assert figures['ratio'] >= 2 and set(figures['verdicts_differing'].values()) == {0}
