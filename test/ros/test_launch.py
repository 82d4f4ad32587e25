"""The launch files: what they declare and start, and that what they start works."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from ament_index_python.packages import get_package_prefix, get_package_share_path
from rcl_interfaces.srv import GetParameters
from rclpy.parameter import parameter_value_to_python

from densereward_ros.msg import RewardStamped
from densereward_ros.ros.parameters import PARAMETERS, ParameterError
from densereward_ros.tabletop.episode import LiveTable
from launch_stand_ins import Launched
from ros_bench import FakeCamera, wait_for

SHARE = get_package_share_path('densereward_ros')
REWARD = SHARE / 'launch' / 'reward.launch.py'
DEMO = SHARE / 'launch' / 'demo.launch.py'
PREFIX = Path(get_package_prefix('densereward_ros'))
PROCESS_ARGUMENTS = [
    'params_file', 'namespace', 'node_name', 'use_sim_time', 'log_level', 'respawn', 'large_data']


def reward_node(**arguments: str):
    """The node of reward.launch.py with these arguments."""
    node, = Launched(REWARD, **arguments).nodes
    return node


def test_the_stand_ins_leave_no_trace():
    """Where launch is installed, the real one must be there again for whoever comes next."""
    before = {name: module for name, module in sys.modules.items() if name.startswith('launch')}
    reward_node()
    assert {name: module for name, module in sys.modules.items() if name.startswith('launch')} == before


def test_every_parameter_is_an_argument_with_its_description():
    """`ros2 launch -s` is the manual of those who do not read manuals."""
    declared = Launched(REWARD).declared
    assert list(declared) == [*PROCESS_ARGUMENTS, *(spec.name for spec in PARAMETERS)]
    for spec in PARAMETERS:
        assert declared[spec.name].description.startswith(spec.description)
        assert declared[spec.name].default_value == ('true' if spec.name == 'autostart' else '')
    assert all(one.description for one in declared.values())
    assert declared['params_file'].default_value == str(SHARE / 'config' / 'reward.yaml')
    assert Path(declared['params_file'].default_value).is_file()


def test_without_arguments_the_file_decides_everything_but_autostart():
    """Nothing is passed that would hide what the user wrote in the parameters file."""
    node = reward_node()
    assert node.parameters() == {'autostart': True}
    assert node.given['parameters'][0] == str(SHARE / 'config' / 'reward.yaml')
    assert (node.given['package'], node.given['executable']) == ('densereward_ros', 'reward_node')
    assert node.given['name'] == 'reward_node'
    assert (PREFIX / 'lib' / 'densereward_ros' / 'reward_node').is_file()
    assert node.given['respawn'] is False


def test_an_empty_namespace_is_not_passed():
    """namespace='' would undo the one that a surrounding launch file has pushed."""
    assert reward_node().given['namespace'] is None
    assert reward_node(namespace='left').given['namespace'] == 'left'


def test_the_middleware_is_left_alone_unless_asked():
    """Large-data transport on one side only makes a node deaf and mute: it is the user's decision."""
    assert reward_node().given['additional_env'] == {}
    assert reward_node().given['env'] is None
    assert reward_node(large_data='true').given['additional_env'] == {
        'FASTDDS_BUILTIN_TRANSPORTS': 'LARGE_DATA'}


@pytest.mark.parametrize(('text', 'passed'), [('', None), ('true', True), ('True', True), ('false', False)])
def test_sim_time_is_passed_only_when_given(text, passed):
    """A parameters file that says use_sim_time: true must not lose against a default."""
    assert reward_node(use_sim_time=text).parameters().get('use_sim_time') is passed


def test_autostart_is_passed_once_and_can_be_switched_off():
    """Under a lifecycle manager the node must wait; launch_ros's own autostart argument is never used."""
    assert reward_node(autostart='false').parameters() == {'autostart': False}
    files = [source for source in reward_node().given['parameters'] if isinstance(source, dict)]
    assert len(files) == 1


@pytest.mark.parametrize('name', ['use_sim_time', 'respawn', 'large_data', 'autostart'])
def test_a_slip_in_a_flag_is_an_error(name):
    """large_data:=yes must not quietly mean no."""
    with pytest.raises(ValueError, match=f'{name}:=yes, allowed: true or false'):
        reward_node(**{name: 'yes'})


