"""Which model a verb opens, and how: the options that several verbs share."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from densereward_ros import __version__
from densereward_ros.models.base import (
    DTYPES,
    ENGINES,
    IMAGE_FORMATS,
    QUANTIZATIONS,
    RELEASED_MODEL,
    ModelError,
    ModelOptions,
    check_options,
)
from densereward_ros.recordings.base import RecordingError

# A recording can wait, as a robot cannot: a server that restarts or is busy costs no run.
_PATIENCE_S = 60.0
# Which verdicts there are depends on these; and on these with engine server alone.
_OPTIONS = ('engine', 'device', 'dtype', 'quantization', 'max_pixels')
_SERVER_OPTIONS = ('server_url', 'server_checkpoint', 'image_format', 'jpeg_quality')


def add_model_arguments(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Register --model, --engine and the like, with the meaning and defaults of the node's parameters."""
    parser.add_argument(
        '--model', default=RELEASED_MODEL,
        help='a Hugging Face id, a checkpoint folder, or tabletop (default: %(default)s)')
    parser.add_argument('--revision', default='main', help='of a model on the hub (default: %(default)s)')
    parser.add_argument(
        '--engine', choices=ENGINES, default='fast',
        help='score_head for a checkpoint that scores in place of replying; server for the one at '
        '--server-url (default: %(default)s)')
    parser.add_argument('--device', default='auto', help='auto, cpu, cuda or cuda:N (default: %(default)s)')
    parser.add_argument('--dtype', choices=DTYPES, default='auto', help='(default: %(default)s)')
    parser.add_argument(
        '--quantization', choices=QUANTIZATIONS, default='none', help='(default: %(default)s)')
    parser.add_argument(
        '--max-pixels', type=int, default=0, metavar='N',
        help="of a frame; 0 leaves it to the model's own processing (default: %(default)s)")
    parser.add_argument(
        '--frame-interval', type=float, default=0.2, metavar='SECONDS',
        help='between the frames of a window (default: %(default)s)')
    parser.add_argument(
        '--server-url', default='', metavar='URL',
        help='with --engine server, the OpenAI-compatible API, such as http://localhost:8000/v1: the images '
        'go there, --model is the name that it serves, and DENSEREWARD_SERVER_KEY in the environment the key')
    parser.add_argument(
        '--server-timeout', type=float, default=_PATIENCE_S, metavar='SECONDS',
        help='that a batch of windows waits for the server, retries included (default: %(default)s)')
    parser.add_argument(
        '--server-checkpoint', default='', metavar='CHECKPOINT',
        help='that the server runs, for its system prompt: an id, a folder or tabletop (default: --model)')
    parser.add_argument(
        '--image-format', choices=IMAGE_FORMATS, default='png',
        help='how images travel to the server (default: %(default)s)')
    parser.add_argument(
        '--jpeg-quality', type=int, default=90, metavar='N', help='1 to 100 (default: %(default)s)')


def model_options(arguments: argparse.Namespace) -> ModelOptions:
    """The options that the arguments give. Raises ModelError."""
    if not 0 <= arguments.frame_interval < float('inf'):
        raise ModelError(f'frame-interval is {arguments.frame_interval} (0 or more seconds are allowed)')
    names = ('model', 'revision', *_OPTIONS, *_SERVER_OPTIONS, 'server_timeout')
    options = ModelOptions(**{name: getattr(arguments, name) for name in names})
    check_options(options)
    return options


def deciding_options(options: ModelOptions) -> dict[str, Any]:
    """Those that decide which verdicts a model gives, by name, as JSON knows them."""
    names = (*_OPTIONS, *(_SERVER_OPTIONS if options.engine == 'server' else ()))
    return {name: getattr(options, name) for name in names}


def provenance(arguments: argparse.Namespace) -> dict[str, Any]:
    """What it takes to get the same numbers again: the model, the options, this package's version.

    To be asked once the model is there. Raises ModelError and RecordingError.
    """
    from densereward_ros.scoring.provenance import model_provenance

    options = model_options(arguments)
    return {
        'model': options.model,
        **model_provenance(options),
        'options': {**deciding_options(options), 'frame_interval': arguments.frame_interval},
        'version': __version__,
    }


def allowed_task(text: str) -> str:
    """A task as every model takes it. Raises ModelError."""
    from densereward_ros.models.prompt import clean_task

    try:
        task = clean_task(text)
    except ValueError as error:
        raise ModelError(str(error)) from None
    if not task:
        raise ModelError('the task is empty (say in words what the robot is doing)')
    return task


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Write a JSON file in one step, and say so. Raises RecordingError."""
    from densereward_ros.results.files import in_one_step

    text = json.dumps(content, indent=2, ensure_ascii=False) + '\n'
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        in_one_step(file, lambda part: part.write_text(text, encoding='utf-8'))
    except OSError as error:
        raise RecordingError(f'{file}: cannot be written ({error.strerror})') from None
    print(f'wrote {file}')
