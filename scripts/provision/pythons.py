"""Find the Python that the virtual environment is made from."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from provision.errors import SetupError

SUPPORTED = ((3, 13), (3, 12), (3, 11), (3, 10))
NAMES = [f'python{major}.{minor}' for major, minor in SUPPORTED] + ['python3', 'python']

# Runs in the candidate: what a virtual environment and the C extension of the messages need of it.
QUESTIONS = """
import importlib.util, json, os, platform, sys, sysconfig

def present(name):
    return importlib.util.find_spec(name) is not None

def version(name):
    try:
        from importlib import metadata
        return metadata.version(name)
    except Exception:
        return None

print(json.dumps({
    'version': sys.version_info[:2],
    'path': sys.executable,
    'cpython': platform.python_implementation() == 'CPython',
    'free_threaded': bool(sysconfig.get_config_var('Py_GIL_DISABLED')),
    'venv': present('venv') and present('ensurepip'),
    'headers': os.path.exists(os.path.join(sysconfig.get_paths()['include'], 'Python.h')),
    'modules': {name: version(name) for name in %r if present(name)},
}))
"""


def clean_environment() -> dict[str, str]:
    """This process's environment without what an already active environment would force on another Python."""
    dropped = ('PYTHONHOME', 'VIRTUAL_ENV', '_ROS_WHEELS_BOOTSTRAP_COMPLETE', '__PYVENV_LAUNCHER__')
    return {name: value for name, value in os.environ.items() if name not in dropped}


def ask(program: Path, modules: tuple[str, ...] = ()) -> dict | None:
    """What the interpreter says of itself; None when it does not run, like an inactive pyenv shim."""
    try:
        reply = subprocess.run(
            [str(program), '-c', QUESTIONS % (modules,)],
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return json.loads(reply.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def on_path(outside: Path, names: list[str] = NAMES) -> list[Path]:
    """Every program of these names on the PATH, in the order of the names, none from the folder `outside`."""
    folders = [Path(folder) for folder in os.environ.get('PATH', '').split(os.pathsep) if folder]
    found = [folder / name for name in names for folder in folders]
    return [program for program in found if os.access(program, os.X_OK) and outside not in program.parents]


def newest(outside: Path) -> dict:
    """The newest Python on the PATH that will do. Raises SetupError, which says what is missing."""
    usable, refused = [], []
    for answer in filter(None, map(ask, on_path(outside))):
        name = 'python{}.{}'.format(*answer['version'])
        if tuple(answer['version']) not in SUPPORTED or not answer['cpython'] or answer['free_threaded']:
            continue
        if not answer['venv']:
            refused.append(f'{answer["path"]} has no venv module (Debian, Ubuntu: apt install {name}-venv)')
        elif not answer['headers']:
            refused.append(f'{answer["path"]} has no C headers (Debian, Ubuntu: apt install {name}-dev)')
        else:
            usable.append(answer)
    if usable:
        return max(usable, key=lambda answer: answer['version'])
    raise SetupError('; '.join(dict.fromkeys(refused)) or 'no Python 3.10 to 3.13 found: install one of them')


def of_ros(distribution: str, outside: Path, modules: tuple[str, ...]) -> dict:
    """The Python of the sourced ROS 2, with the versions of those modules that it has. Raises SetupError."""
    for program in on_path(outside, ['python3', 'python']):
        answer = ask(program, ('rclpy', *modules))
        if answer and 'rclpy' in answer['modules']:
            if tuple(answer['version']) not in SUPPORTED:
                version = '.'.join(map(str, answer['version']))
                raise SetupError(f'ROS 2 {distribution} has Python {version}; 3.10 to 3.13 are supported')
            if not answer['venv']:
                raise SetupError(f'{answer["path"]} has no venv module (apt install python3-venv)')
            return answer
    raise SetupError(f'ROS 2 {distribution} is sourced, but no python3 on the PATH imports rclpy')
