"""`densereward compare`: whether a quantised model, or one on a server, still says what the full one says."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from densereward_ros.cli.model_options import add_model_arguments, allowed_task, model_options
from densereward_ros.models.base import ModelError, ModelOptions


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        'compare',
        help="compare a quantised or served model's verdicts with the full one's on recordings",
        description='Score the windows of recordings with a model as it is and with its language-model '
        'weights in 8 or 4 bits, and print how far the verdicts are apart. With --engine server the other '
        'one is what the server runs, and the full one the same checkpoint on this machine.',
    )
    parser.add_argument('recordings', nargs='+', metavar='RECORDING', help='a video or a folder of images')
    parser.add_argument('--task', required=True, help='what the robot is doing, in words')
    parser.add_argument(
        '--rate', type=float, default=0.0, metavar='HZ', help='frames a second of a folder of images')
    parser.add_argument('-o', '--output', type=Path, metavar='FILE', help='write the figures as JSON too')
    add_model_arguments(parser)
    parser.set_defaults(func=run, quantization='int8')


def run(arguments: argparse.Namespace) -> int:
    """Score twice, print, write. Raises ModelError and RecordingError."""
    from densereward_ros.models.agreement import Agreement, score_all
    from densereward_ros.recordings.opening import open_episodes
    from densereward_ros.recordings.windows import windows_of

    def report(line: str) -> None:
        print(line, flush=True)

    task = allowed_task(arguments.task)
    full, other = _compared(model_options(arguments))
    episodes = [
        episode for source in arguments.recordings
        for episode in open_episodes(source, task, arguments.rate)]
    scored = []
    for options in (full, other):
        windows = (
            seen.window
            for episode in episodes
            for seen in windows_of(episode, arguments.frame_interval)
        )
        scored.append(score_all(options, windows, report))
    agreement = Agreement.of(*scored)
    print(agreement.table('server' if other.engine == 'server' else other.quantization))
    if arguments.output:
        arguments.output.write_text(json.dumps(agreement.figures(), indent=2) + '\n', encoding='utf-8')
        print(f'wrote {arguments.output}')
    return 0


def _compared(options: ModelOptions) -> tuple[ModelOptions, ModelOptions]:
    """The full model on this machine, and the one that was asked for. Raises ModelError."""
    if options.engine == 'server':
        # The server has its own name for the checkpoint.
        return replace(
            options, engine='fast', model=options.server_checkpoint or options.model, server_url='',
            quantization='none'), options
    if options.quantization == 'none':
        raise ModelError("quantization is 'none' (int8 or int4 are allowed, or --engine server)")
    # Beside int4 weights there is bfloat16 alone: the full model then has it too, or two things would differ.
    dtype = 'bfloat16' if (options.quantization, options.dtype) == ('int4', 'auto') else options.dtype
    other = replace(options, dtype=dtype)
    return replace(other, quantization='none'), other
