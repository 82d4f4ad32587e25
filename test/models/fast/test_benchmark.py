"""The benchmark runs, and its figures say what the engine promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.usefixtures('trained')
def test_the_benchmark_writes_its_figures(repository, tmp_path):
    """A few windows of the demo: every stage is there, no reply differs, and each pass saved is seen."""
    script, output = repository / 'benchmark' / 'engine.py', tmp_path / 'engine.json'
    limits = ['--seconds', '5', '--windows', '12']
    command = [sys.executable, script, '--cases', 'demo', 'demo_disjoint', *limits, '--output', output]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, 'OMP_NUM_THREADS': '1'})
    assert done.returncode == 0, done.stderr
    cases = json.loads(output.read_text())['cases']
    assert list(cases) == ['demo', 'demo_disjoint']
    for case in cases.values():
        stages = case['stages']
        assert list(stages)[0] == 'reference'
        assert list(stages)[-1] == 'fast'
        assert all(stage['mismatches'] == stage['near_ties'] for stage in stages.values())
        assert stages['reference']['passes_per_reply'] > 10
        assert stages['fast']['passes_per_reply'] < 4
        assert stages['fast']['ratio'] > 1
