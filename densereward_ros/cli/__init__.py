"""The `densereward` command: one verb a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from densereward_ros import __version__
from densereward_ros.cli import (
    calibrate,
    compare,
    download,
    evaluate,
    evaluate_demo,
    evaluate_events,
    rank,
    report,
    score,
    train_demo,
)
from densereward_ros.events.conformal import CalibrationError
from densereward_ros.models.base import ModelError
from densereward_ros.recordings.base import RecordingError

_VERBS = (
    download, score, report, evaluate, rank, calibrate, compare, train_demo, evaluate_demo, evaluate_events)
_INTERRUPTED = 130  # what a shell reports for a command that Ctrl-C ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code: 0, 1 for an error told in one line, 130 for Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog='densereward', description='Dense rewards and failure events from robot camera images.'
    )
    parser.add_argument('--version', action='version', version=f'densereward {__version__}')
    subparsers = parser.add_subparsers(title='commands', metavar='COMMAND', required=True)
    for verb in _VERBS:
        verb.add_parser(subparsers)
    arguments = parser.parse_args(argv)
    try:
        return arguments.func(arguments) or 0
    except (ModelError, RecordingError, CalibrationError) as error:
        print(f'densereward: {error}', file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        print(
            f'densereward: {error.name} is not installed for {sys.executable}: '
            "install this package with its extras, as in pip install '.[model,tools]'",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print('densereward: interrupted', file=sys.stderr)
        return _INTERRUPTED
