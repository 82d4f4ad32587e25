"""`densereward evaluate`: how good scores of labelled recordings are, of several models side by side."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from densereward_ros.cli.evaluate_pairs import add_pairs_arguments, run_pairs
from densereward_ros.evaluation import TOLERANCE_S
from densereward_ros.recordings.base import RecordingError


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        'evaluate',
        help='measure the scores of labelled recordings',
        description='Read what `densereward score` wrote and print every metric that the labels allow, with '
        '95%% intervals, resampled by episode. Several folders, such as those of two models on the same '
        'recordings, stand side by side. Labels and metrics: docs/evaluating.md. With --pairs, score pairs '
        'of recordings instead.',
    )
    parser.add_argument(
        'folders', nargs='*', metavar='OUT', help='a folder that `densereward score -o OUT` wrote')
    parser.add_argument(
        '--tolerance', type=_seconds, default=TOLERANCE_S, metavar='SECONDS',
        help='an event within so many seconds after a failure, or 0.5 s before it, is of that failure '
        '(default: %(default)s)')
    parser.add_argument(
        '--published', action='store_true',
        help='print mean absolute errors that others published, on other data, beside the one measured')
    parser.add_argument('--markdown', type=Path, metavar='FILE', help='write the tables as Markdown too')
    parser.add_argument(
        '--json', type=Path, metavar='FILE',
        help='write the figures as JSON too, with what it takes to get the same ones again')
    add_pairs_arguments(parser)
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, print, write. Raises RecordingError, and with pairs ModelError."""
    if arguments.pairs and arguments.folders:
        raise RecordingError(f'--pairs and {arguments.folders[0]} are given; allowed is one of the two')
    if arguments.pairs:
        return run_pairs(arguments)
    if not arguments.folders:
        raise RecordingError('no folder of scores is given, and no --pairs; allowed is one of the two')
    from densereward_ros.evaluation.document import document
    from densereward_ros.evaluation.figures import evaluate
    from densereward_ros.evaluation.tables import markdown, tables, text
    from densereward_ros.results.folder import read_results

    names = list(dict.fromkeys(arguments.folders))
    results = [read_results(name) for name in names]
    evaluations = [evaluate(one, arguments.tolerance) for one in results]
    shown = tables(evaluations, names, [_model(one.run) for one in results], arguments.published)
    same = {
        tuple((episode.name, episode.task, episode.labels) for episode in one.episodes) for one in results}
    remark = '' if len(same) == 1 else (
        'These folders do not hold the same episodes with the same labels: their figures do not compare.')
    print('\n\n'.join([*map(text, shown), *filter(None, [remark])]))
    if arguments.markdown:
        _write(arguments.markdown, '\n\n'.join([*map(markdown, shown), *filter(None, [remark])]) + '\n')
    if arguments.json:
        found = document(evaluations, names, [one.run for one in results], arguments.tolerance)
        _write(arguments.json, json.dumps(found, indent=2, ensure_ascii=False) + '\n')
    return 0


def _model(run: dict[str, Any]) -> str:
    """What scored them; a checkpoint's engine too."""
    from densereward_ros.models.user_class import is_meant

    name, engine = str(run.get('model', 'not known')), run.get('engine')
    return name if is_meant(name) or not engine else f'{name} ({engine})'


def _write(file: Path, content: str) -> None:
    from densereward_ros.results.files import in_one_step

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        in_one_step(file, lambda part: part.write_text(content, encoding='utf-8'))
    except OSError as error:
        raise RecordingError(f'{file}: cannot be written ({error.strerror})') from None
    print(f'wrote {file}')


def _seconds(text: str) -> float:
    """Seconds from 0, as an argument."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' (a number of seconds, 0 or more)")
    return value
