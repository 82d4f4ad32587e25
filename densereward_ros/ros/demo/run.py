"""The demo: starts the nodes, watches them like any other listener would, and sums up what it received."""

from __future__ import annotations

import argparse
import io
import os
import random
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from densereward_ros.ros.demo.processes import TABLETOP, demo_processes

DEFAULT_DURATION_S = 45.0
START_LIMIT_S = 180.0
AFTER_END_S = 1.0  # the rewards of a recording's last frames are still to come
HONESTY = (
    'The demo checkpoint knows only its own simulated tabletop: on a real recording its numbers '
    'mean nothing. This shows the plumbing.'
)


class DemoError(Exception):
    """The demo cannot go on; the text says why in one line."""


def main() -> None:
    """Run the demo; ends the process with its exit code."""
    code = _main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Taking rclpy and matplotlib down in order takes most of a second, which Ctrl-C does not have.
    os._exit(code)


def _main() -> int:
    options = _options()
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: signals.append(number))
    try:
        folder = _check(options)
        _private_domain()
        return _run(options, folder, signals)
    except DemoError as error:
        print(f'demo: {error}', file=sys.stderr)
        return 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='demo',
        description='A simulated robot (or a recording), the reward node and a recovery controller.')
    parser.add_argument(
        '--duration', type=float, default=None, metavar='SECONDS',
        help='how long to watch, 0 until Ctrl-C or the end of the recording '
             f'(default {DEFAULT_DURATION_S:.0f}; of a recording all)')
    parser.add_argument(
        '--source', default='', metavar='PATH', help='a video file instead of the simulated robot')
    parser.add_argument('--task', default='', metavar='TEXT', help='what the recording shows')
    parser.add_argument(
        '--output', type=Path, default=Path('demo_output'), metavar='FOLDER',
        help='where the picture and the logs go (default ./demo_output)')
    return parser.parse_args()


def _check(options: argparse.Namespace) -> Path:
    """Refuse what cannot work before anything starts; returns the output folder."""
    from densereward_ros.models.prompt import clean_task
    from densereward_ros.recordings.base import RecordingError
    from densereward_ros.recordings.opening import open_recording

    if options.duration is None:
        options.duration = 0.0 if options.source else DEFAULT_DURATION_S
    if not 0 <= options.duration < float('inf'):
        raise DemoError(f'the duration is {options.duration:g}, allowed: 0 or more seconds')
    try:
        if options.source:
            options.source = os.path.expanduser(options.source)
            open_recording(options.source)
            if not clean_task(options.task):
                raise DemoError('a recording needs a task: what the robot is to do, in words')
        elif options.task:
            raise DemoError('a task is for a recording; the simulated robot chooses its own')
        options.output.mkdir(parents=True, exist_ok=True)
    except (RecordingError, ValueError) as error:
        raise DemoError(str(error)) from None
    except OSError as error:
        raise DemoError(f'{options.output}: no folder can be made there ({error.strerror})') from None
    return options.output


def _private_domain() -> None:
    """Keep the demo among its own processes, so that it never reaches a real robot's controllers."""
    if 'ROS_DOMAIN_ID' not in os.environ:
        candidates = random.sample(range(1, 102), 101)
        os.environ['ROS_DOMAIN_ID'] = str(next(filter(_is_free, candidates), candidates[0]))
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ.pop('ROS_STATIC_PEERS', None)
    if os.environ.get('ROS_DISTRO') == 'humble':  # it knows only this one, and later ones warn about it
        os.environ['ROS_LOCALHOST_ONLY'] = '1'


