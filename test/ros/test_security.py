"""The SROS 2 policy names what the node really uses, and no text from outside writes a line of its own."""

from __future__ import annotations

import re
import sys
import time
from xml.etree import ElementTree

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.expand_topic_name import expand_topic_name
from rclpy.parameter import Parameter
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import String

from densereward_ros.models.base import ModelError
from densereward_ros.msg import RewardStamped
from densereward_ros.types import MalformedReply
from ros_bench import GOOD, TASK, TOPIC, FakeCamera, ScriptedModel, wait_for

ATTACK = 'x\n[FATAL] [0.0] [INJECTED]: fake\r\x1b[2J\u2028y'


def names(profile: ElementTree.Element, group: str, rule: str) -> list[str]:
    """The full names that a profile allows."""
    return sorted(
        expand_topic_name(entry.text.strip(), profile.get('node'), profile.get('ns'))
        for part in profile.findall(group) if part.get(rule) == 'ALLOW' for entry in part)


def test_the_policy_names_what_the_node_uses(processes, client, repository, request):
    """Topics and services of the configured node as others see them, and no more; /clock is for sim time."""
    node = 'policed_node'  # other tests' nodes of the usual name are in the graph as well
    policy = ElementTree.parse(repository / 'config' / 'reward.policy.xml').getroot()
    assert policy.get('version') == '0.2.0'
    profile, = policy.iterfind('enclaves/enclave/profiles/profile')
    assert (profile.get('ns'), profile.get('node')) == ('/', 'reward_node')
    assert {part.tag for part in profile} == {'topics', 'services'}
    profile.set('node', node)
    processes([
        sys.executable, request.path.with_name('scripted_node.py'), '{}', '--ros-args', '-r',
        f'__node:={node}', '-p', 'use_sim_time:=true'])
    assert client.transition('configure', node)

    def graph(kind: str) -> list[str]:
        ask = getattr(client.node, f'get_{kind}_names_and_types_by_node')
        return sorted(name for name, _ in ask(node, '/'))

    published = names(profile, 'topics', 'publish')
    wait_for(lambda: graph('publisher') == published, what=f'{published}, not {graph("publisher")}')
    assert graph('subscriber') == names(profile, 'topics', 'subscribe')
    # Humble and its like have no type descriptions.
    newer = {f'/{node}/get_type_description'} - set(graph('service'))
    assert graph('service') == [name for name in names(profile, 'services', 'reply') if name not in newer]
    assert graph('client') == names(profile, 'services', 'request') == []


def one_line_each(texts: list[str]) -> None:
    """Nothing that a terminal would take for more than text, and no line that the attack begins."""
    assert texts
    assert [text for text in texts if not text.isprintable()] == []


@pytest.mark.parametrize(
    'way', ['encoding', 'format', 'reply', 'model error', 'task topic', 'task parameter'])
def test_a_text_from_outside_writes_no_line_of_its_own(start_node, client, log, way):
    """Wherever it comes in, it is seen in log or diagnostics, spelled out."""
    outcome = {
        'reply': MalformedReply(ATTACK, f'unknown word {ATTACK}'),
        'model error': RuntimeError(ATTACK),
    }.get(way, GOOD)
    topic = TOPIC + '/compressed' if way == 'format' else TOPIC
    here = start_node(ScriptedModel([outcome]), image_topics=[topic])
    diagnostics = client.listen(DiagnosticArray, '/diagnostics')
    assert client.transition('configure')
    assert client.transition('activate')
    if way == 'format':
        publisher = client.speak(CompressedImage, topic)
        for i in range(3):
            message = CompressedImage(format=f'{ATTACK} compressedDepth', data=b'x')
            message.header.stamp.nanosec = 1 + i
            publisher.publish(message)
            time.sleep(0.05)
        wait_for(lambda: here.node._monitor.last_error)
    elif way == 'task topic':
        client.speak(String, '/reward_node/task').publish(String(data=ATTACK))
        wait_for(lambda: here.node._last_error)
    elif way == 'task parameter':
        assert not here.node.set_parameters([Parameter('task', value=ATTACK)])[0].successful
    else:
        camera = here.camera(client)
        for sec in (1, 2, 3):
            camera.send(sec * 10**9 // 5, **({'encoding': ATTACK} if way == 'encoding' else {}))
        wait_for(lambda: here.node._monitor.last_error)
    del diagnostics[:]
    wait_for(lambda: diagnostics)
    logged = [line for severity in ('INFO', 'WARN', 'ERROR', 'FATAL') for line in log(severity)]
    one_line_each(logged)
    told = [pair.value for status in diagnostics[0].status for pair in status.values]
    one_line_each([*told, *(status.message for status in diagnostics[0].status)])
    if way != 'task parameter':  # its answer goes to the one who set it
        assert any(re.search(r'\\n\[FATAL\]|U\+000A', text) for text in [*logged, *told])


def test_a_frame_id_is_handed_on_and_shown_nowhere(start_node, client, log):
    """It belongs into the reward's header as it came, and in no log line."""
    here = start_node()
    assert client.transition('configure')
    assert client.transition('activate')
    rewards = client.listen(RewardStamped, '/reward')
    here.camera(client, frame_id=ATTACK).stream(3)
    wait_for(lambda: rewards)
    assert rewards[0].header.frame_id == ATTACK
    one_line_each([line for severity in ('INFO', 'WARN', 'ERROR') for line in log(severity)])


def test_an_error_at_configure_writes_no_line_of_its_own(start_node, client, log):
    """A model's name or path can be set over the network; the foreseen and the unforeseen error show it."""
    errors = [ModelError(ATTACK), OSError(5, ATTACK)]

    def open_model(options, progress):
        progress(f'warning: {ATTACK}')
        raise errors.pop(0)

    start_node(open_model)
    for _ in range(2):
        assert not client.transition('configure')
    lines = [*log('ERROR'), *log('WARN'), *log('INFO')]
    assert [line for line in lines if 'INJECTED' in line and not line.isprintable()] == []
    assert sum('INJECTED' in line for line in lines) == 4


def test_a_task_that_is_allowed_is_shown_as_it_is(start_node, client, log):
    """Only what could harm is spelled out."""
    start_node(task='Lege die Gurke in die Schüssel, 把杯子放好')
    assert client.transition('configure')
    assert client.transition('activate')
    FakeCamera(client)
    assert 'active: task "Lege die Gurke in die Schüssel, 把杯子放好"' in log('INFO')
    assert TASK not in log('INFO')
