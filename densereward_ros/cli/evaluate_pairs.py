"""`densereward evaluate --pairs`: whether a model scores the preferred one of two recordings higher."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from densereward_ros.cli.model_options import add_model_arguments
from densereward_ros.recordings.base import RecordingError


def add_pairs_arguments(parser: argparse.ArgumentParser) -> None:
    """Register --pairs, and what goes with it. The caller's parser has --json."""
    group = parser.add_argument_group(
        'pairs', 'Score pairs of recordings of which one is preferred, and print the pairwise accuracy with '
        'its 95%% interval, resampled by pair, ties, which earn a half, and margins; see docs/score_head.md.')
    group.add_argument('--pairs', type=Path, metavar='FILE', help='a YAML file of pairs')
    group.add_argument(
        '--by', choices=('final', 'mean'), default='final',
        help='the reward of the last verdict, or the mean of all (default: %(default)s)')
    add_model_arguments(group)


def run_pairs(arguments: argparse.Namespace) -> int:
    """Score each recording once, print, write arguments.json. Raises ModelError and RecordingError."""
    from densereward_ros.cli.model_options import allowed_task, model_options, provenance, write_json
    from densereward_ros.metrics.preference import preference
    from densereward_ros.models.opening import open_model
    from densereward_ros.recordings.outcome import open_one, outcome_of
    from densereward_ros.recordings.pairs import read_pairs

    pairs = read_pairs(arguments.pairs)
    for pair in pairs:
        allowed_task(pair.task)
    sides = [((pair.preferred, pair.task, pair.rate), (pair.other, pair.task, pair.rate)) for pair in pairs]
    asked = list(dict.fromkeys(side for both in sides for side in both))
    episodes = {side: open_one(*side) for side in asked}
    model = open_model(model_options(arguments), lambda line: print(line, flush=True))
    outcomes, failed = {}, {}
    for number, (side, episode) in enumerate(episodes.items(), 1):
        try:
            outcomes[side] = outcome_of(model, episode, arguments.frame_interval)
        except RecordingError as error:
            failed[side] = str(error)
            print(f'{number} of {len(asked)}: no score: {error}', flush=True)
        else:
            print(f'{number} of {len(asked)}: {side[0]}: {outcomes[side].verdicts} verdicts', flush=True)
    model.close()
    rewards = [
        [outcomes[side].reward(arguments.by) if side in outcomes else math.nan for side in both]
        for both in sides]
    margins = [preferred - other for preferred, other in rewards]
    subsets = sorted({pair.subset for pair in pairs} - {''})
    figures = preference(margins)
    of_subsets = {
        subset: preference([margin for pair, margin in zip(pairs, margins) if pair.subset == subset])
        for subset in subsets}
    malformed = sum(outcome.malformed for outcome in outcomes.values())
    verdicts = sum(outcome.verdicts for outcome in outcomes.values())
    print('\n'.join(['', *_table([('all', figures), *of_subsets.items()])]))
    print(f'{len(outcomes)} recordings, {verdicts} verdicts, {malformed} malformed replies; '
          f'{arguments.by} reward; intervals of 95%, resampled by pair')
    if arguments.json:
        write_json(arguments.json, {
            'by': arguments.by,
            'figures': _plain(vars(figures)),
            'subsets': {subset: _plain(vars(found)) for subset, found in of_subsets.items()},
            'recordings': len(outcomes), 'verdicts': verdicts, 'malformed': malformed,
            'pairs': [
                {'preferred': str(pair.preferred), 'other': str(pair.other), 'task': pair.task,
                 'subset': pair.subset, **_plain(dict(zip(('preferred_reward', 'other_reward'), both))),
                 **_plain({'margin': margin})}
                for pair, both, margin in zip(pairs, rewards, margins)],
            'failed': [{'recording': str(path), 'why': why} for (path, _, _), why in failed.items()],
            **provenance(arguments)})
    return 1 if failed else 0


def _table(figures: list[tuple[str, Any]]) -> list[str]:
    lines = [
        f'{"pairs":>6} {"ties":>5} {"undefined":>9} {"accuracy":>9}  {"95% interval":<15} '
        f'{"margins from":>12} {"median":>9} {"to":>9}  subset']
    for name, found in figures:
        low, high = found.interval
        least, median, most = found.margins
        lines.append(
            f'{found.pairs:6} {found.ties:5} {found.undefined:9} {found.accuracy:9.3f}  '
            f'{f"{low:.3f} to {high:.3f}":<15} {least:12.3f} {median:9.3f} {most:9.3f}  {name}')
    return lines


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """For JSON, which has no NaN."""
    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return [plain(part) for part in value]
        return None if isinstance(value, float) and math.isnan(value) else value

    return {name: plain(value) for name, value in values.items()}
