"""`densereward compare`: whether a quantised model still says what the full one says."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from densereward_ros.models.base import DTYPES, QUANTIZATIONS, RELEASED_MODEL, ModelError, ModelOptions


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        'compare',
        help="compare a quantised model's verdicts with the full one's on recordings",
        description='Score the windows of recordings with a model as it is and with its language-model '
        'weights in 8 or 4 bits, and print how far the verdicts are apart.',
    )
    parser.add_argument('recordings', nargs='+', metavar='RECORDING', help='a video or a folder of images')
    parser.add_argument('--task', required=True, help='what the robot is doing, in words')
    parser.add_argument('--quantization', choices=QUANTIZATIONS[1:], default=QUANTIZATIONS[1])
    parser.add_argument('--model', default=RELEASED_MODEL, help='as of the node (default: %(default)s)')
    parser.add_argument('--revision', default='main', help='of a model on the hub (default: %(default)s)')
    parser.add_argument('--device', default='auto', help='auto, cpu, cuda or cuda:N (default: %(default)s)')
    parser.add_argument('--dtype', choices=DTYPES, default='auto')
    parser.add_argument(
        '--frame-interval', type=float, default=0.2, metavar='SECONDS',
        help='between the frames of a window (default: %(default)s)',
    )  # fmt: skip
    parser.add_argument(
        '--rate', type=float, default=0.0, metavar='HZ', help='frames a second of a folder of images'
    )
    parser.add_argument('-o', '--output', type=Path, metavar='FILE', help='write the figures as JSON too')
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Score twice, print, write. Raises ModelError and RecordingError."""
    from densereward_ros.models.agreement import Agreement, score_all
    from densereward_ros.models.prompt import clean_task
    from densereward_ros.recordings.opening import open_episodes
    from densereward_ros.recordings.windows import windows_of

    def report(line: str) -> None:
        print(line, flush=True)

    try:
        task = clean_task(arguments.task)
    except ValueError as error:
        raise ModelError(str(error)) from None
    if not task:
        raise ModelError('the task is empty (say in words what the robot is doing)')
    episodes = [
        episode for source in arguments.recordings
        for episode in open_episodes(source, task, arguments.rate)]
    # Beside int4 weights there is bfloat16 alone: the full model then has it too, or two things would differ.
    dtype = 'bfloat16' if (arguments.quantization, arguments.dtype) == ('int4', 'auto') else arguments.dtype
    full = ModelOptions(arguments.model, arguments.revision, arguments.device, dtype)
    scored = []
    for options in (full, replace(full, quantization=arguments.quantization)):
        windows = (
            seen.window
            for episode in episodes
            for seen in windows_of(episode, arguments.frame_interval)
        )
        scored.append(score_all(options, windows, report))
    agreement = Agreement.of(*scored)
    print(agreement.table(arguments.quantization))
    if arguments.output:
        arguments.output.write_text(json.dumps(agreement.figures(), indent=2) + '\n', encoding='utf-8')
        print(f'wrote {arguments.output}')
    return 0