def test_arguments_have_their_types():
    """A rate without a point, a task that YAML would read as something else, and lists in three spellings."""
    given = {
        'task': 'on', 'rate': '2', 'confirmations': '3', 'image_topics': "['/a', '/b']", 'model': '7',
        'frame_interval': '0', 'log_level': 'debug', 'respawn': 'true', 'node_name': 'judge'}
    node = reward_node(**given)
    assert node.parameters() == {
        'task': 'on', 'rate': 2.0, 'confirmations': 3, 'image_topics': ['/a', '/b'], 'model': '7',
        'frame_interval': 0.0, 'autostart': True}
    assert isinstance(node.parameters()['rate'], float)
    assert node.given['arguments'] == ['--ros-args', '--log-level', 'debug']
    assert node.given['respawn'] is True
    assert node.given['respawn_delay'] == 2.0
    assert node.given['name'] == 'judge'


@pytest.mark.parametrize(('name', 'text'), [('rate', 'fast'), ('confirmations', '0'), ('image_topics', '[]')])
def test_a_wrong_argument_is_refused_before_anything_starts(name, text):
    """One line that names the argument and what is allowed."""
    with pytest.raises(ParameterError, match=name):
        reward_node(**{name: text})


def parameters_of(client, node: str, names: list[str]) -> dict:
    """What a running node has for these parameters."""
    answer = client.call(GetParameters, f'/{node}/get_parameters', GetParameters.Request(names=names), 60.0)
    return dict(zip(names, map(parameter_value_to_python, answer.values), strict=True))


@pytest.mark.slow
def test_what_reward_launch_starts_gives_rewards(client, processes, tmp_path):
    """The very executable and parameters: arguments win over the file, the file over the defaults."""
    file = tmp_path / 'mine.yaml'
    file.write_text(yaml.safe_dump({'/**': {'ros__parameters': {
        'model': 'tabletop', 'device': 'cpu', 'rate': 4.0, 'task': 'from the file', 'cooldown': 9.0}}}))
    table = LiveTable(3)
    node = reward_node(
        params_file=str(file), namespace='/cell', node_name='judge', task=table.task,
        image_topics='camera/image_raw', frame_interval='0', autostart='true')
    process = processes(node.command(PREFIX, tmp_path), **node.given['additional_env'])
    process.wait_for_line('active: task')
    assert parameters_of(
        client, 'cell/judge', ['model', 'rate', 'task', 'cooldown', 'image_topics', 'confirmations']) == {
            'model': 'tabletop', 'rate': 4.0, 'task': table.task, 'cooldown': 9.0,
            'image_topics': ['camera/image_raw'], 'confirmations': 2}
    camera = FakeCamera(client, '/cell/camera/image_raw')
    rewards = client.listen(RewardStamped, '/cell/reward')
    for _ in range(100):
        table.step()
        camera.send(time.time_ns(), table.render())
        time.sleep(0.1)
        if rewards:
            break
    assert rewards[0].camera == '/cell/camera/image_raw'
    assert rewards[0].task == table.task
    assert np.isfinite(rewards[0].reward)
    assert process.signal()[0] == 0


@pytest.mark.slow
def test_what_demo_launch_starts_gives_rewards(client, processes, tmp_path):
    """The simulated robot, the node and the recovery controller find each other."""
    nodes = Launched(DEMO).nodes
    assert sorted(node.given['executable'] for node in nodes) == [
        'camera_player', 'recovery_node', 'reward_node']
    namespace, = {node.given['namespace'] for node in nodes}
    started = []
    for number, node in enumerate(nodes):
        folder = tmp_path / str(number)
        folder.mkdir()
        started.append(processes(node.command(PREFIX, folder)))
    rewards = client.listen(RewardStamped, f'/{namespace.strip("/")}/reward')
    wait_for(lambda: len(rewards) >= 3, 90.0, f'three rewards; {[process.lines[-3:] for process in started]}')
    assert {reward.model for reward in rewards} == {'tabletop'}
    assert all(process.process.poll() is None for process in started)


if importlib.util.find_spec('launch_ros') is not None:  # the ROS 2 wheels have none

    @pytest.mark.slow
    def test_the_real_launch_starts_the_node(client, processes):
        """On a machine with ROS 2: `ros2 launch`'s own classes run the same file."""
        program = f"""
import sys
from launch import LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
arguments = {{'model': 'tabletop', 'device': 'cpu', 'node_name': 'launched'}}
service = LaunchService()
service.include_launch_description(IncludeLaunchDescription(
    PythonLaunchDescriptionSource({str(REWARD)!r}), launch_arguments=arguments.items()))
sys.exit(service.run())
"""
        process = processes([sys.executable, '-c', program])
        process.wait_for_line('active, but idle')
        assert client.state('launched') == 'active'
        assert process.signal()[0] == 0
