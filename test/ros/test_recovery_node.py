"""The recovery controller as a process, between failure events and a robot's recover service."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from action_msgs.msg import GoalInfo
from action_msgs.srv import CancelGoal
from ament_index_python.packages import get_package_prefix
from diagnostic_msgs.msg import KeyValue
from sensor_msgs.msg import Image
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger

from densereward_ros.msg import FailureEvent
from densereward_ros.ros.publications import LATCHED_QOS
from ros_bench import Client, wait_for

pytestmark = pytest.mark.slow  # together they take most of half a minute

CONTROLLER = Path(get_package_prefix('densereward_ros')) / 'lib' / 'densereward_ros' / 'recovery_node'


class Robot:
    """Offers the recover service, and takes its time."""

    def __init__(self, context) -> None:
        self.client = Client(context, 'robot')
        self.calls = 0
        self.takes_s = 0.0
        self.succeeds = True
        self.cancels: list[CancelGoal.Request] = []
        self.cancelled_at: list[float] = []
        self.refuses = False
        self._services = [
            self.client.node.create_service(Trigger, '/recover', self._recover),
            self.client.node.create_service(CancelGoal, '/pick/_action/cancel_goal', self._cancel)]

    def _cancel(self, request: CancelGoal.Request, response: CancelGoal.Response) -> CancelGoal.Response:
        self.cancelled_at.append(time.monotonic())
        self.cancels.append(request)
        if self.refuses:
            response.return_code = CancelGoal.Response.ERROR_REJECTED
        else:
            response.goals_canceling = [GoalInfo()]
        return response

    def _recover(self, _, response: Trigger.Response) -> Trigger.Response:
        self.calls += 1
        time.sleep(self.takes_s)
        response.success, response.message = self.succeeds, 'home' if self.succeeds else 'stuck'
        return response


@pytest.fixture
def robot(context):
    """A robot that can recover."""
    robot = Robot(context)
    yield robot
    robot.client.close()


@pytest.fixture
def controller(client, processes):
    """Starts the controller; gives its process, what it says, and a function that sends it an event."""
    started = []

    def start(**parameters: str):
        arguments = [part for name, value in parameters.items() for part in ('-p', f'{name}:={value}')]
        process = processes([CONTROLLER, '--ros-args', *arguments])
        started.append(process)
        process.wait_for_line('ready to call /recover')
        said = client.listen(KeyValue, '/recovery_node/recoveries')
        events = client.speak(FailureEvent, '/failure_event')
        time.sleep(0.7)  # until the controller has found the robot, this publisher and this listener
        sequence = iter(range(1, 100))

        def fail(task: str = 'stack the cup', skipped: int = 0) -> None:
            for _ in range(skipped):
                next(sequence)
            events.publish(FailureEvent(task=task, reason=FailureEvent.REASON_MISS, sequence=next(sequence)))

        return process, said, fail

    yield start
    for process in started:
        # One that was killed would stay in the ROS graph for a while, and the next test would find it.
        process.signal()


def keys(said: list) -> list[str]:
    """What the controller did."""
    return [message.key for message in said]


def test_recovers_within_the_budget(robot, controller):
    """Each event is answered by one recovery; after the last retry it gives the task up, once, and stays."""
    process, said, fail = controller(max_retries='2')
    for expected in (2, 4):
        fail()
        wait_for(lambda: len(said) == expected, 5, f'{expected} messages')  # noqa: B023
    assert keys(said) == ['started', 'done'] * 2
    assert said[0].value == 'miss: retry 1 of 2' and said[1].value == 'home'
    fail()
    fail()
    wait_for(lambda: len(said) == 5, 5, 'the end of the budget')
    assert said[4].key == 'gave_up' and 'after 2 retries' in said[4].value
    fail(task='another task')
    wait_for(lambda: len(said) == 7, 5, 'a recovery of the next task')
    assert keys(said)[5:] == ['started', 'done'] and said[5].value == 'miss: retry 1 of 2'
    assert robot.calls == 3
    assert process.process.poll() is None


def test_one_recovery_at_a_time(robot, controller):
    """Events during a recovery are about the attempt that it ends: they are ignored."""
    robot.takes_s = 1.0
    _, said, fail = controller()
    for _ in range(4):
        fail()
        time.sleep(0.1)
    wait_for(lambda: 'done' in keys(said), 5, 'the end of the recovery')
    time.sleep(0.3)
    assert keys(said) == ['started', 'done'] and robot.calls == 1


def test_lost_events(robot, controller):
    """A gap in the sequence is noticed."""
    _, said, fail = controller()
    fail()
    wait_for(lambda: len(said) == 2, 5, 'the first recovery')
    fail(skipped=3)
    wait_for(lambda: len(said) == 5, 5, 'the second recovery')
    assert keys(said) == ['started', 'done', 'lost', 'started', 'done']
    assert said[2].value == '3 failure events did not arrive'


def test_robot_refuses(robot, controller):
    """A refusal is told, with the robot's reason, and the next event is tried again."""
    robot.succeeds = False
    _, said, fail = controller()
    fail()
    wait_for(lambda: len(said) == 2, 5, 'the refusal')
    assert (said[1].key, said[1].value) == ('failed', 'stuck')
    robot.succeeds = True
    fail()
    wait_for(lambda: len(said) == 4, 5, 'the next recovery')
    assert keys(said)[2:] == ['started', 'done']


