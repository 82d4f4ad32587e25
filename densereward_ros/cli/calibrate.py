"""`densereward calibrate`: thresholds for a false-alarm rate that the user chooses."""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from densereward_ros.cli.model_options import add_model_arguments, model_options
from densereward_ros.events.calibration import START

if TYPE_CHECKING:
    from densereward_ros.models.base import ModelOptions
    from densereward_ros.recordings.labels import LabelledRecording


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        'calibrate',
        help='set the thresholds of failure events on your own recordings',
        description='Score successful episodes of your own robot, and set the thresholds so that at most the '
        'given share of successful episodes has a failure event (split conformal prediction). That needs '
        'ceil(1 / rate) - 1 successful episodes: 19 for 0.05, 99 for 0.01. They must be like those to come: '
        'the same robot, camera, tasks and model. Failures, where there are some, are not needed; they tell '
        'what the thresholds find, and how late. The reward node loads the file: thresholds:=FILE.',
    )
    parser.add_argument(
        'recordings', type=Path, metavar='RECORDINGS',
        help='a label file, or a folder with an episodes.yaml: a task, and a list of episodes, each with '
        'path (a video or a folder of images) and success (true or false); see docs/calibrating.md')
    parser.add_argument(
        '--false-alarms', type=float, default=0.05, metavar='RATE',
        help='share of successful episodes that may have an event (default: %(default)s)')
    parser.add_argument(
        '-o', '--output', type=Path, default=Path('thresholds.yaml'), metavar='FILE',
        help='where the thresholds go, and beside them a picture (default: %(default)s)')
    add_model_arguments(parser)
    parser.add_argument(
        '--confirmations', type=int, default=START.confirmations, metavar='N',
        help='as the parameter (default: %(default)s)')
    parser.add_argument(
        '--confirmation-window', type=int, default=START.confirmation_window, metavar='M',
        help='as the parameter; 3 lets one verdict flicker, and the floor keeps the false alarms all the '
        'same (default: %(default)s)')
    parser.add_argument(
        '--rules', nargs='+', choices=('words', 'drop'), default=None,
        help='what may give an event: words of the model, drops of the reward, or both, which share the '
        'rate (default: words, for a model that has them)')
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Score, calibrate, write, print. Raises CalibrationError, RecordingError and ModelError."""
    from densereward_ros.events import calibration, thresholds
    from densereward_ros.events.conformal import CalibrationError
    from densereward_ros.recordings.labels import read_labels

    options = model_options(arguments)
    labelled = read_labels(arguments.recordings)
    rules = tuple(dict.fromkeys(arguments.rules or ()))
    try:
        settings = replace(
            START, confirmations=arguments.confirmations,
            confirmation_window=arguments.confirmation_window)
    except ValueError as error:
        raise CalibrationError(str(error)) from None
    # What cannot be promised is said before an hour of scoring, not after it.
    calibration.check_promise(sum(map(_is_clean, labelled)), arguments.false_alarms, len(rules) or 1)
    _check_writable(arguments.output)
    episodes, model = _score(labelled, options, arguments.frame_interval)
    clean = [episode for episode, recording in zip(episodes, labelled) if _is_clean(recording)]
    failed = [episode for episode, recording in zip(episodes, labelled) if not _is_clean(recording)]
    rules = rules or calibration.rules_of(episodes)
    settings = calibration.calibrate(clean, arguments.false_alarms, settings, rules)
    thresholds.write(
        thresholds.Thresholds(
            false_alarms=arguments.false_alarms, episodes=len(clean), model=model, engine=arguments.engine,
            quantization=arguments.quantization, max_pixels=arguments.max_pixels,
            frame_interval=arguments.frame_interval, settings=settings),
        arguments.output)
    print(
        f'{len(clean)} successful episodes: at most {arguments.false_alarms:g} of those to come '
        'have an event')
    found = {'words': settings.probability_floors[0], 'drop': settings.reward_drop}
    for rule in rules:
        print(f'{rule}: {_MEANING[rule].format(settings=settings, threshold=found[rule])}')
    if failed:
        print(_told_of_failures(failed, settings))
    picture = arguments.output.with_suffix('.png')
    _draw(picture, {rule: found[rule] for rule in rules}, clean, failed, settings, arguments.false_alarms)
    print(f'wrote {arguments.output} and {picture}')
    return 0


def _is_clean(recording: LabelledRecording) -> bool:
    """Whether it succeeded and had no failure on the way. Raises RecordingError where nobody knows."""
    from densereward_ros.recordings.base import RecordingError

    if recording.labels.success is None:
        raise RecordingError(f'{recording.path}: success is not given; calibrating needs true or false')
    return recording.labels.success and not recording.labels.failures


def _check_writable(output: Path) -> None:
    from densereward_ros.events.calibration import CalibrationError

    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CalibrationError(f'{output}: cannot be written ({error.strerror})') from None
    if output.is_dir() or not os.access(output if output.exists() else output.parent, os.W_OK):
        raise CalibrationError(f'{output}: cannot be written (a file, or a place for one, is needed)')


_MEANING = {
    'words': '{settings.confirmations} of the last {settings.among} verdicts name the same failure, each '
    'with a probability of at least {threshold:g}',
    'drop': 'the reward falls by {threshold:g} or more within {settings.drop_window:g} s',
}


def _score(labelled, options: ModelOptions, frame_interval: float):
    """A JudgedEpisode for each recording, and the model's name."""
    from densereward_ros.events.calibration import JudgedEpisode
    from densereward_ros.models.opening import open_model
    from densereward_ros.models.prompt import clean_task
    from densereward_ros.recordings.base import RecordingError
    from densereward_ros.recordings.judging import judge
    from densereward_ros.recordings.opening import open_episodes
    from densereward_ros.recordings.windows import windows_of

    recordings = []
    for entry in labelled:
        try:
            task = clean_task(entry.task)
        except ValueError as error:
            raise RecordingError(f'{entry.path}: {error}') from None
        opened = open_episodes(entry.path, task, entry.rate)
        if len(opened) > 1:
            raise RecordingError(
                f'{entry.path}: holds {len(opened)} episodes, as of several cameras, and has one label; '
                'allowed is a recording of one')
        recordings.append((entry, *opened))
    model = open_model(options, lambda line: print(line, flush=True))
    episodes = []
    for number, (entry, episode) in enumerate(recordings, 1):
        seen = windows_of(episode, frame_interval)
        first = list(islice(seen, 1))
        verdicts, malformed = judge(model, (one.window for one in chain(first, seen)))
        if not verdicts:
            raise RecordingError(f'{entry.path}: too short for a verdict, which takes three frames '
                                 f'{frame_interval:g} s apart')
        failed_ns = None
        if entry.labels.failures:
            # A bag's stamps do not count from its first frame, as labels do.
            begun_ns = first[0].window.newest.stamp_ns - round(first[0].seconds * 1e9)
            failed_ns = begun_ns + round(entry.labels.failures[0].seconds * 1e9)
        episodes.append(JudgedEpisode(str(entry.path), verdicts, failed_ns))
        print(f'{number} of {len(recordings)}: {entry.path}: {len(verdicts)} verdicts'
              + (f', {malformed} malformed replies' if malformed else ''), flush=True)
    name = model.name
    model.close()
    return episodes, name


