"""What /diagnostics says in each situation, and that the worst of several is what shows."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from densereward_ros.models.circuit import State
from densereward_ros.ros.cameras import Camera
from densereward_ros.ros.diagnostics import ERROR, OK, WARN, NodeReport, camera_status, node_status
from densereward_ros.ros.meter import RateMeter
from densereward_ros.types import Frame, Reason, Verdict

TOPIC = '/camera/image_raw'
MS = 1_000_000
SECOND = 1_000_000_000


def worker(latencies_s=(), replies: int = 0, malformed: int = 0, in_a_row: int = 0, failures: int = 0,
           reached_hz: float = 0.0, untold: int = 0, corrected_share: float = 0.0, at_once: int = 3):
    """A worker with these numbers."""
    ticks = RateMeter()
    if reached_hz:
        now_ns = time.monotonic_ns()
        for i in reversed(range(5)):
            ticks.mark(now_ns - round(i * SECOND / reached_hz))
    return SimpleNamespace(
        ticks=ticks, replies=replies, malformed=malformed, malformed_in_a_row=in_a_row, corrected=1,
        failures_in_a_row=failures, untold_in_a_row=untold, corrected_share=corrected_share, out_of_memory=4,
        batch_limit=SimpleNamespace(now=at_once, most=3), latencies_s=latencies_s, busy_s=latencies_s)


def server(state: str, error: str):
    """A model on a server with a circuit in this state."""
    return SimpleNamespace(
        circuit=SimpleNamespace(state=State(state), last_error=error),
        status=lambda: {'server circuit': state, 'last server error': error})


def report(**fields) -> NodeReport:
    """A report of an active node, with these fields."""
    values = {
        'name': 'arm/reward_node', 'state': 'active', 'step': '', 'model': 'tabletop',
        'task': 'stack the cup', 'rate': 5.0, 'max_frame_age': 1.0, 'last_error': '',
        'worker': worker(), 'cameras': ()}
    return NodeReport(**{**values, **fields})


def values(status) -> dict[str, str]:
    """The values of a status by key."""
    return {pair.key: pair.value for pair in status.values}


def camera(received: int = 0, age_s: float = 0.0, step_ms: float = 200.0, rate_hz: float = 10.0) -> Camera:
    """A camera that received so many images, the last one age_s ago, with stamps step_ms apart."""
    camera = Camera(TOPIC, 0.2, 1.0)
    newest_ns = time.monotonic_ns() - round(age_s * SECOND)
    for i in range(received):
        received_ns = newest_ns - round((received - 1 - i) * SECOND / rate_hz)
        camera.received.mark(received_ns)
        camera._last_received_ns = received_ns
        stamp_ns = SECOND + round(i * step_ms * MS)
        camera.add(Frame(stamp_ns, received_ns, lambda: np.zeros((2, 2, 3), np.uint8)))
    return camera


@pytest.mark.parametrize(('fields', 'level', 'message'), [
    ({'state': 'unconfigured', 'worker': None}, OK, 'unconfigured'),
    ({'server': server('open', 'http://robot/v1 answered 500'), 'worker': worker(failures=1)}, ERROR,
     'no reward: http://robot/v1 answered 500'),
    ({'server': server('half-open', 'no answer'), 'task': ''}, WARN,
     'no task: set the parameter task, or publish one on ~/task'),
    ({'server': server('half-open', 'no answer')}, ERROR, 'no reward: no answer'),
    ({'server': server('closed', 'no answer'), 'worker': worker(failures=1), 'last_error': 'failed'},
     ERROR, 'no reward: failed'),
    ({'server': server('closed', 'no answer')}, OK, 'active'),
    ({'server': server('open', 'no answer'), 'state': 'inactive'}, OK, 'inactive'),
    ({'worker': worker(failures=1), 'last_error': 'the model failed: out of memory'}, ERROR,
     'no reward: the model failed: out of memory'),
    ({'worker': worker(untold=1), 'last_error': 'a verdict was not passed on: no'}, ERROR,
     'a verdict was not passed on: no'),
    ({'worker': worker(corrected_share=0.2)}, OK, 'active'),
    ({'worker': worker(corrected_share=0.25)}, WARN,
     '25% of the last replies had to be corrected to keep to the format: the model may not understand what '
     'it sees'),
    ({'worker': worker(at_once=1)}, WARN, 'memory ran out: 1 of 3 cameras are scored at once for now'),
    ({'worker': worker(replies=9, malformed=6, in_a_row=4)}, OK, 'active'),
    ({'worker': worker(replies=9, malformed=6, in_a_row=5)}, ERROR,
     'no reward: the last 5 replies were malformed'),
    ({'state': 'unconfigured', 'worker': None, 'last_error': 'on_configure failed: no such folder'},
     ERROR, 'on_configure failed: no such folder'),
    ({'state': 'configuring', 'worker': None, 'step': 'downloading: 40%'}, OK, 'downloading: 40%'),
    ({'state': 'configuring', 'worker': None}, OK, 'configuring'),
    ({'state': 'inactive'}, OK, 'inactive'),
    ({'state': 'inactive', 'task': ''}, OK, 'inactive'),
    ({}, OK, 'active'),
    ({'last_error': 'malformed reply: no </think>'}, OK, 'active'),
    ({'task': ''}, WARN, 'no task: set the parameter task, or publish one on ~/task'),
    ({'state': 'finalized', 'worker': None}, OK, 'finalized'),
])
def test_the_nodes_level_and_message(fields, level, message):
    """One row a situation: what an operator reads first in rqt_robot_monitor."""
    status = node_status(report(**fields))
    assert (status.level, status.message) == (level, message)
    assert (status.name, status.hardware_id) == ('arm/reward_node', 'densereward_ros')


def test_the_nodes_values():
    """Every number that the node keeps, under its own name and with its unit."""
    cameras = [camera(), camera()]
    cameras[0].skipped_windows, cameras[1].skipped_windows = 3, 4
    status = node_status(report(
        worker=worker([0.1, 0.3, 0.12], replies=30, malformed=2, reached_hz=5.0), cameras=cameras,
        last_error='malformed reply: no </think>'))
    assert values(status) == {
        'state': 'active',
        'model': 'tabletop',
        'task': 'stack the cup',
        'reply rate (Hz)': '5.00',
        'reply latency median (s)': '0.120',
        'reply latency max (s)': '0.300',
        'replies': '30',
        'malformed replies': '2',
        'corrected replies': '1',
        'out of memory': '4',
        'windows at once, at most': '3',
        'skipped windows': '7',
        'last error': 'malformed reply: no </think>',
    }


def test_a_servers_values_are_among_the_nodes():
    """Where it is, and how it does."""
    shown = values(node_status(report(server=server('half-open', 'no answer'))))
    assert (shown['server circuit'], shown['last server error']) == ('half-open', 'no answer')
    assert 'server circuit' not in values(node_status(report()))


def test_before_the_first_reply_there_is_no_latency():
    """Empty, not 0.000: a dashboard must not plot a latency that nobody measured."""
    status = node_status(report())
    assert values(status)['reply latency median (s)'] == ''
    assert values(status)['reply latency max (s)'] == ''
    assert values(status)['reply rate (Hz)'] == '0.00'


def test_without_a_configured_model_there_are_no_reply_values():
    """What an unconfigured node knows: its state, the model it would load, the task, the last error."""
    status = node_status(report(state='unconfigured', worker=None))
    assert list(values(status)) == ['state', 'model', 'task', 'last error']


def test_a_rate_that_the_machine_cannot_reach_is_a_warning_with_the_achieved_rate():
    """The replies take longer than the period: asked for 5, reached 2."""
    status = node_status(report(worker=worker([0.5] * 9, replies=9, reached_hz=2.0)))
    assert status.level == WARN
    assert status.message == '5 Hz asked for, 2.00 Hz reached: a reply and all about it takes 0.50 s'


def test_one_slow_reply_is_no_warning():
    """The median decides: a hiccup is not a machine that is too slow."""
    assert node_status(report(worker=worker([0.1] * 5 + [3.0]))).level == OK


@pytest.mark.parametrize('state', ['inactive', 'configuring'])
def test_a_camera_is_no_error_while_nothing_is_scored(state):
    """A robot that has not been started yet must not show red."""
    status = camera_status(report(state=state), camera())
    assert (status.level, status.message) == (OK, 'not scored while the node is not active')


def test_a_camera_without_images_is_an_error_that_names_it():
    """The commonest fault of all: wrong topic, or a driver that does not run."""
    status = camera_status(report(), camera())
    assert (status.level, status.message) == (ERROR, f'no image on {TOPIC} yet')
    assert status.name == f'arm/reward_node: camera {TOPIC}'
    assert values(status)['age (s)'] == ''


def test_a_camera_that_stopped_is_an_error_with_its_age():
    """The driver died: how long ago, and on which topic."""
    status = camera_status(report(), camera(received=5, age_s=2.5))
    assert status.level == ERROR
    assert status.message == f'no reward: the last image on {TOPIC} came 2.5 s ago'


def test_stamps_that_do_not_advance_are_an_error_although_images_arrive():
    """A driver that repeats one stamp: images at 10 Hz, and never a window."""
    status = camera_status(report(), camera(received=20, step_ms=0.0))
    assert status.level == ERROR
    assert status.message == (
        f'no reward: images arrive on {TOPIC}, but too slowly, or with stamps that do not advance')
    assert values(status)['out of order'] == '19'


def test_a_camera_too_slow_for_any_window_is_an_error_although_images_arrive():
    """One image in two seconds: three frames are never young enough together."""
    status = camera_status(report(), camera(received=5, step_ms=2000.0, rate_hz=0.5))
    assert status.level == ERROR
    assert 'too slowly' in status.message


def test_images_that_cannot_be_decoded_are_an_error_until_a_verdict_comes():
    """Also when the camera worked before: a wrong encoding after a reconnect must show."""
    bad = camera(received=5)
    bad.last_verdict = Verdict(0.5, Reason.CORRECT)
    bad.drop(bad.take('').frames[0], "the encoding is '16UC1'")
    status = camera_status(report(), bad)
    assert (status.level, status.message) == (ERROR, "no reward: the encoding is '16UC1'")
    assert values(status)['undecodable'] == '1'
    bad.last_verdict = Verdict(0.5, Reason.CORRECT)
    status = camera_status(report(), bad)
    assert (status.level, status.message) == (OK, 'images arrive')
    assert values(status)['last image error'] == "the encoding is '16UC1'"


def test_an_answer_that_stands_while_the_picture_moves_is_a_warning():
    """It may be right, but an operator should look."""
    stuck = camera(received=5)
    stuck.last_verdict = Verdict(1.0, Reason.CORRECT)
    stuck.watch = SimpleNamespace(stuck_s=41.3)
    status = camera_status(report(), stuck)
    assert status.level == WARN
    assert status.message == (
        'the same answer for 41 s although the picture changes: the model may be stuck')


def test_texts_from_outside_stay_in_their_line():
    """An encoding, a path or a reply with line breaks and escape codes cannot write lines of its own."""
    status = node_status(report(
        state='unconfigured', worker=None, last_error='no\n[FATAL] fake', model='/m\x1b[2J', task='a\u2028b'))
    assert status.message == r'no\n[FATAL] fake'
    assert values(status) == {
        'state': 'unconfigured', 'model': r'/m\x1b[2J', 'task': r'a\u2028b',
        'last error': r'no\n[FATAL] fake'}


def test_the_cameras_values():
    """Received rate and age as this node sees them (ros2 topic hz misreports images), and every count."""
    healthy = camera(received=6)
    healthy.last_verdict = Verdict(0.625, Reason.FALL)
    status = camera_status(report(), healthy)
    found = values(status)
    assert 0.0 <= float(found.pop('age (s)')) < 0.5
    assert found == {
        'received rate (Hz)': '10.00',
        'stamp offset (s)': '',
        'received': '6',
        'out of order': '0',
        'restarts': '0',
        'undecodable': '0',
        'skipped windows': '3',
        'last image error': '',
        'last reward': '0.625',
        'last reason': 'fall',
    }
    assert status.level == OK
