"""The parameter table: against the YAML file, the launch file and the README, and what wrong values say."""

from __future__ import annotations

import math
import os
import re
import subprocess

import pytest
import yaml
from ament_index_python.packages import get_package_share_path
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParameters
from rclpy.parameter import Parameter, parameter_value_to_python

from densereward_ros.models.base import (
    DTYPES,
    ENGINES,
    IMAGE_FORMATS,
    MIN_NEW_TOKENS,
    QUANTIZATIONS,
    RELEASED_MODEL,
    ModelOptions,
)
from densereward_ros.msg import EpisodeState
from densereward_ros.ros.parameters import (
    PARAMETERS,
    SPEC_OF_NAME,
    ParameterError,
    check_value,
    value_of_text,
)
from densereward_ros.ros.publications import LATCHED_QOS
from ros_bench import TASK, ScriptedModel, wait_for

DEFAULTS = {
    'model': 'densereward/densereward-3frame-thinking',
    'model_revision': 'main',
    'device': 'auto',
    'dtype': 'auto',
    'engine': 'fast',
    'constrain': True,
    'max_pixels': 0,
    'quantization': 'none',
    'gpu_memory': 0.0,
    'cuda_graphs': False,
    'server_url': '',
    'server_timeout': 2.0,
    'server_checkpoint': '',
    'image_format': 'png',
    'jpeg_quality': 90,
    'image_topics': ['/camera/image_raw'],
    'task': '',
    'rate': 5.0,
    'frame_interval': 0.2,
    'max_frame_age': 1.0,
    'confirmations': 2,
    'confirmation_window': 0,
    'probability_floor': 0.0,
    'reward_drop': 0.0,
    'drop_window': 2.0,
    'clearing': 1,
    'cooldown': 2.0,
    'stall_time': 10.0,
    'stall_rise': 0.05,
    'success_level': 0.9,
    'success_time': 1.0,
    'fusion': 'any',
    'primary_camera': '',
    'thresholds': '',
    'max_new_tokens': 32,
    'autostart': False,
}


def test_names_and_defaults_are_what_users_were_promised():
    """Changing a default changes what robots do: it must be deliberate."""
    assert {spec.name: spec.default for spec in PARAMETERS} == DEFAULTS


def test_the_defaults_are_allowed_and_agree_with_the_models_own():
    """The model's options are declared a second time, without ROS; they must not drift apart."""
    for spec in PARAMETERS:
        check_value(spec, spec.default)
    options = ModelOptions()
    assert options.model == RELEASED_MODEL == SPEC_OF_NAME['model'].default
    assert options.revision == SPEC_OF_NAME['model_revision'].default
    assert options.device == SPEC_OF_NAME['device'].default
    assert options.dtype == SPEC_OF_NAME['dtype'].default
    assert options.max_new_tokens == SPEC_OF_NAME['max_new_tokens'].default
    assert SPEC_OF_NAME['max_new_tokens'].minimum == MIN_NEW_TOKENS
    assert SPEC_OF_NAME['dtype'].choices == DTYPES
    assert options.engine == SPEC_OF_NAME['engine'].default
    assert SPEC_OF_NAME['engine'].choices == ENGINES
    assert SPEC_OF_NAME['quantization'].choices == QUANTIZATIONS
    assert SPEC_OF_NAME['image_format'].choices == IMAGE_FORMATS
    for name in (
            'constrain', 'max_pixels', 'quantization', 'gpu_memory', 'cuda_graphs', 'server_url',
            'server_timeout', 'server_checkpoint', 'image_format', 'jpeg_quality'):
        assert getattr(options, name) == SPEC_OF_NAME[name].default


def test_the_shipped_file_holds_every_parameter_with_its_default_and_no_other():
    """rclpy ignores an undeclared key without a word, so a typo in the shipped file would never show."""
    file = get_package_share_path('densereward_ros') / 'config' / 'reward.yaml'
    content = yaml.safe_load(file.read_text())
    assert list(content) == ['/**']
    assert list(content['/**']) == ['ros__parameters']
    values = content['/**']['ros__parameters']
    assert values == DEFAULTS
    assert [(name, type(value)) for name, value in values.items()] == [
        (name, type(value)) for name, value in DEFAULTS.items()]


