"""`densereward report`: a page, pictures and videos of what `densereward score` found."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Iterator

if TYPE_CHECKING:
    from densereward_ros.report.writing import Windows
    from densereward_ros.results.rows import Results, ScoredEpisode
    from densereward_ros.types import Window

FOLDER = 'report'
MOST_TOLD = 5  # episodes without pictures that are told in the terminal; the page tells them all


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        'report',
        help='make a page with pictures and videos of scored recordings',
        description='Write OUT/report: index.html, one page that needs nothing beside it and asks nothing of '
        'the network, and for each episode a picture and a video with the rewards and events in it. The '
        'recordings are opened again for their images; of one that is gone the page has the rewards alone.',
    )
    parser.add_argument('folder', type=Path, metavar='OUT', help='what `densereward score -o OUT` wrote')
    parser.add_argument(
        '--no-video', dest='video', action='store_false',
        help='make no videos, which take the most time: 20 to 40 ms a verdict')
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Read, write, print. Raises RecordingError, and ModuleNotFoundError before anything is written."""
    import matplotlib  # noqa: F401
    from tqdm import tqdm

    from densereward_ros.evaluation import TOLERANCE_S
    from densereward_ros.evaluation.figures import evaluate
    from densereward_ros.recordings.base import RecordingError
    from densereward_ros.report.page import in_full
    from densereward_ros.report.writing import write_report
    from densereward_ros.results.folder import read_results

    if arguments.video:
        import av  # noqa: F401
    results = read_results(arguments.folder)
    target = arguments.folder / FOLDER
    with tqdm(total=len(in_full(results.episodes)), unit='episode', disable=None) as bar:
        try:
            written = write_report(
                results, target, arguments.folder.resolve().name, _windows(results), arguments.video,
                evaluate(results, TOLERANCE_S).figures, lambda name: bar.update())
        except OSError as error:
            raise RecordingError(f'{target}: cannot be written ({error.strerror or error})') from None
    for name, why in written.missing[:MOST_TOLD]:
        print(f'{name}: no pictures: {why}')
    if len(written.missing) > MOST_TOLD:
        print(f'{len(written.missing) - MOST_TOLD} more episodes have no pictures')
    print(f'wrote {written.page}, {written.pictures} pictures and {written.videos} videos')
    return 0


def _windows(results: Results) -> Windows:
    """The windows that were scored, from the recordings that can be opened again."""
    from densereward_ros.cli.inputs import open_inputs
    from densereward_ros.recordings.base import RecordingError
    from densereward_ros.recordings.windows import windows_of

    why = {}
    try:
        options = results.run['options']
        interval, age = options['frame_interval'], options['max_frame_age']
        asked = results.run['inputs']
        there = [one for one in asked['inputs'] if one.startswith('tabletop:') or Path(one).exists()]
        episodes, failed = open_inputs(**{**asked, 'inputs': there})
        # A recording is named as it was given, and found from wherever the report is made.
        why = {Path(source).name: reason for source, reason in failed}
        otherwise = 'no such file or folder'
    except RecordingError as error:
        episodes, otherwise = [], str(error)
    except (KeyError, TypeError) as error:
        episodes, otherwise = [], f'run.json does not say how to open it again ({error!r})'
    opened = {episode.name: episode for episode in episodes}

    def windows(scored: ScoredEpisode) -> Iterator[Window]:
        if scored.name not in opened:
            raise RecordingError(why.get(Path(scored.source).name, f'{scored.source}: {otherwise}'))
        for one in windows_of(opened[scored.name], interval, age):
            yield one.window

    return windows
