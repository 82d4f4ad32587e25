"""Parameters about events: what goes together, and the thresholds file that the node loads at configure."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rclpy.parameter import Parameter

from densereward_ros.events.settings import DEFAULTS
from densereward_ros.events.thresholds import Thresholds, write
from densereward_ros.ros.parameters import PARAMETERS

CALIBRATED = Thresholds(
    false_alarms=0.05, episodes=120, model='scripted', engine='fast', quantization='none', max_pixels=0,
    frame_interval=0.0,
    settings=replace(
        DEFAULTS, confirmations=3, confirmation_window=5, probability_floors=(0.6, 0.5, 0.4, 0.3, 0.2)))


@pytest.fixture
def file(tmp_path):
    """A thresholds file for the node of these tests."""
    write(CALIBRATED, tmp_path / 'thresholds.yaml')
    return tmp_path / 'thresholds.yaml'


def set_here(here, **values):
    """Sets parameters as `ros2 param set` does; the refusals' texts, '' where there is none."""
    results = here.node.set_parameters([Parameter(name, value=value) for name, value in values.items()])
    return [result.reason for result in results]


def test_every_setting_of_the_detector_is_a_parameter_that_may_change_live():
    """A setting that no parameter reaches would be a secret; so would one that needs a new configure."""
    from densereward_ros.ros.event_parameters import EVENT_PARAMETERS

    live = {spec.name for spec in PARAMETERS if spec.live}
    assert set(EVENT_PARAMETERS) <= live


def test_the_file_wins_over_the_parameters_of_its_rules_alone(start_node, client, file, log):
    """Confirmations and floors are the file's; the cool-down stays the parameter's; the log says so."""
    here = start_node(thresholds=str(file), confirmations=7, cooldown=9.0, success_level=0.8)
    assert client.transition('configure')
    settings = here.node._monitor._detector.settings
    assert settings == replace(CALIBRATED.settings, cooldown=9.0, success_level=0.8)
    told = [line for line in log('INFO') if line.startswith('thresholds')]
    assert told == [f'thresholds of {file}: at most 5.0% of successful episodes with an event']


def test_what_the_file_says_cannot_be_changed_while_it_is_in_force(start_node, client, file):
    """The promise would not hold any more; the cool-down may change, and after a cleanup all may."""
    here = start_node(thresholds=str(file))
    assert client.transition('configure')
    refused, = set_here(here, confirmations=1)
    assert refused.startswith('parameter confirmations comes from the thresholds file')
    assert set_here(here, cooldown=1.0, confirmations=2) == ['', '']
    assert here.node._monitor._detector.settings.confirmations == 3
    assert client.transition('cleanup')
    assert set_here(here, thresholds='', confirmations=1) == ['', '']
    assert client.transition('configure')
    assert here.node._monitor._detector.settings.confirmations == 1


def test_another_model_than_the_calibrated_one_is_told(start_node, client, tmp_path, log):
    """A folder may have moved, so it is a warning and no refusal."""
    write(replace(CALIBRATED, model='another'), tmp_path / 't.yaml')
    start_node(thresholds=str(tmp_path / 't.yaml'))
    assert client.transition('configure')
    line, = log('WARN')
    assert 'calibrated for the model another, and this is scripted' in line


@pytest.mark.parametrize(('parameters', 'words'), [
    ({'thresholds': '/no/such.yaml'}, ['parameter thresholds: /no/such.yaml: cannot be read (No such file']),
    ({'engine': 'reference'}, ['was calibrated with engine fast, and the node has reference']),
    ({'quantization': 'int4'}, ['was calibrated with quantization none, and the node has int4']),
    ({'frame_interval': 0.5}, ['was calibrated with frame_interval 0.0, and the node has 0.5']),
    ({'thresholds': '', 'fusion': 'primary', 'primary_camera': '/other'},
     ["parameter primary_camera is '/other', allowed: /camera/image_raw"]),
    ({'thresholds': '', 'confirmations': 3, 'confirmation_window': 2},
     ['parameter confirmation_window is 2, allowed: 0, or at least confirmations, which is 3']),
])
def test_what_cannot_work_fails_to_configure_with_one_line(start_node, client, file, log, parameters, words):
    """Before a model is loaded; the node stays unconfigured and says why."""
    here = start_node(lambda *_: pytest.fail('loaded a model'), **{'thresholds': str(file), **parameters})
    assert not client.transition('configure')
    assert client.state() == 'unconfigured'
    line, = log('ERROR')
    assert all(word in line for word in words), line
    assert here.errors == []


def test_live_changes_that_do_not_go_together_are_refused(start_node, client):
    """The window must hold the confirmations, whichever of the two changes."""
    here = start_node(confirmations=2, confirmation_window=3)
    assert client.transition('configure')
    refused, = set_here(here, confirmations=4)
    assert refused == (
        'parameter confirmation_window is 3, allowed: 0, or at least confirmations, which is 4')
    assert here.node._monitor._detector.settings.confirmations == 2
    both = here.node.set_parameters_atomically([
        Parameter('confirmations', value=4), Parameter('confirmation_window', value=6)])
    assert both.successful
    assert here.node._monitor._detector.settings.among == 6
