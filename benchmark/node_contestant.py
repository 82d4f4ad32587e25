"""One node under load, in a process of its own: `node_contestant.py reward|plain TOPIC...`.

For each line on its standard input it answers with a line of JSON: what it has used and received so far.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable

import rclpy
from plain_node import PlainNode

from densereward_ros.models.base import ModelOptions
from densereward_ros.models.opening import open_model, preload
from densereward_ros.ros import reward_node
from densereward_ros.ros.process import run

TASK = 'put the red block on the blue plate'


class Metered:
    """A model, with the CPU seconds that its work took on the thread that asked for it."""

    def __init__(self, model) -> None:
        self._model = model
        self.cpu_s = 0.0

    def __getattr__(self, name: str):
        return getattr(self._model, name)

    def score(self, windows):
        """See RewardModel.score."""
        return self._timed(self._model.score, windows)

    def prepare(self, windows):
        """See RewardModel.prepare."""
        return self._timed(self._model.prepare, windows)

    def _timed(self, work: Callable, windows):
        started = time.thread_time()
        try:
            return work(windows)
        finally:
            self.cpu_s += time.thread_time() - started


def answer(received: Callable[[], int], model: Metered) -> None:
    """Serve the questions on the standard input, on a thread of its own."""
    def serve() -> None:
        for _ in sys.stdin:
            used = {'cpu_s': time.process_time(), 'model_cpu_s': model.cpu_s, 'received': received()}
            print(json.dumps(used), flush=True)

    threading.Thread(target=serve, daemon=True).start()


def main() -> None:
    """Run the one that the first argument names."""
    kind, *topics = sys.argv[1:]
    del sys.argv[1:]
    preload()
    model = Metered(open_model(ModelOptions(model='tabletop', device='cpu')))
    if kind == 'plain':
        rclpy.init()
        node = PlainNode(model, topics, TASK)
        answer(lambda: sum(node.received.values()), model)
        rclpy.spin(node)
        return
    reward_node.open_model = lambda *_: model
    sys.argv += ['--ros-args', '-p', f'image_topics:={json.dumps(topics)}', '-p', f'task:={json.dumps(TASK)}',
                 '-p', 'autostart:=true']
    nodes = []

    def make() -> reward_node.RewardNode:
        nodes.append(reward_node.RewardNode())
        return nodes[0]

    def received() -> int:
        monitor = nodes[0]._monitor if nodes else None
        return sum(camera.received.count for camera in monitor.cameras) if monitor else 0

    answer(received, model)
    run(make, reward_node.RewardNode.shut_down)


main()
