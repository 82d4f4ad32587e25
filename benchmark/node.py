"""What the node costs beside the model, against a plain node that converts every frame in its callback.

`python benchmark/node.py` prints a table and writes benchmark/node.json. Both nodes run all the time;
the cameras publish to one and then to the other in turn, so that whatever else the machine does meets
both alike.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import rclpy
from node_cameras import topics
from rclpy.executors import ExternalShutdownException

from densereward_ros.msg import RewardStamped
from densereward_ros.ros.messages import stamp_ns

HERE = Path(__file__).parent
RESULTS = HERE / 'node.json'
NODES = {'plain': '/plain/reward', 'reward': '/reward'}
SETTLE_S = 1.0


class Child:
    """A process that answers a line with a line."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)

    def ask(self, line: str = '') -> dict:
        """The answer, which begins with a brace: libraries may say other things before it."""
        if line is not None:
            self._process.stdin.write(line + '\n')
            self._process.stdin.flush()
        for answer in self._process.stdout:
            if answer.startswith('{'):
                return json.loads(answer)
        raise RuntimeError(f'a process of the benchmark ended with {self._process.wait()}')

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


@dataclass
class Measured:
    """Of one node: CPU seconds (all, and in the model), images sent and received, times of verdicts."""

    cpu_s: float = 0.0
    model_cpu_s: float = 0.0
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    ages_s: list[float] = field(default_factory=list)
    model_s: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """The figures of this node."""
        return {
            'cpu_ms_per_frame': 1000 * (self.cpu_s - self.model_cpu_s) / max(self.received, 1),
            'cpu_ms_per_frame_with_model': 1000 * self.cpu_s / max(self.received, 1),
            'sent': self.sent,
            'received': self.received,
            'received_share': self.received / self.sent,
            'offered_hz': self.sent / 4 / self.seconds,
            'verdicts': len(self.ages_s),
            'verdicts_hz': len(self.ages_s) / self.seconds,
            'age_p50_s': float(np.percentile(self.ages_s, 50)),
            'age_p95_s': float(np.percentile(self.ages_s, 95)),
            'overhead_share': 1 - sum(self.model_s) / sum(self.ages_s),
        }


class Ear:
    """Notes the age of every verdict when it arrives, and what of it was the model's time."""

    def __init__(self) -> None:
        rclpy.init()
        self._node = rclpy.create_node('ear')
        self.heard: dict[str, list[tuple[float, float]]] = {kind: [] for kind in NODES}
        for kind, topic in NODES.items():
            self._node.create_subscription(
                RewardStamped, topic, lambda reward, kind=kind: self._note(kind, reward), 50)
        threading.Thread(target=self._spin, daemon=True).start()

    def _spin(self) -> None:
        try:
            rclpy.spin(self._node)
        except ExternalShutdownException:
            pass

    def _note(self, kind: str, reward: RewardStamped) -> None:
        age_s = (self._node.get_clock().now().nanoseconds - stamp_ns(reward.header.stamp)) / 1e9
        self.heard[kind].append((age_s, reward.inference_time.sec + reward.inference_time.nanosec / 1e9))


def measure(rounds: int, seconds: float, rate: float) -> dict[str, Measured]:
    """Both nodes under load, in turn."""
    os.environ['OMP_NUM_THREADS'] = '1'
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ.setdefault('ROS_DOMAIN_ID', str(random.SystemRandom().randrange(1, 102)))
    ear = Ear()
    children = {
        kind: Child(str(HERE / 'node_contestant.py'), kind, *topics(f'/for_{kind}')) for kind in NODES}
    cameras = Child(str(HERE / 'node_cameras.py'))
    measured = {kind: Measured() for kind in NODES}
    try:
        cameras.ask(None)
        for child in children.values():
            child.ask()
        for kind in NODES:  # until both have given their first rewards, nothing counts
            deadline = time.monotonic() + 60
            while not ear.heard[kind]:
                if time.monotonic() > deadline:
                    raise RuntimeError(f'no verdict of the {kind} node within 60 s')
                cameras.ask(f'/for_{kind} 1 {rate}')
        for turn in range(rounds):
            for kind in (NODES, reversed(NODES))[turn % 2]:
                cameras.ask(f'/for_{kind} {SETTLE_S} {rate}')
                before, heard = children[kind].ask(), len(ear.heard[kind])
                sent = cameras.ask(f'/for_{kind} {seconds} {rate}')
                after = children[kind].ask()
                result = measured[kind]
                result.cpu_s += after['cpu_s'] - before['cpu_s']
                result.model_cpu_s += after['model_cpu_s'] - before['model_cpu_s']
                result.received += after['received'] - before['received']
                result.sent += sent['sent']
                result.seconds += sent['seconds']
                for age_s, model_s in ear.heard[kind][heard:]:
                    result.ages_s.append(age_s)
                    result.model_s.append(model_s)
                time.sleep(0.5)
    finally:
        for child in (*children.values(), cameras):
            child.close()
        rclpy.try_shutdown()
    return measured


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=8.0, help='of each turn')
    parser.add_argument('--rate', type=float, default=30.0, help='of each of the four cameras, Hz')
    parser.add_argument('--output', type=Path, default=RESULTS)
    options = parser.parse_args()
    nodes = {kind: result.summary() for kind, result in measure(
        options.rounds, options.seconds, options.rate).items()}
    plain, reward = nodes['plain'], nodes['reward']
    offered = statistics.mean(node['offered_hz'] for node in nodes.values())
    result = {
        'load': 'three raw cameras of 640x480 and one compressed of 1920x1080',
        'cores': os.cpu_count(),
        'asked_hz': options.rate,
        'offered_hz': offered,
        'cpu_ratio': reward['cpu_ms_per_frame'] / plain['cpu_ms_per_frame'],
        'received_ratio': reward['received_share'] / plain['received_share'],
        'age_p50_s': reward['age_p50_s'],
        'age_p95_s': reward['age_p95_s'],
        'overhead_share': reward['overhead_share'],
        'nodes': nodes,
    }
    print(f'{"":<40}{"reward node":>14}{"plain node":>14}{"ratio":>8}')
    for name in plain:
        ratio = f'{reward[name] / plain[name]:8.2f}' if plain[name] else ''
        print(f'{name.replace("_", " "):<40}{reward[name]:14.3f}{plain[name]:14.3f}{ratio}')
    if offered < 0.95 * options.rate:
        print(f'This machine could not feed {options.rate:g} Hz: measured at {offered:.1f} Hz.')
    options.output.write_text(json.dumps(result, indent=2) + '\n')


if __name__ == '__main__':
    main()
