"""The lifecycle node: cameras in, /reward and /failure_event out."""

from __future__ import annotations

import functools
import threading
import traceback
from dataclasses import fields
from typing import Any, Callable

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from std_msgs.msg import String
from std_srvs.srv import Trigger

from densereward_ros import msg
from densereward_ros.events.detector import EpisodeState
from densereward_ros.events.thresholds import Thresholds
from densereward_ros.models.base import ModelError, ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.models.prompt import clean_task
from densereward_ros.models.server import ServerModel
from densereward_ros.ros.diagnostics import NodeReport, camera_status, node_status
from densereward_ros.ros.event_parameters import (
    EVENT_PARAMETERS,
    check_not_calibrated,
    detector_settings,
    load_thresholds,
)
from densereward_ros.ros.messages import header_of
from densereward_ros.ros.monitor import Monitor
from densereward_ros.ros.monitor_settings import monitor_settings
from densereward_ros.ros.parameters import SPEC_OF_NAME, ParameterError, check_value, declare_parameters
from densereward_ros.ros.publications import LATCHED_QOS
from densereward_ros.ros.qos import SubscriptionEventCallbacks, overridable
from densereward_ros.text import one_line
from densereward_ros.types import Window

WARNING = 'warning: '  # how open_model marks the lines that are one


