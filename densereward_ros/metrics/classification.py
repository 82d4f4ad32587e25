"""How well yes or no is told, and which word was said for which: rates and the confusion matrix."""

from __future__ import annotations

from typing import Iterable, Sequence

from densereward_ros.metrics.means import share


def true_positive_rate(episodes: Sequence[tuple[bool, bool]]) -> float:
    """Of the episodes that failed, the share with an alarm; NaN without any. episodes: failed, alarmed."""
    return share((alarmed, 1) for failed, alarmed in episodes if failed)


def true_negative_rate(episodes: Sequence[tuple[bool, bool]]) -> float:
    """Of the episodes that did not fail, the share without an alarm; NaN without any."""
    return share((not alarmed, 1) for failed, alarmed in episodes if not failed)


def balanced_accuracy(episodes: Sequence[tuple[bool, bool]]) -> float:
    """The mean of both rates, 0.5 for whoever always or never alarms; NaN where one of them is undefined."""
    return (true_positive_rate(episodes) + true_negative_rate(episodes)) / 2


def confusion(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """The confusion matrix: how often each true word was told as which. pairs: true word, told word."""
    counts: dict[str, dict[str, int]] = {}
    for true, told in pairs:
        row = counts.setdefault(true, {})
        row[told] = row.get(told, 0) + 1
    return counts
