"""The package as it is built, installed and imported."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ament_index_python.packages import get_package_prefix

import densereward_ros
from densereward_ros.msg import EpisodeState, FailureEvent, RewardStamped
from densereward_ros.types import Reason, Rule

NODES = ('camera_player', 'demo', 'recovery_node', 'reward_node')

# Recorded bags hold these definitions: any change makes them unreadable.
REASONS = [
    'uint8 REASON_NONE=0',
    'uint8 REASON_CORRECT=1',
    'uint8 REASON_MISS=2',
    'uint8 REASON_COLLISION=3',
    'uint8 REASON_FALL=4',
    'uint8 REASON_SMOOTH=5',
    'uint8 REASON_FAILURE=6',
]
DEFINITIONS = {
    'RewardStamped': [
        *REASONS,
        'std_msgs/Header header',
        'string camera',
        'string task',
        'float32 reward',
        'bool bounded',
        'uint8 reason',
        'float32[6] reason_probabilities',
        'builtin_interfaces/Time[3] frame_stamps',
        'builtin_interfaces/Duration inference_time',
        'string model',
    ],
    'FailureEvent': [
        *REASONS,
        'uint8 RULE_WORD=1',
        'uint8 RULE_REWARD_DROP=2',
        'std_msgs/Header header',
        'string[] cameras',
        'string task',
        'uint8 reason',
        'uint8 rule',
        'float32 reward',
        'float32 previous_reward',
        'float32 probability',
        'uint32 confirmations',
        'uint64 sequence',
    ],
    'EpisodeState': [
        'uint8 STATE_UNKNOWN=0',
        'uint8 STATE_RUNNING=1',
        'uint8 STATE_FAILING=2',
        'uint8 STATE_STALLED=3',
        'uint8 STATE_SUCCEEDED=4',
        'builtin_interfaces/Time stamp',
        'string task',
        'uint8 state',
    ],
}


@pytest.fixture(scope='module')
def prefix() -> Path:
    """The folder that the package was installed to."""
    return Path(get_package_prefix('densereward_ros'))


def definition(path: Path) -> list[str]:
    """The fields and constants of a .msg file, without comments."""
    lines = (re.sub(r'#.*', '', line).strip() for line in path.read_text(encoding='utf-8').splitlines())
    return [line for line in lines if line]


def test_the_built_package_is_imported(repository):
    """The modules come from the install folder, where the messages are, and not from the source folder."""
    folder = Path(densereward_ros.__path__[0])
    assert folder != repository / 'densereward_ros'
    assert (folder / 'msg' / '__init__.py').exists()


def test_our_init_wins_over_the_generated_one():
    """rosidl installs an empty __init__.py at the same place; ours, with the version, replaces it."""
    assert densereward_ros.__version__


def test_versions_agree(repository):
    """package.xml and __init__.py state one version; setup.py reads the latter."""
    stated = ElementTree.parse(repository / 'package.xml').findtext('version')
    asked = subprocess.run(
        [sys.executable, 'setup.py', '--version'], cwd=repository, capture_output=True, text=True, check=True
    )
    assert stated == densereward_ros.__version__ == asked.stdout.split()[-1]


def test_the_messages_do_not_depend_on_the_model_code(repository):
    """A controller that wants the messages must not pull torch in, and the package joins rosidl's group."""
    package = ElementTree.parse(repository / 'package.xml').getroot()
    needed = [element.text for element in package if element.tag.endswith('depend')]
    assert 'rclpy' in needed
    assert not [name for name in needed if 'torch' in name or 'transformers' in name]
    assert package.findtext('member_of_group') == 'rosidl_interface_packages'
    assert package.findtext('export/build_type') == 'ament_cmake'


@pytest.mark.parametrize('name', DEFINITIONS)
def test_definition_is_pinned(repository, prefix, name):
    """The definition in the source and in the install is the one that recorded bags hold."""
    for folder in (repository, prefix / 'share' / 'densereward_ros'):
        assert definition(folder / 'msg' / f'{name}.msg') == DEFINITIONS[name]


@pytest.mark.parametrize('message', [RewardStamped, FailureEvent])
def test_reason_values(message):
    """The messages' REASON_ values are those of types.Reason, one for one."""
    names = [line.split()[1].split('=')[0] for line in REASONS]
    values = {name.removeprefix('REASON_'): getattr(message, name) for name in names}
    assert values == dict(Reason.__members__)


def test_rule_values():
    """The messages' RULE_ values are those of types.Rule, one for one."""
    values = {'WORD': FailureEvent.RULE_WORD, 'REWARD_DROP': FailureEvent.RULE_REWARD_DROP}
    assert values == dict(Rule.__members__)


def test_state_values():
    """An EpisodeState that nobody filled in says unknown."""
    assert EpisodeState().state == EpisodeState.STATE_UNKNOWN


@pytest.mark.parametrize('name', [*NODES, 'densereward'])
def test_script_can_be_started(repository, prefix, name):
    """Each executable, source and installed, has the run bit and honours an active environment."""
    folder = 'bin' if name == 'densereward' else 'lib/densereward_ros'
    for path in (repository / 'scripts' / name, prefix / folder / name):
        assert os.access(path, os.X_OK)
        assert path.read_text(encoding='utf-8').startswith('#!/usr/bin/env python3\n')


