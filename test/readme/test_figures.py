"""README, docs and benchmark/*.json tell the same, about the checkpoint that is there."""

from __future__ import annotations

import hashlib
import json
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
def test_the_docs_quote_the_figures(repository, results, name):
    """Value, interval and unseen shades, to three decimals."""
    key = ROWS[name]
    low, high = results['intervals'][key]
    value, unseen = (_look_up(part, key) for part in (results, results['held_out_shades']))
    row = f'| {name} | {value:.3f} | {low:.3f} to {high:.3f} | {unseen:.3f} |'
    assert row in (repository / 'docs' / 'demo_checkpoint.md').read_text().splitlines()


def test_the_readme_quotes_the_most_telling_figures(repository, results):
    """One sentence each of what docs/ has in full."""
    text = ' '.join((repository / 'README.md').read_text().split())
    events, engine = (
        json.loads((repository / 'benchmark' / name).read_text()) for name in ('events.json', 'engine.json'))
    detector, fast = events['before_calibration'], engine['cases']['demo']['stages']['fast']
    words, drop, level = (
        events[rule]['f1'] for rule in ('single_verdict_words', 'reward_drop', 'reward_threshold'))
    assert detector['false_alarms_per_episode'] == 0
    for sentence in (
            f'F1 of {detector["f1"]:.3f} with no false alarm',
            f'within {detector["median_delay_of_found_s"]:.2f} s of the failure',
            f'reach {words:.3f}, the best drop of the reward {drop:.3f}, the best level {level:.3f}',
            f'correlation of {results["spearman"]:.3f} and a mean absolute error of {results["mae"]:.3f}',
            f'{fast["ratio"]:.1f} times as fast, with {fast["passes_per_reply"]:.2f} passes'):
        assert sentence in text


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