def transition(work: Callable[[RewardNode, LifecycleState], None]) -> Callable[..., TransitionCallbackReturn]:
    """A lifecycle callback: rclpy swallows what a callback raises, so the cause is logged here."""

    @functools.wraps(work)
    def callback(node: RewardNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            work(node, state)
        except (ModelError, ParameterError) as error:
            node.report_error(f'{work.__name__} failed: {error}')
            return TransitionCallbackReturn.FAILURE
        except Exception as error:
            node.report_error(f'{work.__name__} failed: {error!r}')
            # Without the error's text, which may hold anything, and was told in the line before.
            where = ''.join(traceback.format_tb(error.__traceback__))
            node.get_logger().error(f'Traceback (most recent call last):\n{where}')
            return TransitionCallbackReturn.ERROR
        return TransitionCallbackReturn.SUCCESS

    return callback


class RewardNode(LifecycleNodeMixin, Node):
    """Parameters, task and lifecycle; what is configured lives in a Monitor.

    The lifecycle services run in a reentrant group, so that get_state is answered while configure
    loads a model. Raises ParameterError for a start value that is not allowed.
    """

    def __init__(self, **node_arguments: Any) -> None:
        Node.__init__(self, 'reward_node', **node_arguments)
        declare_parameters(self)
        self._task = _allowed_task(self._value('task'))
        transitions = ReentrantCallbackGroup()
        LifecycleNodeMixin.__init__(self, callback_group=transitions)
        self._state = 'unconfigured'
        self._step = ''
        self._last_error = ''
        self._monitor: Monitor | None = None
        self._thresholds: Thresholds | None = None
        # Held while state, task and monitor change together; transitions and inputs run on several threads.
        self._changing = threading.RLock()
        self._told: tuple[str, EpisodeState] | None = None

        # Lifecycle publishers are silent while inactive; the state and the diagnostics must not be.
        self._episode_state = overridable(
            self.create_publisher, msg.EpisodeState, '~/episode_state', profile=LATCHED_QOS, node=self)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(
            1.0, self._publish_diagnostics, callback_group=MutuallyExclusiveCallbackGroup(), clock=steady)
        # A latched task needs a transient_local subscription, which a plain `ros2 topic pub` never
        # matches; a volatile one misses what was latched before it came. So there are both, and the
        # same task twice changes nothing.
        inputs = MutuallyExclusiveCallbackGroup()
        plain = QoSProfile(depth=1, reliability=QoSReliabilityPolicy.RELIABLE)
        self.create_subscription(String, '~/task', self._on_task, plain, callback_group=inputs)
        # Without the default callbacks: of each plain publisher rclpy would say that nothing arrives from it.
        self.create_subscription(
            String, '~/task', self._on_task, LATCHED_QOS, callback_group=inputs,
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False))
        self.create_service(Trigger, '~/reset', self._on_reset, callback_group=inputs)
        self.add_on_set_parameters_callback(self._on_set_parameters)
        self._tell_state(EpisodeState.UNKNOWN)
        if self._value('autostart'):
            self._autostart_timer = self.create_timer(
                0.0, self._autostart, callback_group=MutuallyExclusiveCallbackGroup(), clock=steady)

    def report_error(self, line: str) -> None:
        """Log an error, and keep it for the diagnostics."""
        self._last_error = one_line(line)
        self.get_logger().error(self._last_error)

    def shut_down(self) -> None:
        """Make the shutdown transition, unless a model is being loaded: nothing can be freed then."""
        if self._state != 'configuring' and self._state != 'finalized':
            self.trigger_shutdown()

    # Transitions

    @transition
    def on_configure(self, state: LifecycleState) -> None:
        """Load and warm up the model; only then is the node configured."""
        self._state = 'configuring'
        try:
            self._thresholds = load_thresholds(self._value)
            settings = monitor_settings(self, self._value, self._thresholds)
            model = open_model(_model_options(self._value), self._progress)
            try:
                with self._changing:
                    # Read again: rate and the like may have changed while the model was loading.
                    settings = monitor_settings(self, self._value, self._thresholds)
                    self._monitor = Monitor(self, model, settings, self._tell_state)
                    self._state, self._last_error = 'inactive', ''
            except BaseException:
                model.close()
                raise
        except BaseException:
            self._state = 'unconfigured'
            raise
        finally:
            self._step = ''
        self.get_logger().info(f'configured: {model.name} watches {", ".join(settings.image_topics)}')
        if self._thresholds is not None:
            self._tell_thresholds(model.name)
        if not (model.bounded or settings.detector.reward_drop):
            self.get_logger().warning(
                f'{model.name} scores without words, and reward_drop is 0.0: there are no failure events '
                'until it is set, or thresholds of densereward calibrate are')

    @transition
    def on_activate(self, state: LifecycleState) -> None:
        """Begin to score."""
        LifecycleNodeMixin.on_activate(self, state)
        with self._changing:
            self._monitor.activate(self._task)
            self._state = 'active'
        if self._task:
            self.get_logger().info(f'active: task "{self._task}"')
        else:
            self.get_logger().info('active, but idle: no task; set the parameter task, or publish on ~/task')

    @transition
    def on_deactivate(self, state: LifecycleState) -> None:
        """Stop scoring; the model stays loaded."""
        with self._changing:
            self._monitor.deactivate()
            self._state = 'inactive'
        LifecycleNodeMixin.on_deactivate(self, state)

    @transition
    def on_cleanup(self, state: LifecycleState) -> None:
        """Free the model."""
        self._release()

    @transition
    def on_shutdown(self, state: LifecycleState) -> None:
        """Free the model, from any state."""
        self._release()
        self._state = 'finalized'

    @transition
    def on_error(self, state: LifecycleState) -> None:
        """After an error nothing is left, and the node can be configured again."""
        self._release()

    def _release(self) -> None:
        with self._changing:
            monitor, self._monitor = self._monitor, None
            self._state = 'unconfigured'
        if monitor is not None:
            monitor.deactivate()
            monitor.close()

    def _autostart(self) -> None:
        self._autostart_timer.cancel()
        if self._state != 'unconfigured':
            return
        if self.trigger_configure() is TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()

    # Parameters and task

    def _value(self, name: str) -> Any:
        return self.get_parameter(name).value

    def _on_set_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        changes = {}
        for parameter in parameters:
            spec = SPEC_OF_NAME.get(parameter.name)
            if spec is None:
                continue
            try:
                check_value(spec, parameter.value)
                frozen = not spec.live and self._state != 'unconfigured'
                if frozen and parameter.value != self._value(spec.name):
                    raise ParameterError(
                        f'parameter {spec.name} is read at configure, and the node is {self._state}: '
                        'clean it up first')
                if parameter.value != self._value(spec.name):
                    check_not_calibrated(spec.name, self._monitor and self._thresholds)
                changes[spec.name] = (
                    _allowed_task(parameter.value) if spec.name == 'task' else parameter.value)
            except ParameterError as error:
                return SetParametersResult(successful=False, reason=str(error))
        try:
            detector = detector_settings(
                lambda name: changes.get(name, self._value(name)), self._thresholds)
        except ParameterError as error:
            return SetParametersResult(successful=False, reason=str(error))
        with self._changing:
            task = changes.pop('task', self._task)
            if self._monitor is not None:
                if 'rate' in changes:
                    self._monitor.set_rate(changes['rate'])
                if changes.keys() & set(EVENT_PARAMETERS):
                    self._monitor.set_detector(detector)
            if task != self._task:
                self._task = task
                self._begin_episode()
        return SetParametersResult(successful=True)

    def _on_task(self, message: String) -> None:
        result = self.set_parameters([Parameter('task', value=message.data)])[0]
        if not result.successful:
            self.report_error(f'~/task refused, the task is still "{self._task}": {result.reason}')

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with self._changing:
            response.success = self._state == 'active'
            if response.success:
                self._begin_episode()
        if response.success:
            response.message = f'new episode: task "{self._task}"'
        else:
            response.message = f'no episode to reset: the node is {self._state}'
        return response

    def _begin_episode(self) -> None:
        if self._state == 'active':
            self._monitor.new_episode(self._task)
            self.get_logger().info(f'new episode: task "{self._task}"' if self._task else 'no task: idle')
        else:
            self._tell_state(EpisodeState.UNKNOWN)

    # Telling

    def _tell_thresholds(self, model: str) -> None:
        file, found = self._value('thresholds'), self._thresholds
        adding_up = self._value('fusion') == 'any' and len(self._value('image_topics')) > 1
        self.get_logger().info(
            f'thresholds of {file}: at most {found.false_alarms:.1%} of successful episodes with an event'
            + (', from each camera' if adding_up else ''))
        if found.model != model:
            self.get_logger().warning(
                f'thresholds of {file} were calibrated for the model {found.model}, and this is {model}: '
                'unless both are the same, the promise does not hold')

    def _tell_state(self, state: EpisodeState, window: Window | None = None) -> None:
        # A window knows the task that it was judged by; a new one may have been set meanwhile.
        task = window.task if window else self._task
        if (task, state) != self._told:
            self._told = (task, state)
            stamp = header_of(window.newest).stamp if window else self.get_clock().now().to_msg()
            self._episode_state.publish(msg.EpisodeState(stamp=stamp, task=task, state=int(state)))

    def _progress(self, line: str) -> None:
        line = one_line(line)
        if self._state == 'configuring':  # a server's recovery is told later
            self._step = line
        if line.startswith(WARNING):
            self.get_logger().warning(line.removeprefix(WARNING))
        else:
            self.get_logger().info(line)

    def _publish_diagnostics(self) -> None:
        monitor = self._monitor
        report = NodeReport(
            name=self.get_fully_qualified_name().lstrip('/'),
            state=self._state,
            step=self._step,
            model=monitor.model.name if monitor else self._value('model'),
            task=self._task,
            rate=self._value('rate'),
            max_frame_age=self._value('max_frame_age'),
            last_error=(monitor and monitor.last_error) or self._last_error,
            worker=monitor and monitor.worker,
            cameras=monitor.cameras if monitor else (),
            server=monitor.model if monitor and isinstance(monitor.model, ServerModel) else None,
        )
        array = DiagnosticArray(status=[
            node_status(report), *(camera_status(report, camera) for camera in report.cameras)])
        array.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(array)


def _model_options(value: Callable[[str], Any]) -> ModelOptions:
    names = [field.name for field in fields(ModelOptions) if field.name != 'revision']
    return ModelOptions(revision=value('model_revision'), **{name: value(name) for name in names})


def _allowed_task(text: str) -> str:
    try:
        return clean_task(text)
    except ValueError as error:
        raise ParameterError(f'parameter task: {error}') from None
