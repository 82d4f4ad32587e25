"""`densereward score`: verdicts and events of recordings, in a folder."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from densereward_ros import __version__
from densereward_ros.cli.model_options import add_model_arguments, deciding_options, model_options
from densereward_ros.models.base import ModelError, ModelOptions

if TYPE_CHECKING:
    from densereward_ros.events.settings import DetectorSettings
    from densereward_ros.recordings.episode import Episode
    from densereward_ros.results.rows import Results
    from densereward_ros.scoring.run import Windowing
    from densereward_ros.scoring.run_folder import RunFolder

SOME_SKIPPED = 3
INTERRUPTED = 130


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        'score',
        help='score recordings: a table of verdicts, failure events, files for Foxglove and LeRobot',
        description='Score every window of recordings that the reward node would have scored, had it '
        'watched. A run that was cut goes on where it was when the same command is given again. Exit code: 0 '
        'when all was scored, 1 for an error, 3 when some recordings could not be scored, 130 after Ctrl-C.')
    parser.add_argument(
        'inputs', nargs='+', metavar='INPUT',
        help='a video, a folder of images, a bag (folder, .mcap or .db3), a LeRobot dataset, a label file or '
        'a folder with an episodes.yaml, or tabletop:N for N episodes of the demo world')
    parser.add_argument(
        '-o', '--output', type=Path, required=True, metavar='OUT', help='the folder for all that is written')
    parser.add_argument(
        '--task', default='', help='what the robot is to do, in words, for recordings that name no task; '
        'replaces those of LeRobot datasets')
    parser.add_argument(
        '--rate', type=float, default=0.0, metavar='HZ',
        help='frames a second: needed for folders of images, for videos in place of their own times')
    parser.add_argument(
        '--topics', nargs='+', default=[], metavar='TOPIC',
        help='of bags and LeRobot datasets, only these cameras (default: all in colour)')
    add_model_arguments(parser)
    parser.add_argument(
        '--batch', type=_batch, default=8, metavar='N',
        help='windows of a recording that are scored together (default: %(default)s)')
    parser.add_argument(
        '--table', choices=('parquet', 'csv'), default='parquet', help='(default: %(default)s)')
    parser.add_argument(
        '--thresholds', type=Path, metavar='FILE',
        help='of failure events, from `densereward calibrate` (default: those of the node)')
    parser.add_argument(
        '--ray', action='store_true',
        help='score on the workers of a Ray cluster, or of one that is started on this machine')
    parser.add_argument(
        '--ray-address', default='', metavar='ADDRESS',
        help="of a cluster's head, such as auto or 10.0.0.5:6379; implies --ray")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Score, write, print. Raises RecordingError and ModelError."""
    from densereward_ros.cli.inputs import open_inputs
    from densereward_ros.recordings.base import RecordingError
    from densereward_ros.scoring.run import Windowing
    from densereward_ros.scoring.run_folder import RunFolder

    options = model_options(arguments)
    windowing = Windowing(frame_interval=arguments.frame_interval, batch=arguments.batch)
    settings = _settings(arguments)
    inputs = {
        'inputs': arguments.inputs, 'task': arguments.task, 'rate': arguments.rate,
        'topics': arguments.topics}
    episodes, failed = open_inputs(**inputs)
    for _, why in failed:
        print(f'skipped: {why}', flush=True)
    if not episodes:
        raise RecordingError('nothing can be scored: no recording could be opened')
    asked = {
        'options': _asked(options, windowing),
        'inputs': {**inputs, 'inputs': [_whole(text) for text in arguments.inputs]},
        'version': __version__}
    with RunFolder(arguments.output, asked) as folder:
        try:
            _score(episodes, folder, options, windowing, arguments)
            results = _results(episodes, failed, folder, settings, {
                **folder.facts, 'engine': options.engine, **asked,
                'thresholds': str(arguments.thresholds) if arguments.thresholds else None,
                'detector': asdict(settings)})
        except KeyboardInterrupt:
            print(
                f'densereward: interrupted; {arguments.output} keeps what was scored, and the same command '
                'goes on from there', file=sys.stderr)
            return INTERRUPTED
        if not results.episodes:
            raise RecordingError('nothing was scored: no recording has a window that can be')
        results = _write(results, arguments.output, arguments.table)
    print(_summary(results, arguments.output))
    return SOME_SKIPPED if results.failed else 0


