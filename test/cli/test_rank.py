"""`densereward rank` and the pairs of `densereward evaluate`, on recordings whose scores are planted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from densereward_ros.cli import main
from densereward_ros.cli.rank import rank
from densereward_ros.types import Frame, Window
from planted import plant_scores

TASK = 'put the red block on the blue plate'
# Grey levels of a recording's three frames: one window each. Of the last one there are four frames.
FRAMES = {'good': (10, 60, 200), 'fair': (200, 120, 60), 'poor': (10, 200, 10), 'long': (10, 60, 200, 90)}
SCORES = {(10, 60, 200): 17.5, (200, 120, 60): 2.0, (10, 200, 10): -8.25, (60, 200, 90): -3.0}


def picture(level: int) -> np.ndarray:
    """A grey frame, uint8 RGB."""
    return np.full((96, 128, 3), level, np.uint8)


@pytest.fixture(scope='module')
def checkpoint(random_checkpoint, tmp_path_factory) -> str:
    """A folder with a head that gives SCORES."""
    windows = []
    for levels in SCORES:
        images = [picture(level) for level in levels]
        windows.append(Window(
            'c', TASK, tuple(Frame(i, i, lambda image=image: image) for i, image in enumerate(images))))
    folder = tmp_path_factory.mktemp('checkpoints') / 'planted'
    return str(plant_scores(random_checkpoint, folder, windows, list(SCORES.values())))


@pytest.fixture
def recordings(tmp_path, monkeypatch) -> Path:
    """The folder of the recordings, and of a copy of one; the current one for the test."""
    for name, levels in {**FRAMES, 'again': FRAMES['fair'], 'short': (10, 20)}.items():
        (tmp_path / name).mkdir()
        for index, level in enumerate(levels):
            Image.fromarray(picture(level)).save(tmp_path / name / f'{index}.png')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def options(checkpoint: str) -> list[str]:
    """What every call has."""
    return ['--model', checkpoint, '--engine', 'score_head', '--device', 'cpu']


def test_recordings_are_ranked_best_first(recordings, checkpoint, capsys):
    """Ties share a rank, the JSON says the same as the table, and where the numbers come from."""
    names = ['poor', 'again', 'good', 'long', 'fair']
    assert main([
        'rank', *names, '--rate', '5', '--task', TASK, '-o', 'out/ranking.json', *options(checkpoint)]) == 0
    shown = capsys.readouterr().out
    table = [line.split() for line in shown[shown.index(' rank'):].splitlines()[:6]]
    assert table[0] == ['rank', 'final', 'mean', 'verdicts', 'malformed', 'recording']
    assert [(row[0], row[5]) for row in table[1:]] == [
        ('1', 'good'), ('=2', 'again'), ('=2', 'fair'), ('4', 'long'), ('5', 'poor')]
    assert [float(row[1]) for row in table[1:]] == pytest.approx([17.5, 2, 2, -3, -8.25], abs=0.01)
    found = json.loads(Path('out/ranking.json').read_text())
    assert [(entry['rank'], entry['tied'], entry['recording']) for entry in found['ranking']] == [
        (1, False, 'good'), (2, True, 'again'), (2, True, 'fair'), (4, False, 'long'), (5, False, 'poor')]
    last = found['ranking'][3]
    assert (last['final'], last['mean'], last['verdicts'], last['malformed']) == (
        pytest.approx(-3, abs=0.01), pytest.approx((17.5 - 3) / 2, abs=0.01), 2, 0)
    assert (found['task'], found['by'], found['failed'], found['model']) == (TASK, 'final', [], checkpoint)
    assert found['options']['engine'] == 'score_head'
    assert len(found['model_files']['model.safetensors']) == 64
    assert [path.name for path in Path('out').iterdir()] == ['ranking.json']


def test_the_mean_ranks_otherwise(recordings, checkpoint, capsys):
    """A recording that ended badly after a good beginning."""
    asked = ['--by', 'mean', '--rate', '5', '--task', TASK, *options(checkpoint)]
    assert main(['rank', 'long', 'fair', *asked]) == 0
    rows = capsys.readouterr().out.splitlines()[-2:]
    assert [row.split()[0::5] for row in rows] == [['1', 'long'], ['2', 'fair']]


def test_what_cannot_be_scored_is_named(recordings, checkpoint, capsys):
    """The others are ranked all the same, and the exit code is not 0."""
    assert main([
        'rank', 'good', 'short', '/nowhere.mp4', '--rate', '5', '--task', TASK, *options(checkpoint)]) == 1
    shown = capsys.readouterr().out
    assert '    1    17.500    17.500         1          0  good' in shown
    assert 'not ranked: short: too short for a verdict, which takes three frames 0.2 s apart' in shown
    assert 'not ranked: /nowhere.mp4: no such file or folder' in shown


@pytest.mark.parametrize(('arguments', 'line'), [
    (['/nowhere.mp4', '--task', TASK], '/nowhere.mp4: no such file or folder'),
    (['good', '--rate', '5', '--task', ' '], 'the task is empty'),
    (['good', '--rate', '5', '--task', TASK, '--frame-interval', '-1'], 'frame-interval is -1.0'),
    (['good', '--rate', '5', '--task', TASK, '--engine', 'score_head', '--model', 'tabletop'],
     "tabletop has no score.weight, which engine 'score_head' needs"),
])
def test_what_cannot_be_ranked_at_all_is_one_line(recordings, arguments, line, capsys):
    """Before any model is loaded."""
    assert main(['rank', *arguments]) == 1
    error = capsys.readouterr().err
    assert line in error
    assert error.count('\n') == 1


@pytest.mark.parametrize(('rewards', 'expected'), [
    ([], []),
    ([('a', 1.0)], [(1, False, 'a')]),
    ([('a', 1.0), ('b', 3.0), ('c', 1.0), ('d', 0.5)],
     [(1, False, 'b'), (2, True, 'a'), (2, True, 'c'), (4, False, 'd')]),
    ([('a', 0.0), ('b', -0.0)], [(1, True, 'a'), (1, True, 'b')]),
])
def test_ranks(rewards, expected):
    """Shared ranks leave a gap after them."""
    assert rank(rewards) == expected


PAIRS = f"""
task: {TASK}
rate: 5
pairs:
  - {{preferred: good, other: fair, subset: easy}}
  - {{preferred: good, other: poor, subset: easy}}
  - {{preferred: again, other: fair, subset: hard}}
  - {{preferred: poor, other: long, subset: hard}}
  - {{preferred: fair, other: long}}
