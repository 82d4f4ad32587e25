"""Stand-ins of launch and launch_ros that record what a launch file asks for.

The ROS 2 wheels have no launch. These classes take the arguments of the real ones as Humble has them,
the oldest release supported, and no others: a misspelt or newer argument is a TypeError here too.
"""

from __future__ import annotations

import runpy
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml


class LaunchDescription:
    """Keeps its entities."""

    def __init__(self, initial_entities=None, *, deprecated_reason=None):
        self.entities = list(initial_entities or ())


class DeclareLaunchArgument:
    """Keeps its name, default and description."""

    def __init__(self, name, *, default_value=None, description=None, choices=None, condition=None):
        assert isinstance(name, str)
        assert default_value is None or isinstance(default_value, str), f'{name}: launch arguments are texts'
        self.name, self.default_value, self.description = name, default_value, description


class OpaqueFunction:
    """Keeps its function."""

    def __init__(self, *, function, args=None, kwargs=None, condition=None):
        self.function, self.args, self.kwargs = function, args or (), kwargs or {}


class Shutdown:
    """Keeps its reason."""

    def __init__(self, *, reason='reason not given', condition=None):
        self.reason = reason


class LaunchConfiguration:
    """Gives the value of an argument."""

    def __init__(self, variable_name, *, default=None):
        self.variable_name = variable_name

    def perform(self, context):
        """The text that the argument has."""
        return context.launch_configurations[self.variable_name]


class ParameterValue:
    """Keeps a value and its type."""

    def __init__(self, value, *, value_type=None):
        self.value, self.value_type = value, value_type


class Node:
    """Records its arguments under their names; command() is what the real one would execute."""

    def __init__(
        self, *, executable, package=None, name=None, namespace=None, exec_name=None, parameters=None,
        remappings=None, ros_arguments=None, arguments=None, output=None, output_format=None,
        emulate_tty=False, respawn=False, respawn_delay=0.0, additional_env=None, env=None,
        on_exit=None, prefix=None, cwd=None, shell=False,
        sigterm_timeout=None, sigkill_timeout=None, log_cmd=False, condition=None,
    ):
        given = dict(locals())
        del given['self']
        self.given = given

    def parameters(self) -> dict:
        """The parameters that are not in files, with their types."""
        return {
            name: typed(value) for source in self.given['parameters'] if isinstance(source, dict)
            for name, value in source.items()}

    def command(self, prefix: Path, folder: Path) -> list[str]:
        """The process's arguments; dictionaries of parameters become files in `folder`, as in launch_ros."""
        given = self.given
        command = [str(prefix / 'lib' / given['package'] / given['executable']), *(given['arguments'] or ())]
        command.append('--ros-args')
        if given['name']:
            command += ['-r', f'__node:={given["name"]}']
        if given['namespace']:
            command += ['-r', f'__ns:={given["namespace"]}']
        for number, source in enumerate(given['parameters'] or ()):
            if isinstance(source, dict):
                content = {name: typed(value) for name, value in source.items()}
                source = folder / f'parameters_{number}.yaml'
                source.write_text(yaml.safe_dump({'/**': {'ros__parameters': content}}))
            command += ['--params-file', str(source)]
        for old, new in given['remappings'] or ():
            command += ['-r', f'{old}:={new}']
        return command


def typed(value):
    """A value as launch_ros passes it on; a bare text would be read as YAML."""
    if isinstance(value, ParameterValue):
        return value.value
    assert not isinstance(value, str), f'{value!r} without a type would be read as YAML'
    return value


MODULES = {
    'launch': (LaunchDescription,),
    'launch.actions': (DeclareLaunchArgument, OpaqueFunction, Shutdown),
    'launch.substitutions': (LaunchConfiguration,),
    'launch_ros': (),
    'launch_ros.actions': (Node,),
    'launch_ros.parameter_descriptions': (ParameterValue,),
}


@contextmanager
def stand_ins() -> Iterator[None]:
    """While this lasts, `launch` and `launch_ros` are the stand-ins."""
    real = [name for name in sys.modules if name.split('.')[0] in ('launch', 'launch_ros')]
    before = {name: sys.modules.pop(name) for name in real}
    for name, classes in MODULES.items():
        module = types.ModuleType(name)
        for one in classes:
            setattr(module, one.__name__, one)
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in MODULES:
            del sys.modules[name]
        sys.modules.update(before)


class Launched:
    """A launch file with arguments: what it declares, and the nodes that it starts.

    Raises KeyError for an argument that the file does not declare.
    """

    def __init__(self, file: Path, **given: str) -> None:
        with stand_ins():
            entities = runpy.run_path(str(file))['generate_launch_description']().entities
            self.declared = {one.name: one for one in entities if isinstance(one, DeclareLaunchArgument)}
            configurations = {name: one.default_value for name, one in self.declared.items()}
            unknown = set(given) - set(configurations)
            if unknown:
                raise KeyError(f'{file.name} does not declare {sorted(unknown)}')
            context = types.SimpleNamespace(launch_configurations={**configurations, **given})
            started = []
            for one in entities:
                if isinstance(one, OpaqueFunction):
                    started += one.function(context, *one.args, **one.kwargs) or ()
                elif not isinstance(one, DeclareLaunchArgument):
                    started.append(one)
        self.nodes = [one for one in started if isinstance(one, Node)]
        assert self.nodes == started, started
