"""README and benchmark/demo.json tell the same about the checkpoint that is there."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

ROWS = {
    'Spearman of reward and truth': 'spearman',
    'mean absolute error of the reward': 'mae',
    'malformed replies': 'malformed_rate',
    'failure words in clean episodes': 'false_failure_rate',
    'false alarms a minute in clean episodes, after 2 confirmations': 'false_alarms_per_minute',
    'failures that gave their event': 'events_found',
    'lower final reward when the task names another block': 'wrong_task_lower_rate',
    'lower final reward when the task names another plate': 'wrong_plate_lower_rate',
    'windows named right: correct': 'word_accuracy.correct',
    'miss': 'word_accuracy.miss',
    'collision': 'word_accuracy.collision',
    'fall': 'word_accuracy.fall',
    'smooth': 'word_accuracy.smooth',
    'failure': 'word_accuracy.failure',
}


@pytest.fixture(scope='module')
def results(repository: Path) -> dict:
    """The committed figures."""
    return json.loads((repository / 'benchmark' / 'demo.json').read_text())


@pytest.mark.parametrize('name', ROWS)
def test_the_readme_quotes_the_figures(repository, results, name):
    """Value, interval and unseen shades, to three decimals."""
    key = ROWS[name]
    low, high = results['intervals'][key]
    value, unseen = (_look_up(part, key) for part in (results, results['held_out_shades']))
    row = f'| {name} | {value:.3f} | {low:.3f} to {high:.3f} | {unseen:.3f} |'
    section = re.split('^## ', (repository / 'README.md').read_text(), flags=re.M)
    [demo] = [text for text in section if text.startswith('The demo checkpoint\n')]
    assert row in demo.splitlines()


def test_the_figures_are_of_the_committed_checkpoint(repository, results):
    """Two hundred episodes, scored with the very files in models/tabletop."""
    assert results['configuration']['episodes'] == 200
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (repository / 'models' / 'tabletop').iterdir()
    }
    assert results['model']['sha256'] == files


def _look_up(results: dict, key: str) -> float:
    for part in key.split('.'):
        results = results[part]
    return results
