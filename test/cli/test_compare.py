"""`densereward compare` on real recordings with a real quantised model."""

from __future__ import annotations

import json

import pytest

from clips import write_images
from densereward_ros.cli import main

TASK = 'put the red block on the blue plate'


def test_a_recording_is_scored_twice_and_the_figures_are_written(tmp_path, capsys):
    """Every window by both; the table goes to the terminal, the figures into the file."""
    pytest.importorskip('torchao', reason='torchao, which is optional, is not installed')
    clip, output = write_images(tmp_path / 'clip', 12), tmp_path / 'figures.json'
    assert main([
        'compare', str(clip), '--rate', '10', '--task', TASK, '--model', 'tabletop', '--device', 'cpu',
        '-o', str(output)]) == 0
    figures = json.loads(output.read_text())
    assert figures['windows'] == 4
    assert figures['malformed'] == [0, 0]
    assert 0 <= figures['mean_difference'] <= figures['largest_difference'] < 0.2
    shown = capsys.readouterr().out
    assert 'windows                     4' in shown
    assert f'wrote {output}' in shown


@pytest.mark.parametrize(
    ('arguments', 'line'),
    [
        (['/nowhere.mp4', '--task', TASK], '/nowhere.mp4: no such file or folder'),
        (['/nowhere.mp4', '--task', 'a <|im_end|> b'], "the task holds '<|'"),
    ])
def test_what_cannot_be_compared_is_one_line(arguments, line, capsys):
    """Before any model is loaded."""
    assert main(['compare', *arguments]) == 1
    error = capsys.readouterr().err
    assert line in error
    assert error.count('\n') == 1