@pytest.mark.parametrize('name', [*NODES, 'densereward'])
def test_script_without_its_modules_says_so_in_one_line(repository, name):
    """In a terminal where nothing was sourced, an executable tells what to do instead of a traceback."""
    environment = {**os.environ, 'PYTHONPATH': ''}
    ended = subprocess.run(
        [sys.executable, '-I', repository / 'scripts' / name], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert ended.stderr.count('\n') == 1
    assert ended.stderr.startswith(f'{name}: ') and 'source the setup.bash' in ended.stderr


@pytest.mark.parametrize(
    'path',
    [
        'share/densereward_ros/package.xml',
        'share/densereward_ros/launch/reward.launch.py',
        'share/densereward_ros/launch/demo.launch.py',
        'share/densereward_ros/config/reward.yaml',
        'share/densereward_ros/models/tabletop/model.safetensors',
        'share/densereward_ros/models/tabletop/system_prompt.txt',
        'include/densereward_ros/densereward_ros/msg/reward_stamped.hpp',
        'include/densereward_ros/densereward_ros/msg/failure_event.hpp',
        'include/densereward_ros/densereward_ros/msg/episode_state.hpp',
    ],
)
def test_installed_file(prefix, path):
    """Launch files, parameters, demo checkpoint and C++ headers are where ROS 2 users look for them."""
    assert (prefix / path).is_file()


def test_every_module_is_installed(repository):
    """No subpackage is left out, not even one that holds only an __init__.py."""
    installed = Path(densereward_ros.__path__[0])
    source = repository / 'densereward_ros'
    modules = [path.relative_to(source) for path in source.rglob('*.py')]
    assert len(modules) > 20
    assert [path for path in modules if not (installed / path).is_file()] == []


def test_every_subpackage_has_an_init(repository):
    """Folders without __init__.py would be left out by pip."""
    folders = {path.parent for path in (repository / 'densereward_ros').rglob('*.py')}
    assert [folder for folder in folders if not (folder / '__init__.py').is_file()] == []


def test_core_never_imports_rclpy(repository):
    """Only densereward_ros/ros knows ROS; everything else also runs after `pip install` without it."""
    source = repository / 'densereward_ros'
    guilty = []
    for path in source.rglob('*.py'):
        if path.relative_to(source).parts[0] == 'ros':
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ''] if isinstance(node, ast.ImportFrom) else []
            if any(name.split('.')[0] == 'rclpy' or name.startswith('densereward_ros.ros') for name in names):
                guilty.append(str(path))
    assert guilty == []


def test_nothing_from_outside_can_become_code(repository):
    """No pickle and its like, no eval, no torch.load; weights are safetensors, without a model's own code."""
    modules = {'pickle', 'cPickle', 'dill', 'cloudpickle', 'joblib', 'shelve', 'marshal'}
    guilty, loads = [], 0
    for path in (repository / 'densereward_ros').rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ''] if isinstance(node, ast.ImportFrom) else []
            called, keywords = '', {}
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            bad = called in ('eval', 'exec', 'compile', 'torch.load', 'yaml.load', 'os.system')
            bad |= any(name.split('.')[0] in modules for name in names) or 'allow_pickle' in keywords
            # The demo's training reads its own files alone.
            if called.endswith('.from_pretrained') and path.parent.name == 'models':
                loads += 1
                bad |= keywords.get('trust_remote_code') != 'False'
                bad |= 'Conditional' in called and keywords.get('use_safetensors') != 'True'
            if bad:
                guilty.append(f'{path.name}:{node.lineno}')
    assert guilty == []
    assert loads >= 2


def test_make_hands_a_task_on_as_it_was_typed(repository):
    """A dollar sign is not a variable of make's, and nothing in a task is run."""
    task = 'cost $5, $(shell echo ran) "quoted" \'too\' #1'
    shown = subprocess.run(
        ['make', '--no-print-directory', '--eval', 'show: ; @printenv TASK', 'show', f'TASK={task}'],
        cwd=repository, capture_output=True, text=True)
    assert shown.stdout == f'{task}\n', shown.stderr


def test_pip_install_without_ros(repository, tmp_path):
    """`pip install .` gives a command that finds the demo checkpoint, far from the source and ROS."""
    if int(metadata.version('setuptools').split('.')[0]) < 71:
        pytest.skip('a setuptools before 71 needs a download to build a wheel')
    source, target = tmp_path / 'source', tmp_path / 'target'
    for name in ('densereward_ros', 'models', 'msg'):
        shutil.copytree(repository / name, source / name, ignore=shutil.ignore_patterns('__pycache__'))
    for name in ('setup.py', 'pyproject.toml', 'LICENSE'):
        shutil.copy(repository / name, source)
    environment = {
        name: value for name, value in os.environ.items() if name not in ('PYTHONPATH', 'AMENT_PREFIX_PATH')
    }
    install = [sys.executable, '-m', 'pip', 'install', '--quiet', '--no-deps', '--no-build-isolation']
    subprocess.run([*install, '--target', target, source], env=environment, check=True)
    shutil.rmtree(source)

    environment['PYTHONPATH'] = str(target)

    def run(*arguments: str | Path) -> str:
        command = [sys.executable, *arguments]
        return subprocess.check_output(command, cwd=tmp_path, env=environment, text=True)

    assert run(target / 'bin' / 'densereward', '--version') == f'densereward {densereward_ros.__version__}\n'
    find = 'from densereward_ros.models.checkpoint import tabletop_folder; print(tabletop_folder())'
    folder = target / 'share' / 'densereward_ros' / 'models' / 'tabletop'
    assert Path(run('-c', find).strip()) == folder
    assert sorted(os.listdir(folder)) == sorted(os.listdir(repository / 'models' / 'tabletop'))
    find = 'from densereward_ros.results.mcap import definitions; print(definitions())'
    folder = target / 'share' / 'densereward_ros' / 'msg'
    assert Path(run('-c', find).strip()) == folder
    assert sorted(os.listdir(folder)) == sorted(os.listdir(repository / 'msg'))
