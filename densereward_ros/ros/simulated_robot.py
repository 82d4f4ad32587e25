"""The demo's simulated robot towards ROS: what its camera sees, its task, and its recovery service."""

from __future__ import annotations

from typing import Iterator, Sequence

import numpy as np
from action_msgs.msg import GoalInfo
from action_msgs.srv import CancelGoal
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from rclpy.task import Future
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger

from densereward_ros.tabletop.episode import LiveTable
from densereward_ros.types import REASON_OF_WORD, Reason

RATE = 10.0  # ticks of the world and pictures of its camera a second
PATIENCE_S = 6.0  # after a cancelled goal, until somebody else would have taken over
PAUSE_S = 1.5  # between a success and the next task, so that a viewer sees it
WORDS = tuple(REASON_OF_WORD)
LATCHED = QoSProfile(
    depth=1, reliability=QoSReliabilityPolicy.RELIABLE, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL
)


class SimulatedRobot:
    """Works through tasks on a table; the first attempt at the i-th suffers the i-th mishap.

    Adds to the node: `~/task` (std_msgs/String, latched), the task in words, once per task;
    `~/progress` (std_msgs/Float64), the true progress in [0, 1] at each picture; `~/recover`
    (std_srvs/Trigger), which makes the robot retract, go home and try again, and which answers
    when the arm is home; `~/work/_action/cancel_goal` (action_msgs/CancelGoal), by which the clients of an
    action `~/work` would cancel its goals: the arm stops where it is, until it is to recover, or for six
    seconds at most.
    """

    def __init__(self, node: Node, seed: int, mishaps: Sequence[str], loop: bool) -> None:
        """Prepare the first table. mishaps: words of the model, `correct` for a task without one.

        loop: start over after the last mishap. Raises ValueError for another word.
        """
        for word in mishaps:
            if word not in REASON_OF_WORD:
                raise ValueError(f'parameter mishaps names {word!r}, allowed: {", ".join(WORDS)}')
        self._mishaps = [REASON_OF_WORD[word] for word in mishaps]
        self._loop = loop
        self._seed = seed
        self._node = node
        self._task_publisher = node.create_publisher(String, '~/task', LATCHED)
        self._progress_publisher = node.create_publisher(Float64, '~/progress', 10)
        # In a group of its own, or the node would answer nothing else until the arm is home.
        node.create_service(
            Trigger, '~/recover', self._on_recover, callback_group=ReentrantCallbackGroup())
        node.create_service(CancelGoal, '~/work/_action/cancel_goal', self._on_cancel)
        self._recovering: Future | None = None
        self._away = False
        self._stopped_for = 0  # ticks
        self._table = LiveTable(seed, ())
        self._table_number = 0

    def frames(self, rate: float) -> Iterator[tuple[float, np.ndarray]]:
        """Advance the world by one tick a frame; yield (seconds since the start, uint8 RGB image)."""
        interval = 1.0 / (rate or RATE)
        count = 0
        for mishap in self._schedule():
            self._begin_task(mishap)
            pause = round(PAUSE_S * RATE)
            while pause:
                yield count * interval, self._table.render()
                self._progress_publisher.publish(Float64(data=float(self._table.progress)))
                count += 1
                if self._stopped_for:
                    self._stopped_for -= 1
                else:
                    self._table.step()
                    self._notice_home()
                pause -= self._table.done

    def _schedule(self) -> Iterator[Reason]:
        yield from self._mishaps
        while self._loop:
            yield from self._mishaps

    def _begin_task(self, mishap: Reason) -> None:
        mishaps = (mishap,) if mishap.is_failure else ()
        last_task = self._table.task
        while True:
            self._table = LiveTable(self._seed + self._table_number, mishaps)
            self._table_number += 1
            # Listeners tell one task from the next by its words.
            if self._table.task != last_task:
                break
        self._finish_recovery()
        self._stopped_for = 0
        self._task_publisher.publish(String(data=self._table.task))
        self._node.get_logger().info(f'task: {self._table.task}')

    async def _on_recover(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._table.done:
            response.message = 'nothing to recover from: the task is done'
        elif self._recovering is not None:
            response.message = 'already recovering'
        else:
            self._node.get_logger().info('recovering')
            self._recovering, self._away, self._stopped_for = Future(), False, 0
            self._table.recover()
            await self._recovering
            response.success, response.message = True, 'the arm is home and tries again'
        return response

    def _on_cancel(self, _: CancelGoal.Request, response: CancelGoal.Response) -> CancelGoal.Response:
        if not self._table.done and self._recovering is None:
            self._node.get_logger().info('goal cancelled: the arm stops')
            self._stopped_for = round(PATIENCE_S * RATE)
            response.goals_canceling = [GoalInfo()]
        return response

    def _notice_home(self) -> None:
        """The recovery has ended once the arm is home, after it has left for it; a done task ends it too."""
        if self._recovering is None:
            return
        at_home = self._table.world.snapshot().at_home
        if self._away and at_home or self._table.done:
            self._finish_recovery()
        self._away = True

    def _finish_recovery(self) -> None:
        if self._recovering is not None:
            self._recovering.set_result(None)
            self._recovering = None