def _settings(arguments: argparse.Namespace) -> DetectorSettings:
    """Of the detector. Raises RecordingError for thresholds that were calibrated for other verdicts."""
    from densereward_ros.events import thresholds
    from densereward_ros.events.settings import DEFAULTS
    from densereward_ros.recordings.base import RecordingError

    if arguments.thresholds is None:
        return DEFAULTS
    try:
        found = thresholds.read(arguments.thresholds)
    except thresholds.ThresholdsError as error:
        raise RecordingError(str(error)) from None
    for name in ('model', *thresholds.SCORED_BY):
        calibrated, value = getattr(found, name), getattr(arguments, name)
        # A model's own name has its revision behind it, where that is not main.
        if calibrated != value and (name, calibrated) != ('model', f'{value}@{arguments.revision}'):
            raise RecordingError(
                f'{arguments.thresholds}: was calibrated with {name} {calibrated}, and {name} is {value}; '
                'allowed: the same')
    return found.applied_to(DEFAULTS)


def _asked(options: ModelOptions, windowing: Windowing) -> dict[str, Any]:
    """What decides which verdicts there are."""
    return {
        'model': options.model, 'revision': options.revision, **deciding_options(options),
        **asdict(windowing)}


def _whole(text: str) -> str:
    """A path from the root, so that a report finds it from elsewhere."""
    return text if text.startswith('tabletop:') and not Path(text).exists() else os.path.abspath(text)


def _score(
    episodes: list[Episode], folder: RunFolder, options: ModelOptions, windowing: Windowing,
    arguments: argparse.Namespace,
) -> None:
    """Score what the journals lack; a model is opened only if they lack anything."""
    from densereward_ros.cli.progress import Progress
    from densereward_ros.scoring.run import Scorer, is_scored

    waiting = [episode for episode in episodes if not is_scored(episode, folder.folder)]
    with Progress(episodes, waiting) as progress:
        if not waiting:
            return
        if arguments.ray or arguments.ray_address:
            from densereward_ros.scoring.cluster import score_on_ray

            ended = score_on_ray(
                waiting, folder.folder, folder.asked, options, windowing, arguments.ray_address, progress.say)
            with closing(ended):
                for episode, recorded in ended:
                    progress.ended(episode, recorded)
            return
        with Scorer(folder.folder, folder.asked, options, windowing, progress.say) as scorer:
            for episode in waiting:
                try:
                    recorded = scorer.score(episode, progress.at)
                except ModelError as error:
                    raise ModelError(
                        f'{error}; {folder.folder} keeps what was scored, and the same command goes on '
                        'from there') from error
                progress.ended(episode, recorded)


def _results(
    episodes: list[Episode], failed: list[tuple[str, str]], folder: RunFolder, settings: DetectorSettings,
    about: dict[str, Any],
) -> Results:
    from densereward_ros.scoring.collecting import collect
    from densereward_ros.scoring.journal import read_journal
    from densereward_ros.scoring.run_folder import journal_file

    recorded = ((episode, read_journal(journal_file(folder.folder, episode.name))) for episode in episodes)
    return collect(recorded, settings, about, failed)


def _write(results: Results, output: Path, table: str) -> Results:
    """Tables last: a folder with them has all the rest. A dataset that cannot be copied counts as failed."""
    from densereward_ros.recordings.base import RecordingError
    from densereward_ros.recordings.lerobot_layout import is_dataset
    from densereward_ros.recordings.names import path_name, unique_names
    from densereward_ros.results.folder import write_results
    from densereward_ros.results.lerobot import write_lerobot
    from densereward_ros.results.mcap import write_mcap

    datasets = [
        source for source in dict.fromkeys(episode.source for episode in results.episodes)
        if is_dataset(Path(source))]
    names = unique_names(path_name(Path(source).resolve().name) for source in datasets)
    failed = list(results.failed)
    try:
        write_mcap(results.episodes, output / 'mcap', results.run['model'], results.run['bounded'])
        for source, name in zip(datasets, names):
            scored = [episode for episode in results.episodes if episode.source == source]
            try:
                write_lerobot(source, scored, output / 'lerobot' / name)
            except RecordingError as error:
                failed.append((source, f'no copy with rewards: {error}'))
                print(f'skipped: {failed[-1][1]}', flush=True)
        results = replace(results, failed=tuple(failed))
        write_results(results, output, table)
    except OSError as error:
        raise RecordingError(
            f'{output}: cannot be written ({error.strerror or error}); all verdicts are kept, and the same '
            'command goes on from there') from None
    return results


def _summary(results: Results, output: Path) -> str:
    frames = [frame for episode in results.episodes for frame in episode.frames]
    malformed = sum(frame.reward is None for frame in frames)
    events = sum(len(episode.events) for episode in results.episodes)
    told = {
        'episodes': len(results.episodes), 'verdicts': len(frames) - malformed,
        'malformed replies': malformed, 'failure events': events, 'recordings skipped': len(results.failed)}
    shown = (f'{what}: {count}' for what, count in told.items() if count or what == 'failure events')
    return f'wrote {output} ({", ".join(shown)})'


def _batch(text: str) -> int:
    """A whole number from 1 to 256, as an argument."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= 256:
        raise argparse.ArgumentTypeError(f"'{text}' (a whole number from 1 to 256)")
    return value
