"""`densereward download`: fetch a model before a robot needs it."""

from __future__ import annotations

import argparse

from densereward_ros.models.base import RELEASED_MODEL


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        'download',
        help='fetch a model from the Hugging Face hub',
        description='Fetch a model into the Hugging Face cache (HF_HOME), or bring it up to date. '
        'Files that are already there are not fetched again.',
    )
    parser.add_argument('model', nargs='?', default=RELEASED_MODEL, help='hub id (default: %(default)s)')
    parser.add_argument('--revision', default='main', help='branch, tag or commit (default: %(default)s)')
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Download, check what arrived, and print where it is. Raises ModelError."""
    from densereward_ros.models import checkpoint, download

    folder = download.download(arguments.model, arguments.revision, lambda line: print(line, flush=True))
    found = checkpoint.check(folder, arguments.model)
    print(f'{found.name} is ready: {found.parameters / 1e6:.0f} million parameters in {folder}')
    return 0
