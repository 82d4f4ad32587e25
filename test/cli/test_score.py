"""`densereward score`: from recordings to a folder that others read, through whatever happens on the way."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image
from pyarrow import parquet

from clips import picture, write_images
from densereward_ros import __version__, cli
from densereward_ros.cli.inputs import open_inputs
from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.recordings.opening import open_recording
from densereward_ros.results.folder import read_results
from densereward_ros.scoring.journal import read_journal
from densereward_ros.types import Reason
from recordings_made import CAMERA, make_bag, make_lerobot
from scored import ForgetfulModel, miss

TASK = 'stack the cup'
TABLES = ('frames.parquet', 'events.parquet', 'episodes.json')


@pytest.fixture
def model(monkeypatch) -> ForgetfulModel:
    """What opens as the model."""
    model = ForgetfulModel()
    monkeypatch.setattr('densereward_ros.scoring.run.open_model', lambda *_: model)
    return model


@pytest.fixture
def no_model(monkeypatch):
    """Nothing may be opened."""
    def forbid():
        monkeypatch.setattr('densereward_ros.scoring.run.open_model', lambda *_: pytest.fail('opened'))
    return forbid


def score(*arguments: object) -> int:
    """The exit code."""
    return cli.main(['score', '--model', 'tabletop', '--device', 'cpu', *map(str, arguments)])


def images(folder: Path, count: int = 30, damaged: int | None = None) -> Path:
    """A folder of pictures, of which one may be damaged."""
    write_images(folder, count)
    if damaged is not None:
        (folder / f'frame{damaged + 1}.png').write_bytes(b'\x89PNG and no more')
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """What must not depend on how a run was cut."""
    return {name: (folder / name).read_bytes() for name in TABLES}


def test_everything_that_was_promised_is_in_the_folder(tmp_path, model, capsys):
    """Tables, events, labels, MCAP, a LeRobot dataset with the column, and where the numbers come from."""
    write_images(tmp_path / 'labelled', 20)
    (tmp_path / 'labels.yaml').write_text(yaml.safe_dump({'task': 'pour', 'rate': 5, 'episodes': [
        {'path': 'labelled', 'success': False, 'failures': [{'at': 1.5, 'reason': 'fall'}],
         'progress': [[0, 0], [4, 1]]}]}))
    pictures = [picture(index) for index in range(25)]
    bag = make_bag(tmp_path / 'bag', pictures, rate=5.0)
    dataset = make_lerobot(tmp_path / 'data', [pictures, pictures[:12]], success=[True, False])
    out = tmp_path / 'out'
    inputs = [tmp_path / 'labels.yaml', bag, dataset, 'tabletop:1@4']
    assert score(*inputs, '--task', TASK, '-o', out) == 0
    results = read_results(out)
    assert [one.name for one in results.episodes] == [
        'labelled', 'bag-camera_image_raw', 'data-episode_000000-front', 'data-episode_000001-front',
        'tabletop-4-0000']
    labelled, bagged, first, second, table = results.episodes
    assert labelled.labels == Labels(False, (LabelledFailure(1.5, Reason.FALL),), ((0.0, 0.0), (4.0, 1.0)))
    assert [one.task for one in results.episodes[:4]] == ['pour', TASK, TASK, TASK]
    assert (first.labels.success, second.labels.success) == (True, False)
    assert table.labels.progress and table.labels.success is True
    assert [len(one.frames) for one in results.episodes[:4]] == [18, 23, 11, 4]
    assert labelled.frames[3].target == pytest.approx(1.0 / 4)
    assert bagged.frames[0].seconds == 0.4 and bagged.frames[0].stamp_ns > 10**18
    assert sorted(path.stem for path in (out / 'mcap').iterdir()) == sorted(
        one.name for one in results.episodes)
    rows = parquet.read_table(out / 'lerobot' / 'data' / 'data/chunk-000/file-000.parquet').to_pydict()
    assert len(rows['densereward.reward']) == 37
    assert rows['densereward.reward'][first.frames[0].frame] == np.float32(first.frames[0].reward)
    run = results.run
    assert (run['model'], run['engine'], run['version'], run['bounded']) == (
        'forgetful', 'fast', __version__, True)
    assert set(run['model_files']) >= {'config.json', 'model.safetensors'}
    assert run['windows'] == sum(len(one.frames) for one in results.episodes)
    assert 0 < run['seconds_per_window'] < 1
    assert run['options']['frame_interval'] == 0.2 and run['options']['max_frame_age'] == 1.0
    again, failed = open_inputs(**run['inputs'])
    assert [one.name for one in again] == [one.name for one in results.episodes] and failed == []
    said = capsys.readouterr().out
    assert '1 of 5: labelled: 18 verdicts' in said
    assert f'wrote {out} (episodes: 5, verdicts: {run["windows"]}, failure events: ' in said
    assert model.closed
    assert CAMERA.endswith('front')


def test_a_dataset_with_a_damaged_file_is_scored_where_it_can_be(tmp_path, model, capsys):
    """Its other episode has its rows in the tables; of the whole there is no copy with rewards."""
    pictures = [picture(index) for index in range(25)]
    dataset = make_lerobot(tmp_path / 'data', [pictures, pictures], version='2.1')
    damaged = dataset / 'data' / 'chunk-000' / 'episode_000001.parquet'
    damaged.write_bytes(damaged.read_bytes()[:-20])
    out = tmp_path / 'out'
    assert score(dataset, '-o', out) == 3
    results = read_results(out)
    assert [len(one.frames) for one in results.episodes] == [11]
    assert [source for source, _ in results.failed] == [str(dataset), str(dataset)]
    scored, copied = (why for _, why in results.failed)
    assert 'episode_000001.parquet' in scored and copied.startswith('no copy with rewards: ')
    assert f'skipped: {copied}' in capsys.readouterr().out
    assert not (out / 'lerobot' / 'data').exists()


def test_a_table_may_be_csv_and_made_again_without_the_model(tmp_path, model, no_model):
    """Another kind of table, other thresholds: the verdicts are there, so no model is opened."""
    model._outcome = miss
    run, out = images(tmp_path / 'run'), tmp_path / 'out'
    assert score(run, '--task', TASK, '--rate', 5, '-o', out) == 0
    before = read_results(out)
    assert [event.reason for event in before.episodes[0].events] == [Reason.MISS]
    no_model()
    thresholds = tmp_path / 'thresholds.yaml'
    thresholds.write_text(yaml.safe_dump({
        'false_alarms': 0.05, 'episodes': 20, 'model': 'tabletop', 'engine': 'fast', 'quantization': 'none',
        'max_pixels': 0, 'frame_interval': 0.2, 'confirmations': 2, 'confirmation_window': 3,
        'probability_floors': dict.fromkeys(('miss', 'collision', 'fall', 'smooth', 'failure'), 0.95),
        'reward_drop': 0.0, 'drop_window': 2.0}))
    arguments = (run, '--task', TASK, '--rate', 5, '-o', out, '--table', 'csv', '--thresholds', thresholds)
    assert score(*arguments) == 0
    assert (out / 'frames.csv').exists() and not (out / 'frames.parquet').exists()
    after = read_results(out)
    assert after.episodes[0].events == ()
    assert [frame.reward for frame in after.episodes[0].frames] == [
        frame.reward for frame in before.episodes[0].frames]
    assert after.run['detector']['probability_floors'] == [0.95] * 5
    thresholds.write_text(thresholds.read_text().replace('frame_interval: 0.2', 'frame_interval: 0.5'))
    assert score(*arguments) == 1


def test_a_corrupt_recording_among_many_is_named_and_skipped(tmp_path, model, capsys):
    """Whether it cannot be opened or breaks in the middle; the exit code tells, and the rest is there."""
    (tmp_path / 'torn.mp4').write_bytes(b'no video')
    inputs = [images(tmp_path / 'one'), tmp_path / 'torn.mp4', images(tmp_path / 'broken', 30, damaged=20),
              images(tmp_path / 'short', 2), images(tmp_path / 'two')]
    arguments = (*inputs, '--task', TASK, '--rate', 5, '-o', tmp_path / 'out')
    assert score(*arguments) == 3
    results = read_results(tmp_path / 'out')
    assert [one.name for one in results.episodes] == ['one', 'two']
    assert [source for source, _ in results.failed] == [str(inputs[1]), str(inputs[2]), str(inputs[3])]
    assert 'frame21.png: not an image that can be read' in results.failed[1][1]
    assert 'too short for a verdict' in results.failed[2][1]
    said = capsys.readouterr().out
    assert f'skipped: {inputs[1]}: not a video' in said
    assert '2 of 4: broken: skipped: ' in said and 'recordings skipped: 3' in said
    # Mended, it is scored the next time, and it alone.
    Image.fromarray(picture(20)).save(inputs[2] / 'frame21.png')
    model.asked.clear()
    assert score(*arguments) == 3
    assert {window.camera for windows in model.asked for window in windows} == {'broken'}
    assert [one.name for one in read_results(tmp_path / 'out').episodes] == ['one', 'broken', 'two']


def test_nothing_scored_is_an_error(tmp_path, model, capsys):
    """And leaves no tables behind."""
    assert score(images(tmp_path / 'short', 2), '--task', TASK, '--rate', 5, '-o', tmp_path / 'out') == 1
    assert capsys.readouterr().err == (
        'densereward: nothing was scored: no recording has a window that can be\n')
    assert not (tmp_path / 'out' / 'run.json').exists()
    (tmp_path / 'torn.mp4').write_bytes(b'')
    assert score(tmp_path / 'torn.mp4', '--task', TASK, '-o', tmp_path / 'out2') == 1
    assert not (tmp_path / 'out2').exists()


def test_ctrl_c_ends_with_130_and_the_same_command_goes_on(tmp_path, model, capsys):
    """In the middle of an episode; the tables are those of a run that was not interrupted."""
    runs = [images(tmp_path / 'a', 60), images(tmp_path / 'b', 60)]
    options = ('--task', TASK, '--rate', 5, '--batch', 2)
    assert score(*runs, *options, '-o', tmp_path / 'whole') == 0
    whole = model.asked[:]

    def interrupt(window):
        if window.camera == 'b' and window.newest.stamp_ns == 8_000_000_000:
            raise KeyboardInterrupt

    model._outcome = interrupt
    assert score(*runs, *options, '-o', tmp_path / 'out') == 130
    assert capsys.readouterr().err == (
        f'densereward: interrupted; {tmp_path / "out"} keeps what was scored, and the same command goes on '
        'from there\n')
    assert not (tmp_path / 'out' / 'run.json').exists()
    kept = len(read_journal(tmp_path / 'out' / 'journal' / 'b.jsonl').frames)
    assert 30 < kept < 58
    model._outcome, model.asked = (lambda window: None), []
    assert score(*runs, *options, '-o', tmp_path / 'out') == 0
    assert contents(tmp_path / 'out') == contents(tmp_path / 'whole')
    assert len(model.asked) < len(whole) // 4


@pytest.mark.parametrize(('arguments', 'line'), [
    ([], 'run: no task is given; allowed is --task'),
    (['--task', TASK, '--frame-interval', '-1'], 'frame-interval is -1.0 (0 or more seconds are allowed)'),
    (['--task', TASK, '--max-pixels', '17'], 'max_pixels is 17 '),
    (['--task', TASK, '--device', 'tpu'], "device is 'tpu' "),
    (['--task', TASK, '--rate', '-5'], 'rate is -5.0; allowed: frames a second'),
    (['--task', TASK, '--thresholds', '/nowhere.yaml'], '/nowhere.yaml: cannot be read'),
    (['--task', TASK, '-o', '{}/run'], 'run: holds other things than scores'),
    (['--task', TASK, '-o', '{}/done', '--batch', '4'],
     'done: batch is 4, and what is there was scored with 8; allowed: the same, or another folder'),
    (['--task', 'pour', '-o', '{}/done'], 'done: task is "pour", and what is there was scored with "stack'),
])
def test_what_cannot_be_is_one_line_before_a_model_is_opened(
        tmp_path, model, no_model, capsys, arguments, line):
    """Exit code 1."""
    run = images(tmp_path / 'run', 10)
    assert score(run, '--rate', 5, '--task', TASK, '-o', tmp_path / 'done') == 0
    no_model()
    capsys.readouterr()
    before = contents(tmp_path / 'done')
    given = [text.format(tmp_path) for text in arguments]
    assert score(run, '--rate', 5, '-o', tmp_path / 'out', *given) == 1
    error = capsys.readouterr().err
    assert line in error and error.count('\n') == 1
    assert contents(tmp_path / 'done') == before


@pytest.mark.parametrize('batch', ['0', 'many', '257'])
def test_a_batch_is_a_number(tmp_path, capsys, batch):
    """argparse says what is allowed."""
    with pytest.raises(SystemExit):
        score(tmp_path, '-o', tmp_path / 'out', '--batch', batch)
    assert f"'{batch}' (a whole number from 1 to 256)" in capsys.readouterr().err


def test_a_disk_that_is_full_at_the_end_costs_no_verdict(tmp_path, model, no_model, monkeypatch, capsys):
    """The tables of an earlier run stay; the same command writes them once there is room."""
    run, out = images(tmp_path / 'run', 10), tmp_path / 'out'
    arguments = (run, '--task', TASK, '--rate', 5, '-o', out)
    with monkeypatch.context() as full:
        def fail(*_):
            raise OSError(errno.ENOSPC, 'No space left on device')

        full.setattr('pyarrow.parquet.write_table', fail)
        assert score(*arguments) == 1
    error = capsys.readouterr().err
    assert f'{out}: cannot be written (No space left on device)' in error and error.count('\n') == 1
    assert not (out / 'run.json').exists() and not list(out.glob('.*'))
    no_model()
    assert score(*arguments) == 0
    assert len(read_results(out).episodes[0].frames) == 8


@pytest.mark.slow
def test_a_real_video_a_bag_of_it_and_a_dataset_of_it_get_the_same_rewards(tmp_path, video_folder):
    """The pixels are the same, so the verdicts are; only the clocks are each format's own."""
    video = open_recording(video_folder / 'berkeley_rpt_stack_cup.mp4')
    images = [image for _, image in video.frames()]
    rate = round(video.rate)
    bag = make_bag(tmp_path / 'bag', images, rate=rate)
    dataset = make_lerobot(tmp_path / 'set', [images], images=True, fps=rate)
    inputs = (video.path, bag, dataset)
    assert score(*inputs, '--task', TASK, '--rate', rate, '-o', tmp_path / 'out') == 0
    one, *others = read_results(tmp_path / 'out').episodes
    assert len(one.frames) > 10
    for other in others:
        assert [(frame.frame, frame.reward, frame.reason) for frame in other.frames] == [
            (frame.frame, frame.reward, frame.reason) for frame in one.frames]


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_to_the_same_bytes(tmp_path):
    """kill -9 in the middle of an episode, with the demo checkpoint, in processes as a user starts them."""
    command = [
        sys.executable, '-m', 'densereward_ros.cli', 'score', 'tabletop:2@3', '--model', 'tabletop',
        '--device', 'cpu', '--batch', '2', '-o']
    killed = subprocess.Popen([*command, tmp_path / 'out'], stdout=subprocess.DEVNULL)
    journal = tmp_path / 'out' / 'journal' / 'tabletop-3-0001.jsonl'
    deadline = time.monotonic() + 90
    while not journal.exists() or journal.read_bytes().count(b'\n') < 4:
        assert time.monotonic() < deadline and killed.poll() is None
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    kept = read_journal(journal)
    assert kept.frames and not kept.complete
    with journal.open('ab') as file:  # what a kill within a write would leave
        file.write(b'{"seconds": 0.0')
    subprocess.run([*command, tmp_path / 'out'], check=True, stdout=subprocess.DEVNULL)
    assert score('tabletop:2@3', '--batch', 2, '-o', tmp_path / 'whole') == 0
    assert contents(tmp_path / 'out') == contents(tmp_path / 'whole')
    run = json.loads((tmp_path / 'out' / 'run.json').read_text())
    assert run['windows'] == sum(
        one['frames'] for one in json.loads((tmp_path / 'out' / 'episodes.json').read_text())['episodes'])
