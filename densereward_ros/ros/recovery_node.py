"""A recovery controller, small enough to copy: on a failure event it asks the robot to try again."""

from __future__ import annotations

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
)


class RecoveryNode(Node):
    """Calls the robot's `recover` service when a failure event arrives, at most `max_retries` times a task.

    Events that arrive during a recovery are ignored: they are about the attempt that it ends.
    After the last retry the node gives up the task, and waits for an event of another one.
    What it does is published on `~/recoveries` (diagnostic_msgs/KeyValue): key is started, done,
    failed, gave_up or lost, value says it in words.
    """

    def __init__(self) -> None:
        super().__init__('recovery_node')
        value = declare_fixed(self, PARAMETERS)
        self._max_retries, self._timeout_s = value['max_retries'], value['timeout']
        self._robot = self.create_client(Trigger, 'recover')
        self._service = self.resolve_service_name('recover')
        self._recoveries = self.create_publisher(KeyValue, '~/recoveries', 10)
        self.create_subscription(FailureEvent, 'failure_event', self._on_event, 10)
        self._task: str | None = None
        self._retries = 0
        self._gave_up = False
        self._sequence = 0
        self._answer: Future | None = None
        self.get_logger().info(f'ready to call {self._service}')

    def _on_event(self, event: FailureEvent) -> None:
        self._notice_lost(event.sequence)
        if event.task != self._task:
            self._task, self._retries, self._gave_up = event.task, 0, False
        if self._answer is not None or self._gave_up:
            return
        word = Reason(event.reason).word
        if self._retries == self._max_retries:
            self._gave_up = True
            self._tell('gave_up', f'{word} again after {self._retries} retries: a person has to look')
        elif not self._robot.service_is_ready():
            self._tell('failed', f'{word}, but nobody offers the service {self._service}')
        else:
            self._retries += 1
            self._tell('started', f'{word}: retry {self._retries} of {self._max_retries}')
            self._answer = self._robot.call_async(Trigger.Request())
            self._answer.add_done_callback(self._on_answer)
            # A robot that never answers must not silence this node for good. Time that stands still
            # in a simulation must not either, so the clock is a steady one.
            self._timer = self.create_timer(
                self._timeout_s, self._on_timeout, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _on_answer(self, answer: Future) -> None:
        if answer is self._answer:
            self._end()
            result = answer.result()
            self._tell('done' if result.success else 'failed', result.message)

    def _on_timeout(self) -> None:
        self._robot.remove_pending_request(self._answer)
        self._end()
        self._tell('failed', f'no answer from {self._service} within {self._timeout_s:g} s')

    def _end(self) -> None:
        self._answer = None
        self.destroy_timer(self._timer)

    def _notice_lost(self, sequence: int) -> None:
        """Events are counted from 1; a smaller number than before means that the reward node is new."""
        missing = sequence - self._sequence - 1
        if self._sequence and missing > 0:
            self._tell('lost', f'{missing} failure events did not arrive')
        self._sequence = sequence

    def _tell(self, key: str, value: str) -> None:
        value = one_line(value)  # a robot's own words may be in it
        if key in ('started', 'done'):
            self.get_logger().info(f'{key}: {value}')
        else:
            self.get_logger().warning(f'{key}: {value}')
        self._recoveries.publish(KeyValue(key=key, value=value))


def main() -> None:
    """Run the node until SIGINT or SIGTERM; ends the process."""
    run(RecoveryNode, lambda node: None)