def _told_of_failures(failed, settings) -> str:
    """What the thresholds find of the failures, and how late, by frame stamps."""
    from densereward_ros.events.calibration import events
    from densereward_ros.metrics.detection import EARLY_S, delay_of_found, delay_with_misses, match

    found, delays, remaining = 0, [], []
    for episode in failed:
        at = [event.window.newest.stamp_ns / 1e9 for event in events(episode, settings)]
        if episode.failed_ns is None:
            found += bool(at)
            continue
        failure = episode.failed_ns / 1e9
        hit, = match([failure], at, EARLY_S, math.inf)
        found += hit is not None
        delays.append(None if hit is None else max(0.0, at[hit] - failure))
        remaining.append(max(0.0, episode.verdicts[-1][0].newest.stamp_ns / 1e9 - failure))
    line = f'failures: {found} of {len(failed)} have an event'
    if delays:
        line += (
            f'; median delay of those found {delay_of_found(delays):.2f} s; mean with a missed one counted '
            f'as the rest of its episode {delay_with_misses(delays, remaining):.2f} s')
    return line


def _draw(picture: Path, found: dict[str, float], clean, failed, settings, false_alarms: float) -> None:
    from densereward_ros.events.calibration import score
    from densereward_ros.report.calibration import draw_calibration

    panels = [
        (rule, threshold, [score(episode, rule, settings) for episode in clean],
         [score(episode, rule, settings) for episode in failed])
        for rule, threshold in found.items()]
    draw_calibration(panels, false_alarms / len(found), picture)