def test_robot_does_not_answer(robot, controller):
    """A robot that never answers does not silence the controller for good."""
    robot.takes_s = 2.0
    _, said, fail = controller(timeout='0.5')
    fail()
    wait_for(lambda: len(said) == 2, 5, 'the end of patience')
    assert said[1].key == 'failed' and 'no answer from /recover within 0.5 s' in said[1].value
    robot.takes_s = 0.0
    time.sleep(2.0)
    fail()
    wait_for(lambda: len(said) == 4, 5, 'the next recovery')
    assert keys(said)[2:] == ['started', 'done']


def test_no_robot(controller):
    """Without a recover service it says so, and the budget is kept."""
    _, said, fail = controller()
    fail()
    wait_for(lambda: said, 5, 'a complaint')
    assert said[0].key == 'failed' and 'nobody offers the service /recover' in said[0].value


def test_the_goal_is_cancelled_before_the_recovery_and_soon(robot, controller):
    """Every goal of the action (id 0), within half a second of the event, and only then the recovery."""
    _, said, fail = controller(cancel_action='/pick')
    latencies = []
    for number in range(1, 4):
        began = time.monotonic()
        fail()
        wait_for(lambda n=number: len(said) == 3 * n, 5, 'a recovery')
        latencies.append(robot.cancelled_at[-1] - began)
    assert keys(said) == ['started', 'cancelled', 'done'] * 3
    assert said[1].value == 'goals of /pick: 1'
    assert all(not any(request.goal_info.goal_id.uuid) for request in robot.cancels)
    print('event to cancel request:', [f'{1000 * latency:.1f} ms' for latency in latencies])
    # Not the first: where the two have just found each other, DDS may deliver it at its next heartbeat.
    assert max(latencies[1:]) < 0.5 and robot.calls == 3


def test_a_goal_that_runs_on_is_not_recovered_from(robot, controller):
    """Two that move one arm are worse than a failure: no recovery, and it says so."""
    robot.refuses = True
    _, said, fail = controller(cancel_action='/pick')
    fail()
    wait_for(lambda: len(said) == 2, 5, 'the refusal')
    assert (said[1].key, said[1].value) == ('failed', '/pick does not cancel its goals (code 1)')
    time.sleep(0.3)
    assert robot.calls == 0


def test_giving_up_leaves_no_goal_running(robot, controller):
    """The last thing that it does for a task is to cancel, and then it is silent about that task."""
    _, said, fail = controller(cancel_action='/pick', max_retries='1')
    fail()
    wait_for(lambda: len(said) == 3, 5, 'the only retry')
    fail()
    wait_for(lambda: len(said) == 5, 5, 'the end')
    fail()
    time.sleep(0.5)
    assert keys(said) == ['started', 'cancelled', 'done', 'gave_up', 'cancelled']
    assert len(robot.cancels) == 2 and robot.calls == 1


def test_giving_up_is_told_where_the_goal_cannot_be_cancelled(robot, controller):
    """The arm runs on, and nobody will try again: that must not end in silence."""
    _, said, fail = controller(cancel_action='/pick', max_retries='1')
    fail()
    wait_for(lambda: len(said) == 3, 5, 'the only retry')
    robot.refuses = True
    fail()
    wait_for(lambda: len(said) == 5, 5, 'the end')
    assert keys(said)[3:] == ['gave_up', 'failed']


def test_an_action_that_nobody_offers(robot, controller):
    """Without it the goal cannot be stopped: no recovery, and the budget is kept."""
    _, said, fail = controller(cancel_action='/place', max_retries='1')
    for count in (1, 2):
        fail()
        wait_for(lambda n=count: len(said) == n, 5, 'a complaint')
        assert 'nobody offers the service /place/_action/cancel_goal' in said[-1].value
    assert keys(said) == ['failed', 'failed'] and robot.calls == 0


def test_the_simulated_world_recovers(client, controller, processes):
    """The demo's own robot misses its block; one event later its goal is cancelled and the task gets done."""
    processes([
        CONTROLLER.with_name('camera_player'), '--ros-args', '-p', 'rate:=40.0', '-p', 'mishaps:=[miss]',
        '-p', 'wait_for_subscribers:=1', '-r', '~/recover:=/recover'])
    progress = client.listen(Float64, '/camera_player/progress')
    tasks = client.listen(String, '/camera_player/task', LATCHED_QOS)
    process, said, fail = controller(cancel_action='/camera_player/work')
    client.listen(Image, '/camera/image_raw')  # the world waits for somebody to watch
    wait_for(lambda: len(progress) > 2, 30, 'a world')
    wait_for(lambda: progress[-1].data < max(p.data for p in progress) - 0.1, 30, 'a miss')
    fail(task=tasks[0].data)
    wait_for(lambda: 'done' in keys(said), 30, 'the recovery')
    assert keys(said) == ['started', 'cancelled', 'done']
    wait_for(lambda: progress[-1].data > 0.999, 30, 'the task to be done')


def test_ctrl_c(controller):
    """Ctrl-C ends it within two seconds with exit code 0."""
    process, _, _ = controller()
    code, took = process.signal()
    assert code == 0 and took < 2.0


@pytest.mark.parametrize('parameter, words', [
    ('max_retries:=0', 'parameter max_retries is 0, allowed: a whole number, 1 to 1000'),
    ('timeout:=5', 'parameter timeout is 5, an integer; write 5.0'),
])
def test_bad_parameter(parameter, words):
    """One line and exit code 1."""
    ended = subprocess.run(
        [CONTROLLER, '--ros-args', '-p', parameter], capture_output=True, text=True, timeout=30)
    assert ended.returncode == 1
    assert ended.stderr.strip() == f'recovery_node: {words}'
