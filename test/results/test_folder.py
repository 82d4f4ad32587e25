"""Scores of recordings are written and read back as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.results import files
from densereward_ros.results.folder import TABLES, read_results, write_results
from densereward_ros.results.rows import Results, ScoredEpisode, ScoredEvent, ScoredFrame
from densereward_ros.types import FAILURES, REASONS, Reason, Rule

FRAME = ScoredFrame(
    frame=4, stamp_ns=1_700_000_000_123_456_789, seconds=0.4, segment=1, reward=0.123,
    reason=Reason.MISS, reason_probabilities=(0.1, 0.5, 0.1, 0.1, 0.1, 0.1), target=0.25)
MALFORMED = ScoredFrame(
    frame=6, stamp_ns=600_000_000, seconds=0.6, segment=1, reward=None, malformed='no reward')
EVENT = ScoredEvent(600_000_000, 0.6, Reason.FALL, Rule.WORD, 0.2, None, 0.9, 2)
EPISODE = ScoredEpisode(
    'run/1', 'bags/run', '/camera', 'stack, "the" cup',
    Labels(False, (LabelledFailure(0.5, Reason.FALL),), ((0.0, 0.0), (1.0, 0.5))),
    (FRAME, MALFORMED), (EVENT,), 3)
RESULTS = Results(
    (EPISODE,), {'model': 'tabletop', 'options': {'frame_interval': 0.2}}, (('bad.mp4', 'empty'),))


@pytest.mark.parametrize('table', TABLES)
def test_what_was_written_is_read(tmp_path, table):
    """Every field of every row, the labels, the failed recordings and the provenance."""
    write_results(RESULTS, tmp_path / 'out', table)
    assert read_results(tmp_path / 'out') == RESULTS
    assert sorted(file.name for file in (tmp_path / 'out').iterdir()) == [
        'episodes.json', f'events.{table}', f'frames.{table}', 'run.json']


finite = st.floats(allow_nan=False, allow_infinity=False)
text = st.text(st.characters(blacklist_categories=('Cs',), blacklist_characters='\0\r'), max_size=12)
frames = st.builds(
    ScoredFrame, st.integers(0, 2**40), st.integers(0, 2**62), finite, st.integers(0, 99),
    st.none() | finite, st.sampled_from(Reason),
    st.none() | st.tuples(*[st.floats(0, 1)] * len(REASONS)), text, st.none() | st.floats(0, 1))
events = st.builds(
    ScoredEvent, st.integers(0, 2**62), finite, st.sampled_from(FAILURES), st.sampled_from(Rule), finite,
    st.none() | finite, st.none() | st.floats(0, 1), st.integers(1, 99))
labels = st.builds(
    Labels, st.none() | st.booleans(),
    st.none() | st.lists(st.builds(LabelledFailure, finite, st.sampled_from(Reason)), max_size=2).map(tuple),
    st.none() | st.lists(st.tuples(finite, st.floats(0, 1)), max_size=2).map(tuple))
episodes = st.builds(
    ScoredEpisode, text, text, text, text, labels, st.lists(frames, max_size=3).map(tuple),
    st.lists(events, max_size=2).map(tuple), st.none() | st.integers(0, 9))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(episodes, max_size=3, unique_by=lambda episode: episode.name), st.sampled_from(TABLES))
def test_any_scores_come_back(tmp_path, episodes, table):
    """Names with commas, quotes and line breaks; numbers to the last bit; episodes without a row."""
    results = Results(tuple(episodes), {}, ())
    write_results(results, tmp_path, table)
    assert read_results(tmp_path) == results


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    """The second run cannot write its table: the first one's is still whole, and nothing lies beside it."""
    write_results(RESULTS, tmp_path)

    def full(*_):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(files.os, 'replace', full)
    with pytest.raises(OSError, match='No space left'):
        write_results(Results(()), tmp_path)
    assert read_results(tmp_path) == RESULTS
    assert not list(tmp_path.glob('.*'))


def test_the_other_kind_of_table_does_not_stay(tmp_path):
    """Or the next reader would find the old one."""
    write_results(RESULTS, tmp_path, 'parquet')
    write_results(Results((EPISODE, )), tmp_path, 'csv')
    assert not list(tmp_path.glob('*.parquet'))


@pytest.mark.parametrize('spoil, line', [
    (lambda out: (out / 'run.json').unlink(), 'run.json cannot be read'),
    (lambda out: (out / 'run.json').write_text('{'), 'run.json: not JSON'),
    (lambda out: (out / 'frames.parquet').unlink(), 'there is no frames.parquet and no frames.csv'),
    (lambda out: (out / 'frames.parquet').write_bytes(b'PAR1'), 'frames.parquet: not a table of scores'),
    (lambda out: (out / 'episodes.json').write_text(json.dumps({'episodes': [], 'failed': []})),
     'its files do not belong together'),
    (lambda out: (out / 'episodes.json').write_text('[]'), 'its files do not belong together'),
])  # fmt: skip
def test_a_spoilt_folder_is_refused_in_one_line(tmp_path: Path, spoil, line):
    """The line names the folder or the file."""
    write_results(RESULTS, tmp_path)
    spoil(tmp_path)
    with pytest.raises(RecordingError, match=line) as refusal:
        read_results(tmp_path)
    assert str(tmp_path) in str(refusal.value) and '\n' not in str(refusal.value)
