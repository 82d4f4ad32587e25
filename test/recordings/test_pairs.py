"""Files of pairs: what they say, and what is wrong with them in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.pairs import Pair, read_pairs


def write(folder: Path, text: str) -> Path:
    """A file of pairs."""
    file = folder / 'pairs.yaml'
    file.write_text(text, encoding='utf-8')
    return file


def test_common_values_and_own_ones(tmp_path):
    """What the file says of all pairs holds where a pair says nothing else; paths begin at the file."""
    file = write(tmp_path, """
        task: stack the cup
        rate: 10
        pairs:
          - {preferred: run_01.mp4, other: ../run_02.mp4}
          - {preferred: a, other: run_01.mp4, task: open the drawer, rate: 5.5, subset: drawers}
        """)
    assert read_pairs(file) == [
        Pair(tmp_path / 'run_01.mp4', tmp_path / '../run_02.mp4', 'stack the cup', 10.0, ''),
        Pair(tmp_path / 'a', tmp_path / 'run_01.mp4', 'open the drawer', 5.5, 'drawers')]


@pytest.mark.parametrize(('text', 'line'), [
    ('pairs: []', 'names no pairs; allowed is a list of at least one under pairs:'),
    ('- 1', 'names no pairs; allowed is a list of at least one under pairs:'),
    ('a: [', 'not YAML (while parsing a flow node)'),
    ('task: x\nbest: 1\npairs: [{preferred: a, other: b}]',
     "the file has 'best'; allowed: pairs, task, rate, subset"),
    ('task: x\npairs: [3]', 'pair 1 is 3; allowed are preferred, other, task, rate, subset'),
    ('task: x\npairs: [{preferred: a, other: b}, {preferred: a, worse: b}]',
     "pair 2 has 'worse'; allowed: preferred, other, task, rate, subset"),
    ('task: x\npairs: [{preferred: a}]',
     'other of pair 1 is not given; allowed: a recording, relative to this file'),
    ('pairs: [{preferred: a, other: b}]', 'task of pair 1 is not given; allowed: one line of text'),
    ("task: ' '\npairs: [{preferred: a, other: b}]", "task of pair 1 is ' '; allowed: one line of text"),
    ('task: x\npairs: [{preferred: a, other: b, rate: -1}]',
     'rate of pair 1 is -1; allowed: frames a second, 0 or more'),
    ('task: x\npairs: [{preferred: a, other: b, rate: .nan}]',
     'rate of pair 1 is nan; allowed: frames a second, 0 or more'),
    ('task: x\npairs: [{preferred: a, other: b, subset: 3}]',
     'subset of pair 1 is 3; allowed: one line of text'),
    ('task: x\npairs: [{preferred: a, other: ./a}]',
     'pair 1 has ./a on both sides; allowed are two different recordings'),
])
def test_what_is_wrong_is_one_line(tmp_path, text, line):
    """The file, the pair, the value seen and what is allowed."""
    file = write(tmp_path, text)
    with pytest.raises(RecordingError) as caught:
        read_pairs(file)
    assert str(caught.value) == f'{file}: {line}'


def test_a_file_that_is_not_there(tmp_path):
    """Named with what is allowed."""
    with pytest.raises(RecordingError, match='No such file or directory.*allowed is a file of pairs'):
        read_pairs(tmp_path / 'none.yaml')


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(['pairs', 'task', 'rate', 'subset', 'preferred', 'other', 'x']), inner, max_size=4))


@settings(max_examples=50)
@given(ANYTHING)
def test_whatever_a_file_holds_it_is_read_or_refused(tmp_path_factory, content):
    """No other error than RecordingError."""
    file = write(tmp_path_factory.getbasetemp(), yaml.safe_dump(content))
    try:
        assert all(isinstance(pair, Pair) for pair in read_pairs(file))
    except RecordingError as error:
        assert '\n' not in str(error)
