"""`densereward evaluate-events`: how well events find failures, on the tabletop."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from densereward_ros.cli.evaluate_demo import count


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        'evaluate-events',
        help='measure the failure events on the tabletop',
        description='Score episodes of the demo world that training never saw with the demo checkpoint and '
        'the fast engine, and measure what the detector makes of the verdicts: before and after calibration, '
        'with each fusion of three cameras, and beside three simpler rules. Writes the figures, and the '
        'verdicts on the successful episodes, with which the suite checks the promise of a calibration.',
    )
    parser.add_argument('--model', default='tabletop', help='a checkpoint folder (default: %(default)s)')
    parser.add_argument(
        '--episodes', type=count, default=300, help='how many episodes (default: %(default)s)')
    parser.add_argument(
        '--processes', type=count, default=max(1, min(4, os.cpu_count() or 1)),
        help='how many processes share the work (default here: %(default)s)')
    parser.add_argument(
        '-o', '--output', type=Path, default=Path('benchmark') / 'events.json', metavar='FILE',
        help='where the figures go, and beside them the verdicts (default: %(default)s)')
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, write, print. Raises ModelError."""
    from densereward_ros.tabletop import event_evaluation, event_tables, event_verdicts

    results, successes = event_evaluation.evaluate(
        arguments.model, arguments.episodes, arguments.processes, lambda line: print(line, flush=True))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=2) + '\n', encoding='utf-8')
    verdicts = arguments.output.with_name('successful_verdicts.npz')
    event_verdicts.write(successes, results['model'], verdicts)
    print(event_tables.table(results))
    print(f'wrote {arguments.output} and {verdicts}')
    return 0
