"""The metrics of a run as a part of the page: those that its labels allow, and why the others are missing."""

from __future__ import annotations

import math
from typing import Sequence

from densereward_ros.evaluation.figures import Figure
from densereward_ros.report.markup import Markup, join, table, tag
from densereward_ros.report.numbers import NOTHING, reward_text


def metrics_section(figures: Sequence[Figure]) -> Markup:
    """A table of the figures that are defined, and below it the others, with the reasons."""
    known = [figure for figure in figures if not math.isnan(figure.value)]
    rows = [
        [join(figure.title, tag('span', figure.note, class_='task') if figure.note else None),
         reward_text(figure.value),
         NOTHING if math.isnan(figure.low) else f'{reward_text(figure.low)} to {reward_text(figure.high)}',
         figure.episodes, f'{100 * figure.malformed:.1f} %']
        for figure in known]
    missing = [
        tag('li', f'{figure.title}: {figure.why}') for figure in figures if math.isnan(figure.value)]
    origin = tag('code', 'densereward evaluate')
    told = tag('p', 'As ', origin, ' reckons them with its defaults.', class_='note')
    return join(
        table(['metric', 'value', '95 % interval', 'episodes', 'malformed'], rows,
              {'value', '95 % interval', 'episodes', 'malformed'}, class_='metrics') if rows else
        tag('p', 'No metric is defined: the episodes have no labels that one needs.', class_='note'),
        told if rows else None,
        tag('details', tag('summary', f'{len(missing)} metrics that are not defined here'
                           if len(missing) > 1 else '1 metric that is not defined here'),
            tag('ul', *missing), class_='rows') if missing else None)