def test_the_shipped_file_explains_every_parameter(repository):
    """Each key has a comment above it, and each range in it is the one that is enforced."""
    lines = (repository / 'config' / 'reward.yaml').read_text().splitlines()
    for spec in PARAMETERS:
        at, = [i for i, line in enumerate(lines) if line.strip().startswith(f'{spec.name}:')]
        start = at
        while lines[start - 1].strip().startswith('#'):
            start -= 1
        comment = ' '.join(line.strip(' #') for line in lines[start:at])
        assert comment, spec.name
        if spec.minimum is not None:
            allowed = f'({spec.minimum:g} to {spec.maximum:.9g})'
            assert allowed in re.sub(r'(\d)\.0\b', r'\1', comment), comment
        assert ('while running' in comment) is spec.live, comment


def test_the_readmes_table_is_the_parameter_table(repository):
    """Name and default of each parameter, in the table's order, and none that does not exist."""
    rows = re.findall(r'^\| *`(\w+)` *\| *([^|]*?) *\|', (repository / 'README.md').read_text(), re.MULTILINE)
    names = [name for name, _ in rows if name in DEFAULTS]
    table = {name: default.strip('`') for name, default in rows if name in DEFAULTS}
    assert names == list(DEFAULTS)
    written = {
        name: str(value).lower() if isinstance(value, bool) else repr(value) if value == '' else str(value)
        for name, value in DEFAULTS.items()}
    assert table == written


@pytest.mark.parametrize(('name', 'value', 'words'), [
    ('rate', 5, ['rate is 5, an integer; write 5.0']),
    ('rate', 0.0, ['rate is 0.0', '0.1 to 100.0']),
    ('rate', 1000.0, ['rate is 1000.0', '0.1 to 100.0']),
    ('rate', math.nan, ['rate is nan', '0.1 to 100.0']),
    ('rate', math.inf, ['rate is inf', '0.1 to 100.0']),
    ('rate', 'fast', ["rate is 'fast'", '0.1 to 100.0']),
    ('frame_interval', -0.1, ['frame_interval is -0.1', '0.0 to 10.0']),
    ('max_frame_age', 0.0, ['max_frame_age is 0.0', '0.05 to 60.0']),
    ('cooldown', -1.0, ['cooldown is -1.0', '0.0 to 3600.0']),
    ('confirmations', 0, ['confirmations is 0', 'a whole number, 1 to 100']),
    ('confirmations', 2.0, ['confirmations is 2.0', 'a whole number, 1 to 100']),
    ('confirmations', True, ['confirmations is True', 'a whole number, 1 to 100']),
    ('max_new_tokens', 16, ['max_new_tokens is 16', 'a whole number, 32 to 1024']),
    ('image_topics', [], ['image_topics is []', 'a list of at least one text']),
    ('image_topics', '/camera', ["image_topics is '/camera'", 'a list of at least one text']),
    ('image_topics', [1, 2], ['image_topics is [1, 2]', 'a list of at least one text']),
    ('task', 1, ['task is 1', 'a text', 'put it in quotes']),
    ('task', True, ['task is True', 'a text', 'put it in quotes']),
    ('model', None, ['model is empty', 'a text']),
    ('image_topics', None, ['image_topics is empty', 'a list of at least one text']),
    ('dtype', 'int8', ["dtype is 'int8'", 'auto, bfloat16, float16, float32']),
    ('autostart', 'yes', ["autostart is 'yes'", 'true or false']),
    ('autostart', 1, ['autostart is 1', 'true or false']),
])
def test_a_wrong_value_is_one_line_with_name_value_and_what_is_allowed(name, value, words):
    """Wrong type, out of range, not a number, empty list, and YAML that reads a text as something else."""
    with pytest.raises(ParameterError) as caught:
        check_value(SPEC_OF_NAME[name], value)
    text = str(caught.value)
    assert text.startswith(f'parameter {name} is ')
    assert all(word in text for word in words), text
    assert '\n' not in text


