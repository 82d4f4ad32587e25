"""`densereward evaluate-demo`: how good the demo checkpoint is on episodes that training never saw."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        'evaluate-demo',
        help='measure the tabletop demo checkpoint',
        description='Score held-out episodes of the demo world with the demo checkpoint, through the same '
        'model code as the node. Prints a table with 95%% intervals, resampled by episode, and writes the '
        'figures as JSON.',
    )
    parser.add_argument('--model', default='tabletop', help='a checkpoint folder (default: %(default)s)')
    parser.add_argument(
        '--episodes', type=count, default=200, help='how many episodes (default: %(default)s)'
    )
    parser.add_argument(
        '--processes',
        type=count,
        default=max(1, min(4, os.cpu_count() or 1)),
        help='how many processes share the work (default here: %(default)s)',
    )
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=Path('benchmark') / 'demo.json',
        metavar='FILE',
        help='where the figures go (default: %(default)s)',
    )
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, print, write. Raises ModelError."""
    from densereward_ros.tabletop import evaluation, figures

    def report(line: str) -> None:
        print(line, flush=True)

    results = evaluation.evaluate(arguments.model, arguments.episodes, arguments.processes, report)
    print(figures.table(results))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=2) + '\n', encoding='utf-8')
    print(f'wrote {arguments.output}')
    return 0


def count(text: str) -> int:
    """A whole number from 1 to 10000, written as an argument."""
    """A whole number from 1 to 10000, as an argument."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= 10_000:
        raise argparse.ArgumentTypeError(f"'{text}' (a whole number from 1 to 10000)")
    return value
