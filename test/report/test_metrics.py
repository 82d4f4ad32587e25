"""The metrics on the page: numbers where there are some, and reasons where there are none."""

from __future__ import annotations

import math
import re
from html import unescape
from types import SimpleNamespace

from densereward_ros.report.metrics import metrics_section


def figure(title, value, low=math.nan, high=math.nan, episodes=0, malformed=math.nan, why='', note=''):
    """What an evaluation says of one metric."""
    return SimpleNamespace(
        title=title, value=value, low=low, high=high, episodes=episodes, malformed=malformed, why=why,
        note=note)


def text(markup: str) -> str:
    """What can be read of it."""
    return ' '.join(unescape(re.sub('<[^>]*>', ' ', markup)).split())


def test_defined_and_undefined_metrics():
    """A table of the first, with their intervals and notes; the others apart, with the reasons."""
    shown = text(metrics_section([
        figure('VOC', 0.98765, 0.9, 1.0, 12, 0.0125),
        figure('recall', 0.5, episodes=1, malformed=0.0, note='<n>'),
        figure('MAE', math.nan, why='no episode has labelled progress')]))
    assert 'VOC 0.988 0.900 to 1.000 12 1.2 %' in shown
    assert 'recall <n> 0.500 – 1 0.0 %' in shown
    assert shown.endswith('1 metric that is not defined here MAE: no episode has labelled progress')
    assert 'nan' not in shown


def test_without_labels():
    """One line, and the reasons below it."""
    shown = text(metrics_section([figure(name, math.nan, why='no label') for name in ('VOC', 'MAE')]))
    assert shown == ('No metric is defined: the episodes have no labels that one needs. '
                     '2 metrics that are not defined here VOC: no label MAE: no label')
