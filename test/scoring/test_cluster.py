"""The workers of a Ray cluster write what a single machine writes, also when one of them is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pytest

from densereward_ros import cli
from densereward_ros.models.base import ModelOptions
from densereward_ros.scoring.cluster import Worker
from densereward_ros.scoring.journal import read_journal
from densereward_ros.scoring.run import Windowing
from densereward_ros.scoring.run_folder import journal_file
from scored import ForgetfulModel, episode

pytest.importorskip('ray', reason='ray, which is optional, is not installed')

INPUT = ('tabletop:3@3', '--model', 'tabletop', '--device', 'cpu', '--batch', '2')
TABLES = ('frames.parquet', 'events.parquet', 'episodes.json')
MARK = 'DENSEREWARD_TEST_MARK'


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_worker_is_killed_and_nothing_is_lost_or_written_twice(tmp_path):
    """kill -9 in the middle of a recording; what Ray started is gone when the command has ended."""
    mark, out = uuid.uuid4().hex, tmp_path / 'out'
    command = [sys.executable, '-m', 'densereward_ros.cli', 'score', *INPUT, '--ray', '-o', out]
    run = subprocess.Popen(
        command, env={**os.environ, MARK: mark}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    journal, worker = _at_work(run, out / 'journal')
    os.kill(worker, signal.SIGKILL)
    kept = read_journal(journal)
    assert kept.frames and not kept.complete
    said, _ = run.communicate(timeout=200)
    assert run.returncode == 0, said
    assert '3 of 3: ' in said and 'workers, each with a core and a model of its own' in said
    assert read_journal(journal).frames[:len(kept.frames)] == kept.frames
    until = time.monotonic() + 20
    while left := _marked(mark):
        assert time.monotonic() < until, left
        time.sleep(0.1)
    assert cli.main(['score', *INPUT, '-o', str(tmp_path / 'whole')]) == 0
    for name in TABLES:
        assert (out / name).read_bytes() == (tmp_path / 'whole' / name).read_bytes()
    # Done by either, done for both.
    assert cli.main(['score', *INPUT, '-o', str(out), '--table', 'csv']) == 0


def _at_work(run: subprocess.Popen, journals: Path) -> tuple[Path, int]:
    """A journal that is being written, and the process that has it."""
    until = time.monotonic() + 120
    while True:
        assert time.monotonic() < until and run.poll() is None, run.stdout.read()
        for journal in journals.glob('*.jsonl'):
            if 4 <= journal.read_bytes().count(b'\n') and not read_journal(journal).complete:
                for pid in _holders(journal):
                    return journal, pid
        time.sleep(0.005)


def _holders(file: Path) -> list[int]:
    found = []
    for link in Path('/proc').glob('[0-9]*/fd/*'):
        try:
            if os.readlink(link) == str(file):
                found.append(int(link.parts[2]))
        except OSError:
            continue
    return found


def _marked(mark: str) -> list[str]:
    """Processes that inherited the mark."""
    found = []
    for folder in Path('/proc').glob('[0-9]*'):
        try:
            if f'{MARK}={mark}'.encode() in (folder / 'environ').read_bytes():
                found.append((folder / 'cmdline').read_bytes().replace(b'\0', b' ').decode())
        except OSError:
            continue
    return [command for command in found if command]


def test_a_recording_that_kills_its_worker_each_time_is_skipped(tmp_path, monkeypatch):
    """After three more tries that come no further; one that comes further is tried on."""
    class Killed(BaseException):
        """What would be the end of the process."""

    def die(window):
        if window.newest.stamp_ns >= dies['at']:
            raise Killed

    monkeypatch.setattr('densereward_ros.scoring.run.open_model', lambda *_: ForgetfulModel(die))
    (tmp_path / 'journal').mkdir()
    good, bad = episode('good', 12), episode('bad', 40)

    def work(number: int) -> str:
        """What a new worker says of an episode."""
        worker = Worker([good, bad], tmp_path, {}, ModelOptions(model='tabletop'), Windowing(), str(tmp_path))
        return worker({'number': np.array([number])})['error'][0]

    dies = {'at': 10**18}
    assert work(0) == '' and read_journal(journal_file(tmp_path, 'good')).complete
    for dies['at'] in (1_500_000_000, 3_500_000_000, 5_500_000_000, *[5_500_000_000] * 4):
        with pytest.raises(Killed):
            work(1)
    assert work(1) == ''
    failed = read_journal(journal_file(tmp_path, 'bad')).failed
    assert failed == 'bad.mp4: took 4 workers down at the same window'
    assert not list((tmp_path / 'journal').glob('*.tries'))
    dies['at'] = 10**18
    assert work(1) == '' and read_journal(journal_file(tmp_path, 'bad')).complete


@pytest.mark.parametrize(('arguments', 'line'), [
    (['--ray-address', '127.0.0.1:1'], 'no Ray cluster at 127.0.0.1:1: '),
    (['--ray', '--device', 'cuda:1'], "device is 'cuda:1' (with Ray each worker has a GPU of its own"),
])
def test_what_ray_cannot_do_is_one_line(tmp_path, capfd, arguments, line):
    """Exit code 1."""
    assert cli.main(['score', *INPUT, '-o', str(tmp_path / 'out'), *arguments]) == 1
    error = capfd.readouterr().err.strip().splitlines()[-1]
    assert error.startswith(f'densereward: {line}')
