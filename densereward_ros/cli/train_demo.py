"""`densereward train-demo`: train the demo checkpoint from nothing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

DEFAULT_FOLDER = Path('models') / 'tabletop'


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        'train-demo',
        help='train the tabletop demo checkpoint',
        description='Train the tiny Qwen3-VL checkpoint of the tabletop demo from nothing, on episodes that '
        'the demo world makes up as it goes. It takes one core, and a part of a second one for the pictures.',
    )
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=DEFAULT_FOLDER,
        metavar='FOLDER',
        help='where the checkpoint goes; an older one there is replaced (default: %(default)s)',
    )
    parser.add_argument(
        '--minutes', type=_minutes, default=40.0, help='how long to train (default: %(default)g)'
    )
    parser.add_argument(
        '--seed', type=int, default=0, help='another seed, another training (default: %(default)s)'
    )
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Train and write the checkpoint; nothing is written when it ends early."""
    if arguments.output.exists() and not (arguments.output / 'config.json').is_file():
        print(f'{arguments.output} exists and is no checkpoint (it would be replaced)', file=sys.stderr)
        return 2
    from densereward_ros.tabletop.training import train

    train(arguments.output, arguments.minutes, arguments.seed, lambda line: print(line, flush=True))
    return 0


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 24 * 60:
        raise argparse.ArgumentTypeError(f"'{text}' (a number of minutes above 0, up to 1440)")
    return value
