"""The table of the demo's processes, which its runner and its launch file share."""

from __future__ import annotations

import json

import yaml

from densereward_ros.ros.camera_player import PARAMETERS as CAMERA_PARAMETERS
from densereward_ros.ros.demo.processes import NAMESPACE, TABLETOP, demo_processes
from densereward_ros.ros.parameters import PARAMETERS as REWARD_PARAMETERS
from densereward_ros.ros.recovery_node import PARAMETERS as RECOVERY_PARAMETERS

DECLARED = {
    'camera_player': CAMERA_PARAMETERS,
    'reward_node': REWARD_PARAMETERS,
    'recovery_node': RECOVERY_PARAMETERS,
}


def test_parameters_are_declared():
    """Every parameter in the table is one that its node declares, of the same type."""
    for source, task in ((TABLETOP, ''), ('/a.mp4', 'stack the cup')):
        for process in demo_processes(source, task, subscribers=1):
            specs = {spec.name: spec for spec in DECLARED[process.executable]}
            for name, value in process.parameters.items():
                assert type(value) is type(specs[name].default), name


def test_recording():
    """A recording has a task and no robot that could recover; its images go compressed."""
    reward, camera = demo_processes('/a.mp4', 'stack the cup', subscribers=2)
    assert (reward.executable, camera.executable) == ('reward_node', 'camera_player')
    assert reward.parameters['task'] == 'stack the cup'
    assert reward.parameters['image_topics'] == [camera.parameters['topic'] + '/compressed']
    assert camera.parameters['compressed'] is True and camera.parameters['wait_for_subscribers'] == 2


def test_texts_stay_texts():
    """Whatever a task or a path holds, the node gets that text."""
    texts = ('on', '7', 'say "hello": {x}', "it's", 'null', '~', 'Tasse über Tisch', 'pick 🍎', '#1', 'a:=b')
    for text in texts:
        arguments = demo_processes('/a.mp4', text, subscribers=1)[0].ros_arguments()
        assert arguments[:3] == ['--ros-args', '-r', f'__ns:={NAMESPACE}']
        written, = (part.split(':=', 1)[1] for part in arguments if part.startswith('task:='))
        assert json.loads(written) == yaml.safe_load(written) == text
