"""`densereward evaluate` on folders as `densereward score` writes them."""

from __future__ import annotations

import json

import pytest

from densereward_ros import cli
from densereward_ros.recordings.episode import Labels
from densereward_ros.results.folder import write_results
from densereward_ros.results.rows import Results, ScoredEpisode, ScoredFrame


def results(rewards, labels=None, name='a'):
    """One episode."""
    frames = tuple(ScoredFrame(n, 0, 0.2 * n, 0, reward) for n, reward in enumerate(rewards))
    episode = ScoredEpisode(name, 'a.mp4', '', 'stack', labels or Labels(True), frames, ())
    return Results((episode,), {'model': 'tabletop', 'engine': 'fast', 'bounded': True})


def test_several_folders_side_by_side_on_paper_and_as_json(tmp_path, capsys):
    """The same recordings scored by two: both columns, in all three forms, and no remark."""
    write_results(results([0.1, 0.5, 0.3, 0.9]), tmp_path / 'one')
    write_results(results([0.1, 0.2, 0.3, 0.4]), tmp_path / 'two', 'csv')
    folders = [str(tmp_path / 'one'), str(tmp_path / 'two')]
    paper, document = tmp_path / 'new' / 'figures.md', tmp_path / 'figures.json'
    assert cli.main(['evaluate', *folders, '--markdown', str(paper), '--json', str(document)]) == 0
    said = capsys.readouterr().out
    order = next(line for line in said.splitlines() if line.startswith('value order'))
    assert order.split()[3] == '0.800' and '1.000' in order
    assert 'tabletop (fast)' in said and 'do not hold the same' not in said
    assert f'| metric | {folders[0]} | {folders[1]} |' in paper.read_text()
    found = json.loads(document.read_text())
    assert [one['figures']['value_order']['value'] for one in found['results']] == [0.8, 1.0]
    assert found['results'][0]['run']['model'] == 'tabletop'
    assert not list(tmp_path.glob('.*')) and not list(paper.parent.glob('.*'))


def test_other_episodes_or_labels_do_not_compare(tmp_path, capsys):
    """It says so, and shows the figures all the same."""
    write_results(results([0.1, 0.5]), tmp_path / 'one')
    write_results(results([0.1, 0.5], Labels()), tmp_path / 'two')
    assert cli.main(['evaluate', str(tmp_path / 'one'), str(tmp_path / 'two')]) == 0
    assert 'do not hold the same episodes with the same labels' in capsys.readouterr().out


def test_nothing_labelled_is_told_for_every_metric(tmp_path, capsys):
    """No figure but the share of malformed replies."""
    write_results(results([0.1, 0.5], Labels()), tmp_path)
    assert cli.main(['evaluate', str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if 'not labelled as either' in line).split()[-1] == '1'
    begin = next(number for number, line in enumerate(lines) if line.startswith('metric'))
    *labelled, malformed = lines[begin + 1:begin + 16]
    assert all('n/a' in line for line in labelled)
    assert malformed.split()[:3] == ['malformed', 'replies', '0.000']


def test_a_folder_that_is_none_is_one_line(tmp_path, capsys):
    """Exit code 1, and nothing is written."""
    document = tmp_path / 'x.json'
    assert cli.main(['evaluate', str(tmp_path / 'none'), '--json', str(document)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f'densereward: {tmp_path / "none"}: run.json cannot be read')
    assert error.count('\n') == 1
    assert not document.exists()


def test_a_file_that_cannot_be_written_is_one_line(tmp_path, capsys):
    """Below a file there is no folder."""
    write_results(results([0.1, 0.5]), tmp_path / 'one')
    (tmp_path / 'file').write_text('')
    assert cli.main(['evaluate', str(tmp_path / 'one'), '--json', str(tmp_path / 'file' / 'x.json')]) == 1
    assert 'x.json: cannot be written' in capsys.readouterr().err


@pytest.mark.parametrize('value', ['-1', 'nan', 'inf', 'soon'])
def test_a_tolerance_is_seconds(tmp_path, capsys, value):
    """The value, and what is allowed."""
    with pytest.raises(SystemExit):
        cli.main(['evaluate', str(tmp_path), f'--tolerance={value}'])
    assert f"'{value}' (a number of seconds, 0 or more)" in capsys.readouterr().err
