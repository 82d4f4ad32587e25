"""What docs/evaluating.md says is so."""

from __future__ import annotations

import re

import pytest

from densereward_ros.evaluation.metrics import METRICS
from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.recordings.labels import read_labels
from densereward_ros.types import Reason


@pytest.fixture
def page(repository) -> str:
    """Its text."""
    return (repository / 'docs' / 'evaluating.md').read_text()


def test_the_label_file_on_the_page_is_read(page, tmp_path):
    """Every form of label in it, as the page explains it."""
    source, = re.findall(r'```yaml\n(.*?)```', page, re.DOTALL)
    (tmp_path / 'episodes.yaml').write_text(source)
    recordings = read_labels(tmp_path)
    assert [recording.labels for recording in recordings] == [
        Labels(True),
        Labels(False, (LabelledFailure(3.5),)),
        Labels(
            True, (LabelledFailure(3.5, Reason.MISS), LabelledFailure(8.0)),
            ((0.0, 0.0), (3.4, 0.5), (4.1, 0.3), (12.0, 1.0))),
        Labels()]
    assert [recording.task for recording in recordings] == [
        'stack the cup', 'stack the cup', 'open the drawer', 'stack the cup']


def test_the_example_shows_every_metric(page):
    """A row each, in their order, one cell for each of the three models."""
    rows = [line for line in page.splitlines() if line.count('|') == 5]
    shown = [line.split('|')[1].strip() for line in rows]
    titles = [metric.title for metric in METRICS]
    assert [title for title in shown if title in titles] == titles