def _is_free(domain: int) -> bool:
    """True when nobody on this machine has the port that the first participant of a domain takes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(('', 7400 + 250 * domain + 10))
        except OSError:
            return False
    return True


def _run(options: argparse.Namespace, folder: Path, signals: list[int]) -> int:
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.signals import SignalHandlerOptions

    from densereward_ros.ros.demo.children import Children
    from densereward_ros.ros.demo.listener import DemoListener
    from densereward_ros.ros.demo.record import DemoRecord
    from densereward_ros.ros.demo.view import make_view

    simulated = not options.source
    title = 'densereward: ' + ('a simulated robot' if simulated else Path(options.source).name[:60])
    if not simulated:
        print(HONESTY, flush=True)
    processes = demo_processes(options.source or TABLETOP, options.task, subscribers=2)
    record = DemoRecord()
    if options.task:
        record.add_task(options.task)
    # The children come first: a process is forked most safely while it has one thread.
    with Children(processes, folder) as children:
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        executor = SingleThreadedExecutor()
        executor.add_node(DemoListener(record, compressed=not simulated))
        # The picture is wanted at once when the demo ends, and the first one takes two seconds.
        threading.Thread(target=_warm_up_plotting, daemon=True).start()
        view = make_view(record, title, options.duration)
        try:
            ended = _watch(options, record, children, view, executor, signals)
        finally:
            record.end()
            view.close()
            children.request_stop()
        code = _sum_up(record, simulated, ended)
        _draw(record, title, folder)
    return code


def _warm_up_plotting() -> None:
    from densereward_ros.report.timeline import Timeline, draw_timeline

    draw_timeline(Timeline('', 1.0), io.BytesIO())


def _watch(options, record, children, view, executor, signals) -> bool:
    """Listen until the time is up, Ctrl-C, or the recording's end. True when it ended as was asked for."""
    started = time.monotonic()
    end = None
    while True:
        executor.spin_once(timeout_sec=0.05)
        view.update(_start_up_step(record, children))
        if signals:
            return not options.source
        if options.duration and record.now() >= options.duration:
            return True
        if end is not None and time.monotonic() >= end:
            return True
        if record.node_error:
            raise DemoError(f'the reward node did not start: {record.node_error}')
        if record.begun is None and time.monotonic() - started > START_LIMIT_S:
            raise DemoError(f'no camera frame within {START_LIMIT_S:.0f} s; the logs are in {options.output}')
        for name, code in children.ended().items():
            if options.source and name == 'camera_player' and code == 0:
                end = end or time.monotonic() + AFTER_END_S
            else:
                lines = ''.join(f'\n  {line}' for line in children.last_lines(name))
                raise DemoError(f'{name} ended with exit code {code}; its last lines:{lines}')


def _start_up_step(record, children) -> str:
    if record.begun is not None:
        return 'waiting for the first reward'
    if record.node_message:
        return f'reward node: {record.node_message}'
    return 'starting the nodes'


def _draw(record, title: str, folder: Path) -> None:
    from densereward_ros.report.timeline import draw_timeline

    if not record.frames:
        return
    path = folder / 'timeline.png'
    try:
        draw_timeline(record.timeline(title, _one_line(record)), path)
    except OSError as error:
        raise DemoError(f'{path}: the picture cannot be written ({error.strerror})') from None
    print(f'{"picture":<16}{path.resolve()}')


def _one_line(record) -> str:
    from densereward_ros.ros.demo.record import percentiles

    reply, _ = percentiles(record.reply_s)
    parts = [f'{len(record.rewards)} rewards, {record.rate():.1f} a second']
    if record.reply_s:
        parts.append(f'reply {1000 * reply:.0f} ms')
    parts.append(_count(len(record.failures), 'failure event'))
    if record.truth:
        parts += [_count(len(record.recoveries), 'recovery', 'recoveries'),
                  f'{_count(len(record.successes), "task")} done']
    return '  ·  '.join(parts)


def _count(number: int, one: str, many: str = '') -> str:
    return f'{number} {one if number == 1 else many or one + "s"}'


def _sum_up(record, simulated: bool, ended: bool) -> int:
    """Print the summary; returns the exit code."""
    from densereward_ros.ros.demo.record import percentiles

    reply, age = percentiles(record.reply_s), percentiles(record.age_s)
    words = ', '.join(moment.text for moment in record.failures)
    rows = [
        ('watched', f'{record.duration():.1f} s, {record.frames} camera frames'),
        ('rewards', f'{len(record.rewards)}, {record.rate():.2f} a second'),
        ('failure events', f'{len(record.failures)}' + (f'  ({words})' if words else '')),
    ]
    if record.reply_s:
        rows[2:2] = [
            ('reply', f'median {1000 * reply[0]:.0f} ms, p95 {1000 * reply[1]:.0f} ms'),
            ('frame to reward', f'median {1000 * age[0]:.0f} ms, p95 {1000 * age[1]:.0f} ms'),
        ]
    if record.malformed:
        rows.append(('malformed', _count(record.malformed, 'reply', 'replies') + ' of the model, no reward'))
    missing = [] if record.rewards else ['reward']
    if simulated:
        rows += [('recoveries', str(len(record.recoveries))), ('tasks done', str(len(record.successes)))]
        missing += [] if record.failures else ['failure event']
        missing += [] if record.recoveries else ['recovery']
    print()
    for name, text in rows:
        print(f'{name:<16}{text}')
    if not simulated:
        print(HONESTY)
    if missing:
        print(f'demo: failed, nothing of this was received: {", ".join(missing)}', file=sys.stderr)
    elif not ended:
        print('demo: stopped before the end of the recording', file=sys.stderr)
    return 1 if missing or not ended else 0
