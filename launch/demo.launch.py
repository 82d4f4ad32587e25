"""Starts the demo's nodes: a simulated robot (or a recording), the reward node and a recovery controller.

ros2 launch densereward_ros demo.launch.py
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from densereward_ros.ros.demo.processes import NAMESPACE, TABLETOP, demo_processes

ARGUMENTS = (
    ('source', TABLETOP, 'A video file instead of the simulated robot; the launch ends when it does.'),
    ('task', '', 'What the recording shows, in words; the simulated robot chooses its own tasks.'),
)


def typed(value):
    """A parameter value that launch_ros does not reinterpret: the task "on" is no truth value."""
    return ParameterValue(value, value_type=str) if isinstance(value, str) else value


def start_nodes(context):
    """One node for each process of the demo."""
    given = {name: LaunchConfiguration(name).perform(context) for name, _, _ in ARGUMENTS}
    return [
        Node(
            package='densereward_ros',
            executable=process.executable,
            namespace=NAMESPACE,
            parameters=[{name: typed(value) for name, value in process.parameters.items()}],
            remappings=list(process.remappings.items()),
            output='screen',
            emulate_tty=True,
            # A recording has an end, and without a camera the others have nothing to do.
            on_exit=Shutdown() if process.executable == 'camera_player' else None,
        )
        for process in demo_processes(given['source'], given['task'], subscribers=1)
    ]


def generate_launch_description():
    """The nodes live in their own namespace; `make demo` adds a live view and a summary."""
    return LaunchDescription([
        *(
            DeclareLaunchArgument(name, default_value=default, description=description)
            for name, default, description in ARGUMENTS
        ),
        OpaqueFunction(function=start_nodes),
    ])