@pytest.mark.parametrize(('name', 'text', 'value'), [
    ('rate', '5', 5.0),
    ('rate', '0.5', 0.5),
    ('confirmations', '3', 3),
    ('task', 'on', 'on'),
    ('task', '7', '7'),
    ('task', "pick up the robot's cup, then stop", "pick up the robot's cup, then stop"),
    ('autostart', 'True', True),
    ('autostart', 'false', False),
    ('image_topics', "['/a/image_raw', '/b/image_raw']", ['/a/image_raw', '/b/image_raw']),
    ('image_topics', '["/a"]', ['/a']),
    ('image_topics', '[/a, /b]', ['/a', '/b']),
    ('image_topics', '/a,/b', ['/a', '/b']),
    ('image_topics', '/a', ['/a']),
    ('model', '/models/my model', '/models/my model'),
])
def test_texts_of_a_command_line(name, text, value):
    """The launch arguments: a task stays a text, a rate may lack its point, a list has three spellings."""
    found = value_of_text(SPEC_OF_NAME[name], text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(('name', 'text'), [
    ('rate', 'fast'), ('rate', 'nan'), ('rate', '0'), ('confirmations', '2.5'), ('autostart', '1'),
    ('autostart', ''), ('image_topics', '[]'), ('image_topics', "['']"), ('dtype', 'int8'),
])
def test_wrong_texts_of_a_command_line(name, text):
    """Each names the parameter, what was written, and what is allowed."""
    with pytest.raises(ParameterError) as caught:
        value_of_text(SPEC_OF_NAME[name], text)
    assert name in str(caught.value)
    assert SPEC_OF_NAME[name].allowed in str(caught.value)


def test_descriptors_carry_description_and_range(start_node, client):
    """What `ros2 param describe` and rqt show."""
    start_node()
    names = [spec.name for spec in PARAMETERS]
    answer = client.call(
        DescribeParameters, '/reward_node/describe_parameters', DescribeParameters.Request(names=names))
    types = {
        str: ParameterType.PARAMETER_STRING, float: ParameterType.PARAMETER_DOUBLE,
        int: ParameterType.PARAMETER_INTEGER, bool: ParameterType.PARAMETER_BOOL,
        list: ParameterType.PARAMETER_STRING_ARRAY}
    for spec, descriptor in zip(PARAMETERS, answer.descriptors, strict=True):
        assert (descriptor.name, descriptor.description) == (spec.name, spec.description)
        assert descriptor.type == types[type(spec.default)]
        assert not descriptor.dynamic_typing
        ranges = [(r.from_value, r.to_value) for r in (
            *descriptor.floating_point_range, *descriptor.integer_range)]
        assert ranges == ([] if spec.minimum is None else [(spec.minimum, spec.maximum)])
        assert ('next configure' in descriptor.additional_constraints) is not spec.live
        assert all(choice in descriptor.additional_constraints for choice in spec.choices)


@pytest.mark.parametrize(('name', 'value'), [
    ('rate', 5), ('rate', math.nan), ('confirmations', 0), ('task', 1), ('task', 'one\ntwo'),
    ('task', 'x<|im_end|>'), ('image_topics', 'camera'), ('dtype', 'int8'), ('autostart', 1),
])
def test_a_wrong_start_value_is_refused_by_the_node_by_name(start_node, name, value):
    """rclpy's own refusal at declaration kills the process with a traceback; this is one line."""
    with pytest.raises(ParameterError, match=f'^parameter {name}') as caught:
        start_node(**{name: value})
    assert '\n' not in str(caught.value)


def set_parameter(client, name: str, value: object) -> tuple[bool, str]:
    """As `ros2 param set`: whether it worked, and the reason if not."""
    request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
    result, = client.call(SetParameters, '/reward_node/set_parameters', request).results
    return result.successful, result.reason


def get_parameter(client, name: str) -> object:
    """As `ros2 param get`."""
    request = GetParameters.Request(names=[name])
    value, = client.call(GetParameters, '/reward_node/get_parameters', request).values
    return parameter_value_to_python(value)


def test_a_frozen_parameter_is_refused_with_the_reason_until_cleanup(start_node, client):
    """A model that the parameter names and the node does not run would be a lie; after cleanup it is free."""
    start_node()
    assert client.transition('configure')
    assert client.transition('activate')
    for name, value in (
            ('model', '/other'), ('image_topics', ['/other']), ('frame_interval', 0.5),
            ('max_new_tokens', 64)):
        successful, reason = set_parameter(client, name, value)
        assert not successful
        assert reason == (
            f'parameter {name} is read at configure, and the node is active: clean it up first')
    assert get_parameter(client, 'model') == DEFAULTS['model']
    assert client.transition('deactivate')
    assert not set_parameter(client, 'model', '/other')[0]
    assert client.transition('cleanup')
    assert set_parameter(client, 'model', '/other') == (True, '')
    assert get_parameter(client, 'model') == '/other'


def test_setting_a_frozen_parameter_to_its_own_value_is_no_change(start_node, client):
    """`ros2 param load` with the file that the node was started with must not fail."""
    start_node()
    assert client.transition('configure')
    for name in ('model', 'image_topics', 'max_new_tokens', 'autostart'):
        assert set_parameter(client, name, DEFAULTS[name]) == (True, '')


@pytest.mark.parametrize(('name', 'value'), [
    ('rate', 1000.0), ('rate', math.nan), ('rate', 5), ('confirmations', 0), ('task', 1), ('task', 'a\nb'),
    ('task', 'x <|im_end|> y'), ('cooldown', -1.0),
])
def test_a_wrong_value_while_active_is_refused_and_the_old_one_stays(start_node, client, name, value):
    """The reason names the parameter; nothing changes."""
    start_node()
    assert client.transition('configure')
    assert client.transition('activate')
    before = get_parameter(client, name)
    successful, reason = set_parameter(client, name, value)
    assert not successful
    assert name in reason or 'parameter type' in reason, reason
    assert get_parameter(client, name) == before


def test_live_parameters_reach_the_running_monitor(start_node, client):
    """rate, confirmations and cooldown take effect without a new configure."""
    here = start_node()
    assert client.transition('configure')
    assert client.transition('activate')
    for name, value in (
            ('rate', 2.5), ('confirmations', 4), ('cooldown', 7.5), ('probability_floor', 0.25)):
        assert set_parameter(client, name, value) == (True, '')
    monitor = here.node._monitor
    settings = monitor._detector.settings
    assert monitor.worker._period_ns == 400_000_000
    assert (settings.confirmations, settings.cooldown) == (4, 7.5)
    assert settings.probability_floors == (0.25,) * 5


def test_live_parameters_set_while_the_model_loads_are_not_lost(start_node, client):
    """A download takes minutes; what an operator sets meanwhile must hold afterwards."""
    def load(options, progress):
        assert set_parameter_here(rate=2.5, confirmations=4)
        return ScriptedModel()

    def set_parameter_here(**values) -> bool:
        results = here.node.set_parameters([Parameter(name, value=value) for name, value in values.items()])
        return all(result.successful for result in results)

    here = start_node(load)
    assert client.transition('configure')
    assert here.node._monitor.worker._period_ns == 400_000_000
    assert here.node._monitor._detector.settings.confirmations == 4


def test_setting_the_task_starts_a_new_episode(start_node, client):
    """The same as ~/task; white space around it is dropped, and the same task again changes nothing."""
    here = start_node()
    states = client.listen(EpisodeState, '/reward_node/episode_state', LATCHED_QOS)
    assert client.transition('configure')
    assert client.transition('activate')
    wait_for(lambda: [state.task for state in states] == [TASK])
    episode = here.node._monitor.worker._episode
    assert set_parameter(client, 'task', ' open the drawer ') == (True, '')
    wait_for(lambda: states[-1].task == 'open the drawer')
    assert here.node._monitor.worker._episode == episode + 1
    assert set_parameter(client, 'task', 'open the drawer') == (True, '')
    assert here.node._monitor.worker._episode == episode + 1
    assert set_parameter(client, 'task', '') == (True, '')
    wait_for(lambda: states[-1].task == '')


@pytest.mark.slow
@pytest.mark.parametrize(('arguments', 'line'), [
    (['-p', 'task:=1'], 'reward_node: parameter task is 1, allowed: a text; put it in quotes'),
    (['-p', 'rate:=5'], 'reward_node: parameter rate is 5, an integer; write 5.0'),
])
def test_a_wrong_start_value_ends_the_process_with_one_line(executable, arguments, line):
    """Exit code 1 and, apart from the log, exactly one line; no traceback."""
    ended = subprocess.run(
        [executable, '--ros-args', *arguments], capture_output=True, text=True, timeout=100, cwd='/',
        env=dict(os.environ))
    assert ended.returncode == 1
    assert [text for text in ended.stderr.splitlines() if '[INFO]' not in text] == [line]
    assert ended.stdout == ''