"""


def test_pairs_are_scored_and_counted(recordings, checkpoint, capsys):
    """Margins 15.5, 25.75, 0, -5.25 and 5: three right, a tie, one wrong; each recording scored once."""
    (recordings / 'pairs.yaml').write_text(PAIRS)
    assert main(['evaluate', '--pairs', 'pairs.yaml', '--json', 'pairs.json', *options(checkpoint)]) == 0
    shown = capsys.readouterr().out
    assert shown.count('verdicts\n') == 5
    lines = shown.splitlines()
    rows = [line.split() for line in lines if line.rsplit(' ', 1)[-1] in ('all', 'easy', 'hard')]
    assert [row[:4] for row in rows] == [
        ['5', '1', '0', '0.700'], ['2', '0', '0', '1.000'], ['2', '1', '0', '0.250']]
    assert [row[7:] for row in rows] == [
        ['-5.250', '5.000', '25.750', 'all'], ['15.500', '20.625', '25.750', 'easy'],
        ['-5.250', '-2.625', '0.000', 'hard']]
    assert '5 recordings, 6 verdicts, 0 malformed replies; final reward' in shown
    found = json.loads(Path('pairs.json').read_text())
    assert (found['figures']['pairs'], found['figures']['ties']) == (5, 1)
    assert found['figures']['accuracy'] == pytest.approx(0.7)
    low, high = found['figures']['interval']
    assert 0.2 <= low < 0.7 < high <= 1
    assert list(found['subsets']) == ['easy', 'hard']
    assert [pair['margin'] for pair in found['pairs']] == pytest.approx([15.5, 25.75, 0, -5.25, 5], abs=0.01)
    assert found['pairs'][2]['margin'] == 0
    assert (found['model'], found['by']) == (checkpoint, 'final')


def test_a_pair_without_a_score_is_undefined(recordings, checkpoint, capsys):
    """It counts neither way, and the exit code tells."""
    (recordings / 'pairs.yaml').write_text(PAIRS + '  - {preferred: good, other: short}\n')
    assert main(['evaluate', '--pairs', 'pairs.yaml', '--json', 'pairs.json', *options(checkpoint)]) == 1
    assert 'no score: short: too short' in capsys.readouterr().out.replace(f'{recordings}/', '')
    found = json.loads(Path('pairs.json').read_text())
    assert (found['figures']['pairs'], found['figures']['undefined']) == (6, 1)
    assert found['figures']['accuracy'] == pytest.approx(0.7)
    assert found['pairs'][-1]['margin'] is None


def test_a_recording_of_a_pair_that_is_not_there(recordings, checkpoint, capsys):
    """Is told before a model is loaded."""
    (recordings / 'pairs.yaml').write_text(PAIRS + '  - {preferred: good, other: gone}\n')
    assert main(['evaluate', '--pairs', 'pairs.yaml', '--model', '/nowhere']) == 1
    assert 'gone: no such file or folder' in capsys.readouterr().err


@pytest.mark.parametrize('arguments, line', [
    ([], 'no folder of scores is given, and no --pairs'),
    (['out', '--pairs', 'pairs.yaml'], '--pairs and out are given'),
])  # fmt: skip
def test_scores_or_pairs(arguments, line, capsys):
    """One of the two is evaluated."""
    assert main(['evaluate', *arguments]) == 1
    assert line in capsys.readouterr().err
