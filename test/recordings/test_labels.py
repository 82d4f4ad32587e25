"""The label file: what it may hold, and one line for what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.recordings.labels import LabelledRecording, read_labels
from densereward_ros.types import Reason

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
        LabelledRecording(tmp_path / 'a', 'stack the cup', Labels(True), 10.0),
        LabelledRecording(
            tmp_path / 'b.mp4', 'open the drawer', Labels(False, (LabelledFailure(3.0),)), 5.0)]
    assert read_labels(file) == read_labels(tmp_path) == expected


def test_failures_and_progress(tmp_path):
    """Failures in time order whatever theirs in the file; none is not the same as nobody knows."""
    file = write(tmp_path, {'task': 'x', 'episodes': [
        {'path': 'a', 'success': True, 'failures': [{'at': 4, 'reason': 'miss'}, {'at': 1.5}],
         'progress': [[0, 0], [3.5, 0.5], [9, 1]]},
        {'path': 'b', 'failures': []},
        {'path': 'c', 'success': None, 'failed_at': None}]})
    labels = [recording.labels for recording in read_labels(file)]
    assert labels == [
        Labels(
            True, (LabelledFailure(1.5), LabelledFailure(4.0, Reason.MISS)),
            ((0.0, 0.0), (3.5, 0.5), (9.0, 1.0))),
        Labels(failures=()),
        Labels()]


def test_progress_between_its_points():
    """On a straight line from one to the next, exact on each; before the first and after the last unknown."""
    labels = Labels(progress=((1.0, 0.0), (3.0, 0.5), (4.0, 0.1)))
    assert [labels.progress_at(seconds) for seconds in (1.0, 2.0, 3.0, 4.0)] == [0.0, 0.25, 0.5, 0.1]
    assert labels.progress_at(3.5) == pytest.approx(0.3)
    assert labels.progress_at(0.99) is None and labels.progress_at(4.01) is None
    assert Labels().progress_at(1.0) is None


@pytest.mark.parametrize(('content', 'words'), [
    ({'episodes': []}, 'the list of episodes is empty'),
    ({'episodes': 3}, 'names no episodes'),
    ([GOOD], 'names no episodes'),
    ({'episodes': [GOOD], 'tasks': 'x'}, "the file has 'tasks'; allowed: episodes, task, rate"),
    ({'episodes': [GOOD, 'b.mp4']}, "episode 2 is 'b.mp4'"),
    ({'episodes': [GOOD | {'sucess': True}]}, "episode 1 has 'sucess'; allowed: path, success"),
    ({'episodes': [GOOD | {'path': 7}]}, 'path of episode 1 is 7; allowed: a file or folder'),
    ({'episodes': [{'path': 'a', 'success': True}]}, 'task of episode 1 is not given'),
    ({'episodes': [GOOD | {'success': 'yes'}]}, "success of episode 1 is 'yes'; allowed: true or false"),
    ({'episodes': [GOOD | {'success': 1}]}, 'success of episode 1 is 1; allowed: true or false'),
    ({'episodes': [GOOD | {'rate': -1}]}, 'rate of episode 1 is -1; allowed: frames a second'),
    ({'episodes': [GOOD | {'rate': True}]}, 'rate of episode 1 is True; allowed: frames a second'),
    ({'episodes': [GOOD | {'failed_at': 1.0}]}, 'episode 1 is a success with failed_at'),
    ({'episodes': [GOOD | {'success': False, 'failed_at': float('nan')}]}, 'failed_at of episode 1 is nan'),
    ({'episodes': [GOOD | {'success': False, 'failed_at': 1, 'failures': []}]},
     'episode 1 has failed_at and failures; allowed is one of the two'),
    ({'episodes': [GOOD | {'failures': 3.5}]}, 'failures of episode 1 is 3.5; allowed: a list'),
    ({'episodes': [GOOD | {'failures': [3.5]}]}, 'failure 1 of episode 1 is 3.5; allowed are at, reason'),
    ({'episodes': [GOOD | {'failures': [{'at': 1}, {'reason': 'miss'}]}]},
     'at of failure 2 of episode 1 is not given; allowed: seconds from the first frame'),
    ({'episodes': [GOOD | {'failures': [{'at': -1}]}]}, 'at of failure 1 of episode 1 is -1'),
    ({'episodes': [GOOD | {'failures': [{'at': 1, 'reason': 'correct'}]}]},
     "reason of failure 1 of episode 1 is 'correct'; allowed: miss, collision, fall, smooth, failure"),
    ({'episodes': [GOOD | {'failures': [{'at': 1, 'reason': ['miss']}]}]}, "episode 1 is ['miss']; allowed"),
    ({'episodes': [GOOD | {'failures': [{'at': 1, 'why': 'miss'}]}]},
     "failure 1 of episode 1 has 'why'; allowed: at, reason"),
    ({'episodes': [GOOD | {'progress': 0.5}]}, 'progress of episode 1 is 0.5; allowed: two or more points'),
    ({'episodes': [GOOD | {'progress': [[0, 0]]}]}, 'progress of episode 1 is [[0, 0]]; allowed'),
    ({'episodes': [GOOD | {'progress': [[0, 0], 1]}]}, 'point 2 of the progress of episode 1 is 1; '),
    ({'episodes': [GOOD | {'progress': [[0, 0], [1, 1.5]]}]},
     'point 2 of the progress of episode 1 is [1, 1.5]; allowed: a progress from 0 to 1'),
    ({'episodes': [GOOD | {'progress': [[2, 0], [2, 1]]}]},
     'point 2 of the progress of episode 1 is [2, 1]; allowed: a time after the point before it, at 2 s'),
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
        st.sampled_from([
            'path', 'task', 'success', 'rate', 'failed_at', 'failures', 'progress', 'at', 'reason', 'x']),
        inner, max_size=5),
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


number = st.integers(0, 1000) | st.floats(0, 1000)
points = st.dictionaries(number, st.floats(0, 1), min_size=2, max_size=4).map(
    lambda by_time: [[at, value] for at, value in sorted(by_time.items())])
failure = st.fixed_dictionaries(
    {'at': number}, optional={'reason': st.sampled_from(['miss', 'collision', 'fall', 'smooth', 'failure'])})
good = st.fixed_dictionaries(
    {'path': st.just('a.mp4'), 'task': st.just('stack')},
    optional={'success': st.booleans(), 'failures': st.lists(failure, max_size=3), 'progress': points})


@settings(max_examples=40)
@given(entries=st.lists(good, min_size=1, max_size=3))
def test_whatever_is_allowed_is_kept(tmp_path_factory, entries):
    """Every number and word of the file, and nothing that it does not say."""
    found = read_labels(write(tmp_path_factory.mktemp('labels'), {'episodes': entries}))
    for entry, recording in zip(entries, found, strict=True):
        labels = recording.labels
        assert labels.success == entry.get('success')
        assert (labels.failures is None) == ('failures' not in entry)
        assert sorted((failure.seconds, failure.reason.word) for failure in labels.failures or ()) == sorted(
            (failure['at'], failure.get('reason', 'none')) for failure in entry.get('failures', ()))
        assert (labels.progress is None) == ('progress' not in entry)
        for at, value in entry.get('progress', ()):
            assert labels.progress_at(at) == value
