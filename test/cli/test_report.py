"""`densereward report`: a folder of scores in, a page with pictures and videos out; one line for an error."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from clips import write_clip
from densereward_ros import cli
from densereward_ros.cli import inputs
from densereward_ros.results.folder import write_results
from densereward_ros.results.rows import Results, ScoredEpisode, ScoredEvent, ScoredFrame
from densereward_ros.types import Reason, Rule

OPTIONS = {'frame_interval': 0.2, 'max_frame_age': 1.0}


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    """A folder as `densereward score` writes it, of two videos with made-up rewards."""
    from densereward_ros.recordings.windows import windows_of

    clips = [write_clip(tmp_path / name, 30, 10) for name in ('one.mp4', 'two.mp4')]
    asked = {'inputs': [str(clip) for clip in clips], 'task': 'stack the cup', 'rate': 0.0, 'topics': []}
    episodes = []
    for episode in inputs.open_inputs(**asked)[0]:
        frames = tuple(
            ScoredFrame(one.frame, one.window.newest.stamp_ns, one.seconds, one.window.segment, 0.1 * i,
                        Reason.MISS if i == 5 else Reason.CORRECT)
            for i, one in enumerate(windows_of(episode, **OPTIONS)))
        at = frames[5]
        event = ScoredEvent(at.stamp_ns, at.seconds, Reason.MISS, Rule.WORD, at.reward, 0.4, None, 2)
        episodes.append(ScoredEpisode(
            episode.name, episode.source, episode.camera, episode.task, episode.labels, frames, (event,)))
    write_results(Results(tuple(episodes), {
        'model': 'tabletop', 'bounded': True, 'options': OPTIONS, 'inputs': asked}), tmp_path / 'out')
    return tmp_path / 'out'


def files(folder: Path) -> list[str]:
    """The names of a report's files."""
    return sorted(file.name for file in folder.glob('report/**/*') if file.is_file())


def test_a_report_of_two_videos(scored, capsys):
    """With the images of the recordings, which are found again by run.json."""
    assert cli.main(['report', str(scored)]) == 0
    names = files(scored)
    assert len(names) == 5 and names.count('index.html') == 1
    assert capsys.readouterr().out == (
        f'wrote {scored / "report" / "index.html"}, 2 pictures and 2 videos\n')
    text = (scored / 'report' / 'index.html').read_text(encoding='utf-8')
    assert text.count('<img ') >= 8 and 'stack the cup' in text and '<h1>out</h1>' in text


def test_without_videos(scored, capsys):
    """Which are the slow part."""
    assert cli.main(['report', str(scored), '--no-video']) == 0
    assert len(files(scored)) == 3
    assert '2 pictures and 0 videos' in capsys.readouterr().out


def test_recordings_that_are_gone(scored, capsys):
    """Say so, in the terminal and on the page, and the rest of the report is there."""
    for name in ('one.mp4', 'two.mp4'):
        (scored.parent / name).unlink()
    assert cli.main(['report', str(scored)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 3 and all('no pictures' in line and 'one.mp4' in line for line in told[:1])
    assert told[-1].endswith('2 pictures and 0 videos')
    assert (scored / 'report' / 'index.html').read_text(encoding='utf-8').count('No pictures: ') == 2


def test_one_recording_that_is_gone_takes_no_pictures_from_another(scored, capsys):
    """Only its own are missing."""
    (scored.parent / 'one.mp4').unlink()
    assert cli.main(['report', str(scored), '--no-video']) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith('one: no pictures: ') and told[0].endswith('one.mp4: no such file or folder')
    assert len(told) == 2


def test_a_folder_that_does_not_say_how_to_open_its_recordings(scored, capsys):
    """As one that something else wrote: rewards, but no images."""
    run = json.loads((scored / 'run.json').read_text())
    (scored / 'run.json').write_text(json.dumps({**run, 'inputs': ['somewhere']}))
    assert cli.main(['report', str(scored)]) == 0
    assert 'run.json does not say how to open it again' in capsys.readouterr().out


def test_what_is_no_folder_of_scores(tmp_path, capsys):
    """One line, and nothing is written."""
    assert cli.main(['report', str(tmp_path)]) == 1
    assert 'run.json cannot be read' in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('package', ['matplotlib', 'av'])
def test_a_package_that_is_missing(scored, capsys, monkeypatch, package):
    """Is told before anything is written."""
    monkeypatch.setitem(sys.modules, package, None)
    assert cli.main(['report', str(scored)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f'densereward: {package} is not installed for ') and error.count('\n') == 1
    assert files(scored) == []


def test_a_place_that_cannot_be_written(scored, capsys):
    """A file where the folder of the report would be."""
    (scored / 'report').write_text('mine')
    assert cli.main(['report', str(scored)]) == 1
    assert capsys.readouterr().err == f'densereward: {scored / "report"}: cannot be written (File exists)\n'
    assert (scored / 'report').read_text() == 'mine'
