"""Every parameter of the reward node, once: node, launch file, YAML and README agree with this table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from densereward_ros.events.fusion import FUSIONS
from densereward_ros.events.settings import DEFAULTS, RANGES

if TYPE_CHECKING:
    from rclpy.node import Node


class ParameterError(ValueError):
    """A parameter has a value that is not allowed; the text is one line for the user."""


@dataclass(frozen=True)
class ParameterSpec:
    """One parameter.

    live: may change while the node is configured; the others take effect at the next configure.
    minimum, maximum: the range of a number, both ends allowed.
    """

    name: str
    default: Any
    description: str
    live: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        if self.choices:
            return ', '.join(self.choices)
        if self.minimum is not None:
            kind = 'a whole number, ' if isinstance(self.default, int) else ''
            return f'{kind}{self.minimum} to {self.maximum}'
        return {bool: 'true or false', str: 'a text', list: 'a list of at least one text'}[type(self.default)]


def _event_spec(name: str, description: str) -> ParameterSpec:
    """A setting of the detector, with its own default and range."""
    low, high = RANGES[name]
    return ParameterSpec(
        name, getattr(DEFAULTS, name), description, live=True, minimum=low, maximum=high)


PARAMETERS = (
    ParameterSpec(
        'model', 'densereward/densereward-3frame-thinking',
        'The reward model: a Hugging Face id, a checkpoint folder, tabletop for the demo checkpoint, or '
        'module:Class for a Python class of your own.'),
    ParameterSpec(
        'model_revision', 'main',
        'Branch, tag or commit of the model on the hub; a commit makes a deployment reproducible.'),
    ParameterSpec(
        'device', 'auto',
        'Where the model runs: auto (a GPU), cuda, cuda:1, ... or cpu. A large model runs on the CPU only '
        'when told cpu.'),
    ParameterSpec(
        'dtype', 'auto',
        'Number format of the weights; auto is bfloat16 on a GPU and float32 on a CPU.',
        choices=('auto', 'bfloat16', 'float16', 'float32')),
    ParameterSpec(
        'engine', 'fast',
        "How verdicts are made: fast, or reference for the model card's own procedure, several times slower; "
        'score_head for a checkpoint that scores in place of replying; server, which asks the one at '
        'server_url.',
        choices=('fast', 'reference', 'score_head', 'server')),
    ParameterSpec(
        'constrain', True,
        'Whether the fast engine, or a server that can, keeps replies to the format; with false a malformed '
        'one gives no reward.'),
    ParameterSpec(
        'max_pixels', 0,
        'Pixels of a frame, at most (4096 or more): larger ones are made smaller for the model. 0 leaves it '
        "to the model card's processing and to what fits into memory.",
        minimum=0, maximum=100_000_000),
    ParameterSpec(
        'quantization', 'none',
        "The language model's weights in 8 or 4 bits, which needs torchao: none, int8 or int4.",
        choices=('none', 'int8', 'int4')),
    ParameterSpec(
        'gpu_memory', 0.0,
        "GB of the GPU's memory that this process may use, for a GPU shared with a policy; 0.0 means all.",
        minimum=0.0, maximum=10_000.0),
    ParameterSpec(
        'cuda_graphs', False,
        'Whether passes of the language model are recorded and replayed; of no effect on a CPU.'),
    ParameterSpec(
        'server_url', '',
        'With engine server: the OpenAI-compatible API that judges, such as http://localhost:8000/v1. Images '
        'are sent there; model is the name that it serves.'),
    ParameterSpec(
        'server_timeout', 2.0,
        'With engine server: seconds that a tick waits for it at most, retries included.',
        minimum=0.05, maximum=600.0),
    ParameterSpec(
        'server_checkpoint', '',
        'With engine server: the checkpoint that it runs (as model is given otherwise), for the system '
        'prompt; empty means that model names it.'),
    ParameterSpec(
        'image_format', 'png',
        'With engine server: how images travel, png, which loses nothing, or jpeg.',
        choices=('png', 'jpeg')),
    ParameterSpec('jpeg_quality', 90, 'The quality of image_format jpeg.', minimum=1, maximum=100),
    ParameterSpec(
        'image_topics', ['/camera/image_raw'],
        'Camera topics, of sensor_msgs/Image or CompressedImage; each camera has its own window.'),
    ParameterSpec(
        'task', '',
        'What the robot is to do, in words. Without a task nothing is scored; a new task is a new episode.',
        live=True),
    ParameterSpec(
        'rate', 5.0, 'Verdicts a second and camera, at most, in Hz.', live=True, minimum=0.1, maximum=100.0),
    ParameterSpec(
        'frame_interval', 0.2,
        'Time between the three frames of a window in seconds; 0.0 means the last three frames that arrived.',
        minimum=0.0, maximum=10.0),
    ParameterSpec(
        'max_frame_age', 1.0,
        'The newest frame may have arrived this many seconds ago, at most; without one there is no reward.',
        minimum=0.05, maximum=60.0),
    _event_spec(
        'confirmations',
        'Verdicts that must name the same failure before it is an event: in a row, unless '
        'confirmation_window says otherwise.'),
    _event_spec(
        'confirmation_window',
        'The confirmations are counted among this many of the last verdicts; 0 means as many as '
        'confirmations, so in a row.'),
    ParameterSpec(
        'probability_floor', 0.0,
        'A verdict confirms a failure when its word has at least this probability; 0.0 means that the word '
        'is enough. Of effect with engine fast, and with a server that tells probabilities.',
        live=True, minimum=0.0, maximum=1.0),
    _event_spec(
        'reward_drop',
        'A reward this far below its recent peak is an event too, without a word; 0.0 means never. A model '
        'that names no failures, as with engine score_head, has no other events.'),
    _event_spec('drop_window', 'How long a peak is recent, in seconds.'),
    _event_spec('clearing', 'Verdicts in a row without the failure that end it.'),
    _event_spec('cooldown', 'After an event, seconds without another one of the same camera and reason.'),
    _event_spec(
        'stall_time', 'Seconds without progress after which the episode is stalled; 0.0 means never.'),
    _event_spec('stall_rise', 'A rise of the reward by this much is progress.'),
    _event_spec('success_level', 'A reward from here on is a success, once it is held.'),
    _event_spec('success_time', 'Seconds for which a success must be held.'),
    ParameterSpec(
        'fusion', 'any',
        'Which cameras must see a failure: any of them, the majority, or the primary one.', choices=FUSIONS),
    ParameterSpec('primary_camera', '', 'The camera that decides with fusion primary: one of image_topics.'),
    ParameterSpec(
        'thresholds', '',
        'A file that densereward calibrate wrote: its rules hold in place of confirmations, '
        'confirmation_window, probability_floor, reward_drop and drop_window.'),
    ParameterSpec(
        'max_new_tokens', 32, 'Length limit of a reply in tokens; fewer than 32 would cut replies off.',
        minimum=32, maximum=1024),
    ParameterSpec(
        'autostart', False, 'Configure and activate when the node starts, without a lifecycle manager.'),
)
SPEC_OF_NAME = {spec.name: spec for spec in PARAMETERS}


def check_value(spec: ParameterSpec, value: Any) -> None:
    """Raises ParameterError when the value has the wrong type or lies outside what is allowed."""
    if isinstance(spec.default, float) and type(value) is int:
        raise ParameterError(f'parameter {spec.name} is {value}, an integer; write {value}.0')
    if isinstance(spec.default, list):
        valid = isinstance(value, (list, tuple)) and value and all(isinstance(item, str) for item in value)
    elif spec.choices:
        valid = value in spec.choices
    elif spec.minimum is not None:
        valid = type(value) is type(spec.default) and spec.minimum <= value <= spec.maximum
    else:
        valid = type(value) is type(spec.default)
    if not valid:
        quotable = isinstance(spec.default, str) and isinstance(value, (bool, int, float))
        hint = '; put it in quotes' if quotable else ''
        shown = 'empty' if value is None else repr(value)  # an empty list in YAML has no type, and no value
        raise ParameterError(f'parameter {spec.name} is {shown}, allowed: {spec.allowed}{hint}')


def declare_parameters(node: Node) -> None:
    """Declares the whole table on a node. Raises ParameterError for a start value that is not allowed."""
    from rcl_interfaces.msg import ParameterDescriptor

    for spec in PARAMETERS:
        # rclpy's own refusal of a start value names neither the value nor the range in words. So the
        # value is first taken as it comes and checked here, then declared with its type and range.
        value = node.declare_parameter(
            spec.name, spec.default, ParameterDescriptor(dynamic_typing=True)).value
        check_value(spec, value)
        node.undeclare_parameter(spec.name)
        node.declare_parameter(spec.name, spec.default, _descriptor(spec))


def _descriptor(spec: ParameterSpec):
    from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor

    descriptor = ParameterDescriptor(
        description=spec.description,
        additional_constraints='' if spec.live else 'Takes effect at the next configure.')
    if spec.choices:
        descriptor.additional_constraints += f' One of: {spec.allowed}.'
    elif isinstance(spec.default, float):
        descriptor.floating_point_range = [FloatingPointRange(from_value=spec.minimum, to_value=spec.maximum)]
    elif spec.minimum is not None:
        descriptor.integer_range = [IntegerRange(from_value=spec.minimum, to_value=spec.maximum)]
    return descriptor


def value_of_text(spec: ParameterSpec, text: str) -> Any:
    """The value that a text on a command line means. Raises ParameterError.

    A list is written ['/a', '/b'], /a,/b or, for one item, /a. A task is never read as a number or
    a truth value.
    """
    kind = type(spec.default)
    try:
        if kind is bool:
            value = {'true': True, 'false': False}[text.strip().lower()]
        elif kind is list:
            value = [item.strip(' \'"') for item in text.strip().strip('[]').split(',') if item.strip(' \'"')]
        else:
            value = kind(text)
    except (KeyError, ValueError):
        raise ParameterError(f'{spec.name}:={text}, allowed: {spec.allowed}') from None
    check_value(spec, value)
    return value
