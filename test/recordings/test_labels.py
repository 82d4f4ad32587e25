"""The label file: what it may hold, and one line for what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.labels import LabelledRecording, read_labels

GOOD = {'path': 'a.mp4', 'task': 'stack', 'success': True}


def write(folder: Path, content: object) -> Path:
    """A label file with that content."""
    file = folder / 'episodes.yaml'
    file.write_text(yaml.safe_dump(content))
    return file


def test_a_task_and_a_rate_for_all_and_for_one(tmp_path):
    """An episode's own win; paths are relative to the file; the folder stands for the file in it."""
    file = write(tmp_path, {'task': 'stack the cup', 'rate': 10, 'episodes': [
        {'path': 'a', 'success': True},
        {'path': 'b.mp4', 'success': False, 'task': ' open the drawer ', 'failed_at': 3, 'rate': 5.0}]})
    expected = [
        LabelledRecording(tmp_path / 'a', 'stack the cup', True, 10.0, None),
        LabelledRecording(tmp_path / 'b.mp4', 'open the drawer', False, 5.0, 3.0)]
    assert read_labels(file) == read_labels(tmp_path) == expected


@pytest.mark.parametrize(('content', 'words'), [
    ({'episodes': []}, 'the list of episodes is empty'),
    ({'episodes': 3}, 'names no episodes'),
    ([GOOD], 'names no episodes'),
    ({'episodes': [GOOD], 'tasks': 'x'}, "the file has 'tasks'; allowed: episodes, task, rate"),
    ({'episodes': [GOOD, 'b.mp4']}, "episode 2 is 'b.mp4'"),
    ({'episodes': [GOOD | {'sucess': True}]}, "episode 1 has 'sucess'; allowed: path, success"),
    ({'episodes': [GOOD | {'path': 7}]}, 'path of episode 1 is 7; allowed: a file or folder'),
    ({'episodes': [{'path': 'a', 'success': True}]}, 'task of episode 1 is not given'),
    ({'episodes': [{'path': 'a', 'task': 'x'}]}, 'success of episode 1 is not given; allowed: true or false'),
    ({'episodes': [GOOD | {'success': 'yes'}]}, "success of episode 1 is 'yes'; allowed: true or false"),
    ({'episodes': [GOOD | {'success': 1}]}, 'success of episode 1 is 1; allowed: true or false'),
    ({'episodes': [GOOD | {'rate': -1}]}, 'rate of episode 1 is -1; allowed: frames a second'),
    ({'episodes': [GOOD | {'rate': True}]}, 'rate of episode 1 is True; allowed: frames a second'),
    ({'episodes': [GOOD | {'failed_at': 1.0}]}, 'episode 1 is a success with failed_at'),
    ({'episodes': [GOOD | {'success': False, 'failed_at': float('nan')}]}, 'failed_at of episode 1 is nan'),
])
def test_what_it_may_not_hold_is_one_line(tmp_path, content, words):
    """Each names the file, the episode, the value and what is allowed."""
    file = write(tmp_path, content)
    with pytest.raises(RecordingError) as caught:
        read_labels(file)
    text = str(caught.value)
    assert text.startswith(f'{file}: ') and words in text and '\n' not in text


def test_no_file_and_no_yaml(tmp_path):
    """A folder without labels, a file that is not there, and one that is no YAML."""
    with pytest.raises(RecordingError, match='episodes.yaml: cannot be read .No such file'):
        read_labels(tmp_path)
    (tmp_path / 'x.yaml').write_text('a: [')
    with pytest.raises(RecordingError, match='x.yaml: not YAML'):
        read_labels(tmp_path / 'x.yaml')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(['path', 'task', 'success', 'rate', 'failed_at', 'x']), inner, max_size=5),
    max_leaves=10)


@settings(max_examples=40)
@given(entries=st.lists(JSON, max_size=3))
def test_any_content_is_read_or_refused(tmp_path_factory, entries):
    """Nothing but RecordingError comes out, whatever stands in the file."""
    file = write(tmp_path_factory.mktemp('labels'), {'episodes': entries})
    try:
        found = read_labels(file)
    except RecordingError as error:
        assert '\n' not in str(error)
    else:
        assert len(found) == len(entries)
