"""`densereward rank`: the best of several recordings of one task."""

from __future__ import annotations

import argparse
from pathlib import Path

from densereward_ros.cli.model_options import add_model_arguments
from densereward_ros.recordings.base import RecordingError


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        'rank',
        help='put recordings of one task in order, best first',
        description='Score every window of each recording, and order the recordings by their final or mean '
        'reward: best of N. Equal rewards share a rank, written with an equals sign. A recording that cannot '
        'be scored is named below the table, and the exit code is then 1.',
    )
    parser.add_argument(
        'recordings', nargs='+', metavar='RECORDING',
        help='a video, a folder of images, or a bag of one camera')
    parser.add_argument('--task', required=True, help='what the robot is doing, in words')
    parser.add_argument(
        '--by', choices=('final', 'mean'), default='final',
        help='the reward of the last verdict, or the mean of all (default: %(default)s)')
    parser.add_argument(
        '--rate', type=float, default=0.0, metavar='HZ', help='frames a second of a folder of images')
    parser.add_argument('-o', '--output', type=Path, metavar='FILE', help='write the ranking as JSON too')
    add_model_arguments(parser)
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Score, print, write. Raises ModelError and RecordingError."""
    from densereward_ros.cli.model_options import allowed_task, model_options, provenance, write_json
    from densereward_ros.models.opening import open_model
    from densereward_ros.recordings.outcome import open_one, outcome_of

    task, options = allowed_task(arguments.task), model_options(arguments)
    sources = list(dict.fromkeys(arguments.recordings))
    episodes, failed = {}, {}
    for source in sources:
        try:
            episodes[source] = open_one(source, task, arguments.rate)
        except RecordingError as error:
            failed[source] = str(error)
    if not episodes:
        raise RecordingError(next(iter(failed.values())))
    model = open_model(options, lambda line: print(line, flush=True))
    outcomes = {}
    for number, (source, episode) in enumerate(episodes.items(), 1):
        try:
            outcomes[source] = outcome_of(model, episode, arguments.frame_interval)
        except RecordingError as error:
            failed[source] = str(error)
        else:
            print(f'{number} of {len(episodes)}: {source}: {outcomes[source].verdicts} verdicts', flush=True)
    model.close()
    ranked = rank([(source, outcome.reward(arguments.by)) for source, outcome in outcomes.items()])
    print('\n'.join(['', *_table(ranked, outcomes)]))
    for why in failed.values():
        print(f'not ranked: {why}')
    if arguments.output:
        write_json(arguments.output, {
            'task': task, 'by': arguments.by,
            'ranking': [
                {'rank': place, 'tied': tied, 'recording': source, **vars(outcomes[source])}
                for place, tied, source in ranked],
            'failed': [{'recording': source, 'why': why} for source, why in failed.items()],
            **provenance(arguments)})
    return 1 if failed else 0


def rank(rewards: list[tuple[str, float]]) -> list[tuple[int, bool, str]]:
    """Rank from 1, whether it is shared, and name; best first, equal ones in the order that they came in."""
    values = [reward for _, reward in rewards]
    return [
        (1 + sum(value > reward for value in values), values.count(reward) > 1, name)
        for name, reward in sorted(rewards, key=lambda pair: -pair[1])]


def _table(ranked: list[tuple[int, bool, str]], outcomes: dict) -> list[str]:
    lines = [f'{"rank":>5} {"final":>9} {"mean":>9} {"verdicts":>9} {"malformed":>10}  recording']
    for place, tied, source in ranked:
        found = outcomes[source]
        lines.append(
            f'{"=" * tied + str(place):>5} {found.final:9.3f} {found.mean:9.3f} {found.verdicts:9} '
            f'{found.malformed:10}  {source}')
    return lines
