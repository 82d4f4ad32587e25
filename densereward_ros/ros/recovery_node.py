"""A recovery controller, small enough to copy: on a failure event the robot stops and tries again."""

from __future__ import annotations

from typing import Callable

from action_msgs.srv import CancelGoal
from diagnostic_msgs.msg import KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import Trigger

from densereward_ros.msg import FailureEvent
from densereward_ros.ros.fixed_parameters import declare_fixed
from densereward_ros.ros.parameters import ParameterSpec
from densereward_ros.ros.process import run
from densereward_ros.text import one_line
from densereward_ros.types import Reason

PARAMETERS = (
    ParameterSpec(
        'max_retries', 3, 'Recoveries for one task, before it is given up.', minimum=1, maximum=1000),
    ParameterSpec(
        'timeout', 20.0, 'The robot answers within this many seconds when its recovery has ended.',
        minimum=0.1, maximum=3600.0),
    ParameterSpec(
        'cancel_action', '',
        'An action, all of whose goals are cancelled before the recovery and when a task is given up; '
        'empty: none.'),
    ParameterSpec(
        'cancel_timeout', 2.0, 'The action answers within this many seconds that its goals are cancelled.',
        minimum=0.1, maximum=3600.0),
)
# Anything else means that a goal may still run: ERROR_GOAL_TERMINATED comes when it had just ended.
CANCELLED = (CancelGoal.Response.ERROR_NONE, CancelGoal.Response.ERROR_GOAL_TERMINATED)


class Service:
    """A service that a node calls, and its full name."""

    def __init__(self, node: Node, kind: type, name: str) -> None:
        self.client = node.create_client(kind, name)
        self.name = node.resolve_service_name(name)


class RecoveryNode(Node):
    """On a failure event: cancel the goal, call the robot's `recover` service, `max_retries` times a task.

    Events that arrive during a recovery are ignored: they are about the attempt that it ends.
    Where the goal cannot be cancelled there is no recovery, which would fight with it. After the last
    retry the node cancels the goal, gives up the task, and waits for an event of another one.
    What it does is published on `~/recoveries` (diagnostic_msgs/KeyValue): key is started, cancelled, done,
    failed, gave_up or lost, value says it in words.
    """

    def __init__(self) -> None:
        super().__init__('recovery_node')
        value = declare_fixed(self, PARAMETERS)
        self._max_retries, self._timeout_s = value['max_retries'], value['timeout']
        self._action, self._cancel_timeout_s = value['cancel_action'], value['cancel_timeout']
        self._robot = Service(self, Trigger, 'recover')
        self._goals = None
        if self._action:
            # What an action client calls to cancel; so no action type has to be known here.
            self._goals = Service(self, CancelGoal, f'{self._action}/_action/cancel_goal')
        self._recoveries = self.create_publisher(KeyValue, '~/recoveries', 10)
        self.create_subscription(FailureEvent, 'failure_event', self._on_event, 10)
        self._task: str | None = None
        self._retries = 0
        self._gave_up = False
        self._sequence = 0
        self._answer: Future | None = None
        self.get_logger().info(f'ready to call {self._robot.name}')

    def _on_event(self, event: FailureEvent) -> None:
        self._notice_lost(event.sequence)
        if event.task != self._task:
            self._task, self._retries, self._gave_up = event.task, 0, False
        if self._answer is not None or self._gave_up:
            return
        word = Reason(event.reason).word
        absent = [
            service.name for service in (self._goals, self._robot)
            if service is not None and not service.client.service_is_ready()]
        if absent:
            self._tell('failed', f'{word}, but nobody offers the service {absent[0]}')
        elif self._retries == self._max_retries:
            # Told first: where the goal cannot be cancelled either, a person is needed most.
            self._gave_up = True
            self._tell('gave_up', f'{word} again after {self._retries} retries: a person has to look')
            self._cancel_then(lambda: None)
        else:
            self._retries += 1
            self._tell('started', f'{word}: retry {self._retries} of {self._max_retries}')
            self._cancel_then(self._recover)

    def _cancel_then(self, go_on: Callable[[], None]) -> None:
        if self._goals is None:
            go_on()
            return

        def on_answer(result: CancelGoal.Response) -> None:
            if result.return_code not in CANCELLED:
                self._tell('failed', f'{self._action} does not cancel its goals (code {result.return_code})')
                return
            self._tell('cancelled', f'goals of {self._action}: {len(result.goals_canceling)}')
            go_on()

        # The goal id 0 at the time 0 stands for every goal.
        self._ask(self._goals, CancelGoal.Request(), self._cancel_timeout_s, on_answer)

    def _recover(self) -> None:
        self._ask(
            self._robot, Trigger.Request(), self._timeout_s,
            lambda result: self._tell('done' if result.success else 'failed', result.message))

    def _ask(
        self, service: Service, request: object, timeout_s: float, on_answer: Callable[[object], None]
    ) -> None:
        """Call a service; its answer goes to `on_answer`, and the lack of one is told."""
        def end() -> None:
            self._answer = None
            self.destroy_timer(timer)

        def on_done(answer: Future) -> None:
            if answer is self._answer:
                end()
                on_answer(answer.result())

        def on_timeout() -> None:
            service.client.remove_pending_request(answer)
            end()
            self._tell('failed', f'no answer from {service.name} within {timeout_s:g} s')

        # A robot that never answers must not silence this node for good. Time that stands still
        # in a simulation must not either, so the clock is a steady one.
        timer = self.create_timer(timeout_s, on_timeout, clock=Clock(clock_type=ClockType.STEADY_TIME))
        answer = self._answer = service.client.call_async(request)
        answer.add_done_callback(on_done)

    def _notice_lost(self, sequence: int) -> None:
        """Events are counted from 1; a smaller number than before means that the reward node is new."""
        missing = sequence - self._sequence - 1
        if self._sequence and missing > 0:
            self._tell('lost', f'{missing} failure events did not arrive')
        self._sequence = sequence

    def _tell(self, key: str, value: str) -> None:
        value = one_line(value)  # a robot's own words may be in it
        if key in ('started', 'cancelled', 'done'):
            self.get_logger().info(f'{key}: {value}')
        else:
            self.get_logger().warning(f'{key}: {value}')
        self._recoveries.publish(KeyValue(key=key, value=value))


def main() -> None:
    """Run the node until SIGINT or SIGTERM; ends the process."""
    run(RecoveryNode, lambda node: None)
