"""What the reward node tells on /diagnostics, once a second."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from densereward_ros.frames.window import Arrival
from densereward_ros.models.circuit import State
from densereward_ros.models.server import ServerModel
from densereward_ros.ros.cameras import Camera
from densereward_ros.ros.inference import InferenceWorker
from densereward_ros.text import one_line

# One malformed reply is an accident; this many in a row are a model that cannot see this scene.
MALFORMED_LIMIT = 5
# The released model is trained to keep to the format by itself; a share of replies like this is not rounding.
CORRECTED_LIMIT = 0.2
OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


@dataclass
class NodeReport:
    """What is known of the node at one moment.

    state: the lifecycle state's name. step: what configure is doing, '' otherwise.
    rate: the highest number of verdicts a second and camera that is asked for, Hz. server: the model, where
    a server runs it.
    """

    name: str
    state: str
    step: str
    model: str
    task: str
    rate: float
    max_frame_age: float
    last_error: str
    worker: InferenceWorker | None
    cameras: Sequence[Camera]
    server: ServerModel | None = None


def node_status(report: NodeReport) -> DiagnosticStatus:
    """The node and its model: state, reply rate and latency, malformed replies, last error."""
    level, message = OK, report.step or report.state
    values = {'state': report.state, 'model': report.model, 'task': report.task}
    worker = report.worker
    if worker is not None:
        latencies = sorted(worker.latencies_s)
        median_s = statistics.median(latencies) if latencies else 0.0
        busy_s = statistics.median(worker.busy_s) if worker.busy_s else 0.0
        reached = worker.ticks.rate(time.monotonic_ns())
        values |= {
            'reply rate (Hz)': f'{reached:.2f}',
            'reply latency median (s)': f'{median_s:.3f}' if latencies else '',
            'reply latency max (s)': f'{latencies[-1]:.3f}' if latencies else '',
            'replies': str(worker.replies),
            'malformed replies': str(worker.malformed),
            'corrected replies': str(worker.corrected),
            'out of memory': str(worker.out_of_memory),
            'windows at once, at most': str(worker.batch_limit.now),
            'skipped windows': str(sum(camera.skipped_windows for camera in report.cameras)),
        }
        if report.state == 'active' and not report.task:
            level, message = WARN, 'no task: set the parameter task, or publish one on ~/task'
        elif report.state == 'active' and report.server and report.server.circuit.state is not State.CLOSED:
            level, message = ERROR, f'no reward: {report.server.circuit.last_error}'
        elif report.state == 'active' and worker.failures_in_a_row:
            level, message = ERROR, f'no reward: {report.last_error}'
        elif report.state == 'active' and worker.untold_in_a_row:
            level, message = ERROR, report.last_error
        elif report.state == 'active' and worker.malformed_in_a_row >= MALFORMED_LIMIT:
            level, message = ERROR, f'no reward: the last {worker.malformed_in_a_row} replies were malformed'
        elif report.state == 'active' and worker.corrected_share > CORRECTED_LIMIT:
            level, message = WARN, (
                f'{100 * worker.corrected_share:.0f}% of the last replies had to be corrected to keep to the '
                'format: the model may not understand what it sees')
        elif report.state == 'active' and worker.batch_limit.now < worker.batch_limit.most:
            level, message = WARN, (
                f'memory ran out: {worker.batch_limit.now} of {worker.batch_limit.most} cameras are scored '
                'at once for now')
        elif report.state == 'active' and busy_s * report.rate > 1.0:
            level, message = WARN, (
                f'{report.rate:g} Hz asked for, {reached:.2f} Hz reached: '
                f'a reply and all about it takes {busy_s:.2f} s')
    values |= report.server.status() if report.server else {}
    values['last error'] = report.last_error
    if report.last_error and report.state == 'unconfigured':
        level, message = ERROR, report.last_error
    return _status(report.name, level, message, values)


def camera_status(report: NodeReport, camera: Camera) -> DiagnosticStatus:
    """One camera: received rate, age, and what became of its images."""
    age_s = camera.age_s()
    if report.state != 'active':
        level, message = OK, 'not scored while the node is not active'
    elif camera.wrong_type:
        level, message = ERROR, f'no image: {camera.topic} has the type {camera.wrong_type}'
    elif age_s is None:
        level, message = ERROR, f'no image on {camera.topic} yet'
    elif age_s > report.max_frame_age:
        level, message = ERROR, f'no reward: the last image on {camera.topic} came {age_s:.1f} s ago'
    elif camera.starved():
        level, message = ERROR, (
            f'no reward: images arrive on {camera.topic}, but too slowly, or with stamps that do not advance')
    elif camera.last_verdict is None and camera.last_image_error:
        level, message = ERROR, f'no reward: {camera.last_image_error}'
    elif camera.watch.stuck_s:
        level, message = WARN, (
            f'the same answer for {camera.watch.stuck_s:.0f} s although the picture changes: '
            'the model may be stuck')
    else:
        level, message = OK, 'images arrive'
    verdict = camera.last_verdict
    values = {
        'received rate (Hz)': f'{camera.received.rate(time.monotonic_ns()):.2f}',
        'age (s)': '' if age_s is None else f'{age_s:.3f}',
        'stamp offset (s)': '' if camera.clock.offset_s is None else f'{camera.clock.offset_s:.3f}',
        'received': str(camera.received.count),
        'out of order': str(camera.arrivals[Arrival.OUT_OF_ORDER]),
        'restarts': str(camera.arrivals[Arrival.RESTARTED]),
        'undecodable': str(camera.undecodable),
        'skipped windows': str(camera.skipped_windows),
        'last image error': camera.last_image_error,
        'last reward': '' if verdict is None else f'{verdict.reward:.3f}',
        'last reason': '' if verdict is None else verdict.reason.word,
    }
    return _status(f'{report.name}: camera {camera.topic}', level, message, values)


def _status(name: str, level: bytes, message: str, values: dict[str, str]) -> DiagnosticStatus:
    pairs = [KeyValue(key=key, value=one_line(value)) for key, value in values.items()]
    return DiagnosticStatus(
        level=level, name=name, message=one_line(message), hardware_id='densereward_ros', values=pairs)
