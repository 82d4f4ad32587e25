"""A folder of scores belongs to one run at a time, one model and one set of options."""

from __future__ import annotations

import json
import os

import pytest

from densereward_ros.recordings.base import RecordingError
from densereward_ros.scoring.run_folder import RunFolder
from densereward_ros.scoring.run_folder import begin as begun

ASKED = {
    'options': {'model': 'tabletop', 'batch': 8}, 'inputs': {'inputs': ['/a.mp4', '/b.mp4'], 'task': 'x'}}
FACTS = {'model': 'tabletop', 'model_files': {'config.json': 'ab', 'model.safetensors': 'cd'}}


def begin(folder, asked=ASKED, facts=FACTS) -> None:
    """A run that got as far as opening its model."""
    with RunFolder(folder, asked):
        begun(folder, asked, facts)


def test_a_folder_is_made_and_gone_on_in(tmp_path):
    """The second run knows what the first one found out about the model."""
    with RunFolder(tmp_path / 'deep' / 'out', ASKED) as run:
        assert run.facts == {}
        begun(tmp_path / 'deep' / 'out', ASKED, FACTS)
        assert run.facts == FACTS
    with RunFolder(tmp_path / 'deep' / 'out', ASKED) as run:
        assert run.facts == FACTS
    assert json.loads((tmp_path / 'deep' / 'out' / 'journal' / 'run.json').read_text()) == {**ASKED, **FACTS}


@pytest.mark.parametrize(('asked', 'line'), [
    ({**ASKED, 'options': {'model': 'tabletop', 'batch': 4}},
     'batch is 4, and what is there was scored with 8'),
    ({**ASKED, 'options': {'batch': 8}}, 'model is not given, and what is there was scored with "tabletop"'),
    ({**ASKED, 'inputs': {'inputs': ['/a.mp4', '/c.mp4'], 'task': 'x'}},
     'inputs number 2 is "/c.mp4", and what is there was scored with "/b.mp4"'),
    ({**ASKED, 'inputs': {'inputs': ['/a.mp4'], 'task': 'x'}},
     'inputs number 2 is not given, and what is there was scored with "/b.mp4"'),
    ({**ASKED, 'version': '2'}, 'version is "2", and what is there was scored with not given'),
])
def test_other_options_are_refused_with_both_values(tmp_path, asked, line):
    """One line, before any model is opened."""
    begin(tmp_path / 'out')
    with pytest.raises(RecordingError) as caught:
        RunFolder(tmp_path / 'out', asked)
    assert str(caught.value) == f'{tmp_path / "out"}: {line}; allowed: the same, or another folder'
    RunFolder(tmp_path / 'out', ASKED).close()


def test_another_model_of_the_same_name_is_refused(tmp_path):
    """Whose files have changed: its hashes tell."""
    begin(tmp_path / 'out')
    changed = {**FACTS, 'model_files': {'config.json': 'ab', 'model.safetensors': 'ee'}}
    with pytest.raises(RecordingError, match='model.safetensors is "ee", and what is there .* with "cd"'):
        begin(tmp_path / 'out', facts=changed)
    begin(tmp_path / 'out')


def test_one_run_at_a_time(tmp_path):
    """The second is told so and disturbs nothing."""
    with RunFolder(tmp_path / 'out', ASKED):
        with pytest.raises(RecordingError, match='another run is writing there; allowed is one at a time'):
            RunFolder(tmp_path / 'out', ASKED)
    RunFolder(tmp_path / 'out', ASKED).close()


def test_what_is_no_folder_of_scores_is_left_alone(tmp_path):
    """A folder of photographs given by mistake gets nothing written into it."""
    (tmp_path / 'photos').mkdir()
    (tmp_path / 'photos' / 'a.jpg').write_text('')
    with pytest.raises(RecordingError, match='photos: holds other things than scores'):
        RunFolder(tmp_path / 'photos', ASKED)
    assert os.listdir(tmp_path / 'photos') == ['a.jpg']
    with pytest.raises(RecordingError, match='a.jpg: is a file; allowed is a folder'):
        RunFolder(tmp_path / 'photos' / 'a.jpg', ASKED)
    with pytest.raises(RecordingError, match='cannot be written'):
        RunFolder(tmp_path / 'photos' / 'a.jpg' / 'out', ASKED)
    (tmp_path / 'empty').mkdir()
    begin(tmp_path / 'empty')


@pytest.mark.skipif(os.geteuid() == 0, reason='the superuser may write anywhere')
def test_a_folder_without_permission_is_one_line(tmp_path):
    """Also one that scores are in already."""
    (tmp_path / 'locked').mkdir(mode=0o500)
    with pytest.raises(RecordingError, match=r'locked/out: cannot be written \(Permission denied\)'):
        RunFolder(tmp_path / 'locked' / 'out', ASKED)


def test_a_damaged_account_of_the_run_is_told(tmp_path):
    """Rather than mixing what may be two models."""
    begin(tmp_path / 'out')
    (tmp_path / 'out' / 'journal' / 'run.json').write_text('{"options": ')
    with pytest.raises(RecordingError, match='run.json: cannot be read'):
        RunFolder(tmp_path / 'out', ASKED)
