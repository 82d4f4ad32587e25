"""Starts the reward node, configured and active.

ros2 launch densereward_ros reward.launch.py task:="put the black bowl on the plate"
"""

from pathlib import Path
from typing import List

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from densereward_ros.ros.parameters import PARAMETERS, value_of_text

PARAMS_FILE = str(Path(get_package_share_directory('densereward_ros')) / 'config' / 'reward.yaml')
# The launch file is for people who start one thing by hand: without a lifecycle manager the node
# would wait forever. A parameters file cannot know who starts the node, so this one has a default.
AUTOSTART = 'true'

PROCESS_ARGUMENTS = (
    ('params_file', PARAMS_FILE, 'YAML file with parameters; the arguments of this launch file win over it.'),
    ('namespace', '', 'Namespace of the node and its relative topics.'),
    ('node_name', 'reward_node', 'Name of the node.'),
    ('use_sim_time', '',
     'true: take the time from /clock (simulation, bag replay). (Left out: as in params_file.)'),
    ('log_level', 'info', 'debug, info, warn, error or fatal.'),
    ('respawn', 'false', 'Start the node again, two seconds after it dies.'),
    ('large_data', 'false',
     'Set Fast DDS (Jazzy and later) to its large-data transport for this node. Only for raw images above '
     'about 1 MB, and only when every camera driver and every listener uses it too: with one side alone '
     'nothing arrives.'),
)


def parameters_given(context):
    """The parameters whose arguments were given; the others stay as the parameters file has them."""
    given = {}
    for spec in PARAMETERS:
        text = LaunchConfiguration(spec.name).perform(context)
        if text == '':
            continue
        value = value_of_text(spec, text)
        # Left to itself launch_ros reads the task "on" as a truth value and "7" as a number.
        if isinstance(value, str):
            value = ParameterValue(value, value_type=str)
        elif isinstance(value, list):
            value = ParameterValue(value, value_type=List[str])
        given[spec.name] = value
    return given


def truth(name, text):
    """The truth value of an argument; a slip such as large_data:=yes must not pass as false."""
    if text.lower() not in ('true', 'false'):
        raise ValueError(f'{name}:={text}, allowed: true or false')
    return text.lower() == 'true'


def start_node(context):
    """The node, with the arguments as they were given."""
    given = {name: LaunchConfiguration(name).perform(context) for name, _, _ in PROCESS_ARGUMENTS}
    flags = {name: truth(name, given[name]) for name in ('respawn', 'large_data')}
    sim_time = {'use_sim_time': truth('use_sim_time', given['use_sim_time'])} if given['use_sim_time'] else {}
    # An empty namespace is not the same as none: it would undo one that a surrounding launch file pushed.
    namespace = {'namespace': given['namespace']} if given['namespace'] else {}
    return [
        Node(
            package='densereward_ros',
            executable='reward_node',
            name=given['node_name'],
            parameters=[
                given['params_file'],
                {**sim_time, **parameters_given(context)},
            ],
            arguments=['--ros-args', '--log-level', given['log_level']],
            additional_env={'FASTDDS_BUILTIN_TRANSPORTS': 'LARGE_DATA'} if flags['large_data'] else {},
            respawn=flags['respawn'],
            respawn_delay=2.0,
            output='screen',
            emulate_tty=True,
            **namespace,
        )
    ]


def generate_launch_description():
    """Every parameter of the node is an argument; left out, it is as in the parameters file."""
    return LaunchDescription([
        *(
            DeclareLaunchArgument(name, default_value=default, description=description)
            for name, default, description in PROCESS_ARGUMENTS
        ),
        *(
            DeclareLaunchArgument(
                spec.name,
                default_value=AUTOSTART if spec.name == 'autostart' else '',
                description=f'{spec.description} (Left out: as in params_file.)'
                if spec.name != 'autostart' else spec.description,
            )
            for spec in PARAMETERS
        ),
        OpaqueFunction(function=start_node),
    ])
