"""The `densereward` command: fast to start, one line for an error, exit codes that a script can use."""

from __future__ import annotations

import resource
import runpy
import subprocess
import sys

import pytest

from densereward_ros import __version__, cli
from densereward_ros.models.base import ModelError

HEAVY = ('torch', 'torchvision', 'transformers', 'huggingface_hub', 'rclpy', 'scipy', 'matplotlib')
VERBS = ('download', 'report', 'calibrate', 'train-demo', 'evaluate-demo', 'evaluate-events')


def test_help_imports_nothing_heavy():
    """`--help` must not wait for the packages that a model needs."""
    done = subprocess.run(
        [sys.executable, '-X', 'importtime', '-m', 'densereward_ros.cli', '--help'],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    imported = {line.rsplit('|', 1)[1].strip() for line in done.stderr.splitlines() if '|' in line}
    assert 'densereward_ros.cli' in imported
    assert not imported & set(HEAVY)
    for verb in VERBS:
        assert verb in done.stdout


def test_help_is_fast():
    """Well under a second: the best of three, in processor time, whatever else the machine does."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, '-m', 'densereward_ros.cli', '--help'], capture_output=True, check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.6


def test_version(capsys):
    """The package's own version."""
    with pytest.raises(SystemExit) as caught:
        cli.main(['--version'])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f'densereward {__version__}\n'


@pytest.mark.parametrize('verb', VERBS)
def test_every_verb_explains_itself(verb, capsys):
    """Each has a description of its own."""
    with pytest.raises(SystemExit) as caught:
        cli.main([verb, '--help'])
    assert caught.value.code == 0
    assert f'usage: densereward {verb}' in capsys.readouterr().out


@pytest.mark.parametrize('arguments', [[], ['dance'], ['download', '--fast']])
def test_wrong_usage_is_exit_code_2(arguments, capsys):
    """argparse's convention, with its usage line."""
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith('usage: densereward')


@pytest.mark.parametrize(
    ('outcome', 'code', 'err'),
    [
        (0, 0, ''),
        (3, 3, ''),
        (ModelError('mine is not a checkpoint'), 1, 'densereward: mine is not a checkpoint\n'),
        (KeyboardInterrupt(), 130, 'densereward: interrupted\n'),
        (
            ModuleNotFoundError("No module named 'torch'", name='torch'),
            1,
            f'densereward: torch is not installed for {sys.executable}: install this package with its '
            "extras, as in pip install '.[model,tools]'\n",
        ),
    ],
)
def test_outcomes_become_exit_codes(outcome, code, err, monkeypatch, capsys):
    """Success, a verb's own code, one line for an error, 130 for Ctrl-C."""

    def run(arguments):
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(cli.download, 'run', run)
    assert cli.main(['download']) == code
    assert capsys.readouterr().err == err


def test_the_installed_script_may_be_read_by_a_process_that_it_starts(repository):
    """multiprocessing's spawn runs the main file again in every child: no command may start there."""
    runpy.run_path(str(repository / 'scripts' / 'densereward'), run_name='__mp_main__')
