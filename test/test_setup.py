"""The set-up: choosing a Python, refusing machines, and mending the wheels."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / 'scripts'


@pytest.fixture
def bootstrap(monkeypatch, tmp_path):
    """scripts/bootstrap as a module that works on a folder of its own."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    loader = SourceFileLoader('bootstrap', str(SCRIPTS / 'bootstrap'))
    module = module_from_spec(spec_from_loader('bootstrap', loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, 'ROOT', tmp_path)
    for name in ('VENV', 'PYTHON', 'MARKER', 'LOG'):
        monkeypatch.setattr(module, name, tmp_path / getattr(module, name).relative_to(SCRIPTS.parent))
    for name in ('ROS_VERSION', 'ROS_DISTRO'):
        monkeypatch.delenv(name, raising=False)
    return module


@pytest.fixture
def pythons(bootstrap):
    """The module that looks for interpreters."""
    return sys.modules['provision.pythons']


def program(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\n{text}\n', encoding='utf-8')
    path.chmod(0o755)
    return path


def answer(version: str, **changes) -> str:
    """A shell script that answers as a Python of this version does."""
    major, minor = version.split('.')
    facts = {'venv': 'true', 'headers': 'true', 'cpython': 'true', 'free_threaded': 'false', 'modules': '{}'}
    facts.update(changes)
    rest = ', '.join(f'"{name}": {value}' for name, value in facts.items())
    return f'echo \'{{"version": [{major}, {minor}], "path": "\'$0\'", {rest}}}\''


def test_the_newest_that_runs_is_chosen(pythons, monkeypatch, tmp_path):
    """An inactive pyenv shim is on the PATH and fails; a plain python3 may be newer than the named ones."""
    program(tmp_path / 'shims' / 'python3.13', 'echo "pyenv: python3.13: command not found" >&2; exit 127')
    program(tmp_path / 'bin' / 'python3.10', answer('3.10'))
    program(tmp_path / 'bin' / 'python3', answer('3.12'))
    monkeypatch.setenv('PATH', f'{tmp_path / "shims"}:{tmp_path / "bin"}')
    assert pythons.newest(outside=tmp_path / '.venv')['path'] == str(tmp_path / 'bin' / 'python3')


@pytest.mark.parametrize(
    'reply',
    [
        answer('3.9'),
        answer('3.14'),
        answer('3.12', cpython='false'),
        answer('3.13', free_threaded='true'),
    ],
)
def test_other_pythons_are_passed_over(pythons, monkeypatch, tmp_path, reply):
    """No wheels exist for other versions, other implementations and free-threaded builds."""
    program(tmp_path / 'bin' / 'python3', reply)
    monkeypatch.setenv('PATH', str(tmp_path / 'bin'))
    with pytest.raises(pythons.SetupError, match=r'no Python 3\.10 to 3\.13 found'):
        pythons.newest(outside=tmp_path / '.venv')


@pytest.mark.parametrize(('lacking', 'package'), [('venv', 'python3.12-venv'), ('headers', 'python3.12-dev')])
def test_an_incomplete_python_is_named_with_its_package(pythons, monkeypatch, tmp_path, lacking, package):
    """Debian and Ubuntu split the venv module and the C headers off."""
    program(tmp_path / 'bin' / 'python3', answer('3.12', **{lacking: 'false'}))
    monkeypatch.setenv('PATH', str(tmp_path / 'bin'))
    with pytest.raises(pythons.SetupError, match=f'apt install {package}'):
        pythons.newest(outside=tmp_path / '.venv')


def test_the_environment_itself_is_no_candidate(pythons, monkeypatch, tmp_path):
    """With .venv active, python3 is the one that the set-up may be about to replace."""
    program(tmp_path / '.venv' / 'python3', answer('3.12'))
    monkeypatch.setenv('PATH', str(tmp_path / '.venv'))
    with pytest.raises(pythons.SetupError, match='found'):
        pythons.newest(outside=tmp_path / '.venv')


def test_a_sourced_ros_needs_a_python_with_rclpy(pythons, monkeypatch, tmp_path):
    """Over ROS 2 it is the Python that imports rclpy, however old the named ones are."""
    program(tmp_path / 'plain' / 'python3', answer('3.13'))
    monkeypatch.setenv('PATH', str(tmp_path / 'plain'))
    with pytest.raises(pythons.SetupError, match='ROS 2 jazzy is sourced, but no python3'):
        pythons.of_ros('jazzy', tmp_path / '.venv', ())
    program(tmp_path / 'ros' / 'python3', answer('3.12', modules='{"rclpy": null, "numpy": "1.26.4"}'))
    monkeypatch.setenv('PATH', f'{tmp_path / "plain"}:{tmp_path / "ros"}')
    assert pythons.of_ros('jazzy', tmp_path / '.venv', ())['modules']['numpy'] == '1.26.4'


def test_over_ros_only_what_is_missing_is_installed(bootstrap, monkeypatch, tmp_path):
    """A Jetson's torch and the system's numpy stay, as constraints; what is there is not asked for."""
    have = dict.fromkeys(('rclpy', 'PIL', 'pytest', 'cv_bridge', 'accelerate', 'scipy', 'ruff'))
    have |= {'torch': '2.5.0a0+nv24.8', 'torchvision': '0.20.0', 'numpy': '1.26.4'}
    base = {'path': '/usr/bin/python3', 'version': [3, 10], 'modules': have}
    calls = []
    monkeypatch.setattr(bootstrap, 'of_ros', lambda *arguments: base)
    monkeypatch.setattr(bootstrap, 'make_venv', lambda choose, options: calls.append(options))
    monkeypatch.setattr(bootstrap, 'install', lambda *arguments: calls.append(list(map(str, arguments))))
    monkeypatch.setattr(bootstrap.shutil, 'which', lambda name: f'/usr/bin/{name}')
    (tmp_path / '.venv').mkdir()
    bootstrap.set_up_over_ros('humble')
    kept = tmp_path / '.venv' / 'kept.txt'
    assert kept.read_text() == 'torch==2.5.0a0+nv24.8\ntorchvision==0.20.0\nnumpy==1.26.4\n'
    assert calls == [
        ['--system-site-packages'],
        ['transformers==5.2.0', 'qwen-vl-utils==0.0.14', 'av==17.1.0', '-c', str(kept)],
        ['matplotlib', 'rosbags', 'pyarrow', 'tqdm', 'openai', 'ray', 'pandas', '-c', str(kept)],
        [
            'pytest-timeout', 'pytest-rerunfailures', 'hypothesis', 'torchao', 'cyclonedds', 'fastapi',
            'uvicorn', '-c', str(kept)],
    ]


def test_an_environment_behind_a_link_is_another_checkouts(bootstrap, monkeypatch, tmp_path):
    """It looks as if it had been moved here; nothing of it is removed."""
    pip = tmp_path / 'other' / '.venv' / 'bin' / 'pip'
    pip.parent.mkdir(parents=True)
    pip.write_text('#!/other/.venv/bin/python')
    monkeypatch.setattr(bootstrap, 'VENV', tmp_path / '.venv')
    bootstrap.VENV.symlink_to(pip.parents[1])
    with pytest.raises(bootstrap.SetupError, match='is a link to .*other.*: remove the link'):
        bootstrap.make_venv(None, [])
    assert pip.exists()


def test_torch_without_torchvision_is_refused(bootstrap, monkeypatch):
    """pip would fetch another torch to go with a torchvision of its own choice."""
    modules = {'rclpy': None, 'torch': '2.5.0a0'}
    base = {'path': '/usr/bin/python3', 'version': [3, 10], 'modules': modules}
    monkeypatch.setattr(bootstrap, 'of_ros', lambda *arguments: base)
    with pytest.raises(bootstrap.SetupError, match='without the torchvision that belongs to it'):
        bootstrap.set_up_over_ros('humble')


def test_another_processor_is_refused_unless_ros_is_there(bootstrap, monkeypatch):
    """ROS 2 from PyPI exists for x86-64 only; a ROS 2 install exists for others."""
    monkeypatch.setattr(platform, 'machine', lambda: 'aarch64')
    monkeypatch.setattr(bootstrap, 'runs', lambda: True)
    bootstrap.VENV.mkdir()
    with pytest.raises(bootstrap.SetupError, match='this processor is aarch64'):
        bootstrap.check_machine('')
    bootstrap.check_machine('jazzy')


def test_a_full_disk_is_refused_before_anything_is_downloaded(bootstrap, monkeypatch):
    """The line states what is free and what is needed."""
    monkeypatch.setattr(bootstrap.shutil, 'disk_usage', lambda path: SimpleNamespace(free=2e9))
    bootstrap.VENV.mkdir()
    with pytest.raises(bootstrap.SetupError, match=r'2\.0 GB free at .*, about \d+ GB needed'):
        bootstrap.check_machine('jazzy')


def test_an_environment_over_ros_is_not_replaced(bootstrap, tmp_path):
    """A terminal in which ROS 2 was not sourced must not cost gigabytes; the line says what to do."""
    bootstrap.VENV.mkdir()
    (bootstrap.VENV / 'pyvenv.cfg').touch()
    with pytest.raises(bootstrap.SetupError, match='with ROS 2 jazzy sourced, but .* without'):
        bootstrap.check_mode(['jazzy', 'fingerprint'], '')
    bootstrap.check_mode(['jazzy', 'fingerprint'], 'jazzy')


def test_a_foreign_environment_is_left_alone(bootstrap):
    """A .venv that the user made is neither used nor removed."""
    bootstrap.VENV.mkdir()
    (bootstrap.VENV / 'pyvenv.cfg').touch()
    with pytest.raises(bootstrap.SetupError, match='was not made by this set-up'):
        bootstrap.main()


@pytest.mark.parametrize(
    ('output', 'line'),
    [
        ('WARNING: NewConnectionError(...)\nERROR: No matching distribution', 'cannot be reached'),
        ('ERROR: [Errno 28] No space left on device', 'the disk is full'),
        ('ERROR: No matching distribution found for torch', 'pip failed: No matching distribution'),
        ('ERROR: 404 Client Error for url: https://mirror.example/x', '404 Client Error for url: ...'),
    ],
)
def test_a_failure_of_pip_becomes_one_line(bootstrap, output, line):
    """What to do, and never the address of somebody's mirror."""
    told = sys.modules['provision.pip_runner'].why_it_failed(output)
    assert line in told
    assert '\n' not in told and 'example' not in told


def test_progress_names_large_files_and_no_address(bootstrap, capsys):
    """Small files are passed over; the rest of the address may hold the name of a private mirror."""
    progress = sys.modules['provision.pip_runner'].Progress()
    for line in (
        'Collecting torch==2.8.0',
        '  Downloading https://mirror.example/torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl (888.1 MB)',
        'Progress 888100000 of 888100000',
        '  Downloading idna-3.20-py3-none-any.whl (70 kB)',
        'Installing collected packages: ' + ', '.join('abcdefghijklm'),
    ):
        progress.feed(line)
    assert capsys.readouterr().out == '  downloading torch-2.8.0, 888.1 MB\n  unpacking 13 packages\n'


def test_without_build_tools_one_line(tmp_path):
    """The script itself, on a machine with nothing but Python: exit code 1 and one line."""
    scripts = tmp_path / 'scripts'
    shutil.copytree(SCRIPTS, scripts)
    command = [sys.executable, scripts / 'bootstrap']
    ended = subprocess.run(command, env={'PATH': str(tmp_path)}, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr == (
        'set-up: cmake, make, g++ not found (Debian, Ubuntu: sudo apt install cmake make g++)\n'
    )


def test_the_wheels_cmake_files_are_mended_once(tmp_path):
    """Folders of the builder's machine are replaced, whatever the Python; a second run changes nothing."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        from provision.wheel_paths import fix_folder
    finally:
        sys.path.remove(str(SCRIPTS))
    path = tmp_path / 'std_msgs' / 'cmake' / 'export.cmake'
    path.parent.mkdir(parents=True)
    path.write_text(
        'X "/opt/python/cp311-cp311/include/python3.11;'
        '/opt/python/cp311-cp311/lib/python3.11/site-packages/numpy/_core/include"\n'
    )
    assert fix_folder(tmp_path, '/usr/include/python3.11', '/home/x/numpy/_core/include') == 1
    assert path.read_text() == 'X "/usr/include/python3.11;/home/x/numpy/_core/include"\n'
    assert fix_folder(tmp_path, '/usr/include/python3.11', '/home/x/numpy/_core/include') == 0
