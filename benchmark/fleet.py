"""One server and N robots: how old verdicts are, how many come, who gets them, and where it saturates.

`python benchmark/fleet.py` starts `transformers serve` with the demo checkpoint on this machine, prints a
table and writes benchmark/fleet.json; `--url` drives any other server. Each robot asks as the node does: with
its newest window, at most `--rate` times a second, and never twice at once.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from densereward_ros.models.base import ModelError, ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.tabletop.evaluation import held_out_episode, windows
from densereward_ros.types import Frame, Verdict, Window

HERE = Path(__file__).parent
RESULTS = HERE / 'fleet.json'
EPISODES = 8
# Below this share of what the robots ask for, the server is saturated.
ENOUGH = 0.9
WARM_UP_S = 2.0
LOAD = os.getloadavg()[0]  # before any of this runs


@dataclass
class Robot:
    """What became of one robot's questions.

    verdicts: that came while it was measured. ages_s: of the questions asked meanwhile, from the newest frame
    to its verdict, whenever that came: to leave out late ones would flatter a server that is too slow.
    """

    verdicts: int = 0
    ages_s: list[float] = field(default_factory=list)
    unanswered: int = 0
    malformed: int = 0


def main() -> None:
    """Start a server unless told of one, drive it, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--url', default='', help='the API of a running server (default: one is started)')
    parser.add_argument('--model', default='tabletop', help='the name that it serves (default: %(default)s)')
    parser.add_argument(
        '--checkpoint', default='tabletop', help='as server_checkpoint (default: %(default)s)')
    parser.add_argument('--robots', type=int, nargs='+', default=[1, 2, 4, 8, 16], metavar='N')
    parser.add_argument('--rate', type=float, default=2.0, metavar='HZ', help='(default: %(default)s)')
    parser.add_argument(
        '--seconds', type=float, default=12.0, help='for each number of robots (default: %(default)s)')
    parser.add_argument(
        '--timeout', type=float, default=20.0, help='as server_timeout (default: %(default)s)')
    parser.add_argument('--format', choices=('png', 'jpeg'), default='png', help='(default: %(default)s)')
    parser.add_argument('--output', type=Path, default=RESULTS, metavar='FILE', help='(default: %(default)s)')
    arguments = parser.parse_args()
    if arguments.url:
        measure(arguments, arguments.url, arguments.url)
        return
    sys.path.insert(0, str(HERE.parent / 'test' / 'helpers'))
    from demo_server import DemoServer

    with tempfile.TemporaryDirectory() as folder:
        server = DemoServer(HERE.parent / 'models' / 'tabletop', Path(folder))
        try:
            server.launch()
            server.ready()
            what = (
                f'transformers serve of the demo checkpoint, float32, on {os.cpu_count()} cores shared with '
                'the robots')
            measure(arguments, server.url, what)
        finally:
            server.kill()


def measure(arguments: argparse.Namespace, url: str, what: str) -> None:
    """Every number of robots in turn."""
    options = ModelOptions(
        engine='server', model=arguments.model, server_checkpoint=arguments.checkpoint, server_url=url,
        server_timeout=arguments.timeout, image_format=arguments.format)
    episodes = [[window for _, window in windows(held_out_episode(number))] for number in range(EPISODES)]
    levels = []
    print(f'{"robots":>6} {"asked/s":>8} {"verdicts/s":>10} {"age p50 s":>9} {"age p95 s":>9} {"Jain":>6} '
          f'{"unanswered":>10}')
    for count in arguments.robots:
        levels.append(level(count, options, episodes, arguments.rate, arguments.seconds))
        shown = {name: '-' if value is None else value for name, value in levels[-1].items()}
        print('{robots:>6} {asked_hz:>8} {verdicts_hz:>10} {age_p50_s:>9} {age_p95_s:>9} {jain:>6} '
              '{unanswered:>10}'.format(**shown), flush=True)
    saturated = [one['robots'] for one in levels if one['verdicts_hz'] < ENOUGH * one['asked_hz']]
    most = max(one['verdicts_hz'] for one in levels)
    at = f'saturated from {saturated[0]} robots on' if saturated else 'not saturated'
    print(f'{what}: {at}; at most {most:.2f} verdicts a second')
    if LOAD > 1.0:
        print(f'The machine was busy with other things: its load was {LOAD:.1f} before.')
    arguments.output.write_text(json.dumps({
        'server': what, 'load_before': round(LOAD, 1), 'rate_hz': arguments.rate,
        'seconds': arguments.seconds, 'format': arguments.format,
        'saturated_from_robots': saturated[0] if saturated else None, 'most_verdicts_hz': most,
        'levels': levels}, indent=1) + '\n')


def level(
    count: int, options: ModelOptions, episodes: list[list[Window]], rate: float, seconds: float
) -> dict[str, float]:
    """So many robots at once, each with a connection of its own, as each node has."""
    models = [open_model(options) for _ in range(count)]
    robots = [Robot() for _ in range(count)]
    begin = time.monotonic() + WARM_UP_S
    threads = [
        threading.Thread(target=work, args=(
            models[number], robots[number], episodes[number % len(episodes)], rate, begin,
            begin + seconds, number / count))
        for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for model in models:
        model.close()
    ages = [age for robot in robots for age in robot.ages_s]
    shares = [robot.verdicts for robot in robots]
    return {
        'robots': count,
        'asked_hz': round(count * rate, 3),
        'verdicts_hz': round(sum(shares) / seconds, 3),
        'age_p50_s': round(statistics.median(ages), 3) if ages else None,
        'age_p95_s': round(float(np.percentile(ages, 95)), 3) if ages else None,
        'jain': jain(shares),
        'fewest_of_a_robot': min(shares),
        'most_of_a_robot': max(shares),
        'unanswered': sum(robot.unanswered for robot in robots),
        'malformed': sum(robot.malformed for robot in robots)}


def jain(shares: list[int]) -> float | None:
    """Jain's index of fairness: 1 where all get the same, 1/N where one gets all; None where nobody does."""
    squares = len(shares) * sum(share**2 for share in shares)
    return round(sum(shares) ** 2 / squares, 4) if squares else None


def work(
    model, robot: Robot, episode: list[Window], rate: float, begin: float, end: float, phase: float
) -> None:
    """One robot: a window when one is due, the next when the answer is there; counted from begin to end.

    phase: 0 to 1, of a period; cameras of different robots do not fire together.
    """
    due = begin - WARM_UP_S + phase / rate
    for window in itertools.cycle(episode):
        due = max(due, time.monotonic())  # what was missed is not made up for
        if due >= end:
            return
        time.sleep(max(0.0, due - time.monotonic()))
        taken = time.monotonic()
        try:
            reply, = model.score([fresh(window)])
        except ModelError:
            robot.unanswered += taken >= begin
            time.sleep(0.05)  # an open circuit refuses at once
        else:
            now = time.monotonic()
            robot.malformed += not isinstance(reply, Verdict)
            if isinstance(reply, Verdict):
                robot.verdicts += begin <= now < end
                if taken >= begin:
                    robot.ages_s.append(now - taken)
        due += 1 / rate


def fresh(window: Window) -> Window:
    """With a newest frame that nobody has encoded yet, as a camera's is; the older two are known."""
    newest = window.newest
    image = newest.image
    frame = Frame(newest.stamp_ns, newest.received_ns, lambda: image)
    return Window(window.camera, window.task, (*window.frames[:-1], frame), window.segment)


if __name__ == '__main__':
    main()
