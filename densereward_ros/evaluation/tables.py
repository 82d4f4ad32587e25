"""Evaluations as tables, several side by side: for a terminal, and as Markdown."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Sequence

from densereward_ros.evaluation import published
from densereward_ros.evaluation.figures import Evaluation, Figure
from densereward_ros.metrics.detection import MISSED, NO_FAILURE
from densereward_ros.types import FAILURES, Reason

_COUNTS = {
    'episodes': 'episodes', 'successful': '  labelled a success', 'failed': '  labelled a failure',
    'unlabelled': '  not labelled as either', 'marked': '  failures known', 'failures': '  failures in them',
    'progress': '  progress labelled', 'silent': '  too short for a reply', 'replies': 'replies',
    'unreadable': 'recordings not scored'}
_LEGEND = 'each cell: value, 95% bootstrap interval, episodes it is over, malformed replies among theirs'

_CONFUSION_LEGEND = (
    f"rows: failures by labelled word, '{NO_FAILURE}' for events of none; columns: the word of their event")


@dataclass(frozen=True)
class Table:
    """Rows of cells below a header, and lines to be read below them. A cell has parts that line up."""

    header: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], ...], ...]
    notes: tuple[str, ...] = field(default=())


def tables(
    evaluations: Sequence[Evaluation], names: Sequence[str], models: Sequence[str], others: bool = False
) -> list[Table]:
    """What there was, the figures, the confusion matrices; with `others` the published errors beside MAE.

    names: of the folders. models: what scored them.
    """
    result = [_counts(evaluations, names, models), _figures(evaluations, names)]
    result += [
        _confusion(name, evaluation.confusion)
        for name, evaluation in zip(names, evaluations) if _has_event(evaluation.confusion)]
    if others:
        result.append(_published(evaluations, names))
    return result


def text(table: Table) -> str:
    """With columns that line up."""
    columns = range(len(table.header))
    parts = [
        [max((len(row[column][part]) for row in table.rows if part < len(row[column])), default=0)
         for part in range(max((len(row[column]) for row in table.rows), default=0))]
        for column in columns]
    lines = [list(table.header)]
    for row in table.rows:
        lines.append([
            '  '.join(
                cell.ljust(width) if column == 0 else cell.rjust(width)
                for cell, width in zip(row[column], parts[column])).rstrip()
            for column in columns])
    widths = [max(len(line[column]) for line in lines) for column in columns]
    shown = ['   '.join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    return '\n'.join([*shown, *table.notes])


def markdown(table: Table) -> str:
    """As a table of GitHub's Markdown, the notes below it."""
    lines = [_piped(table.header), '|' + '---|' * len(table.header)]
    lines += [
        _piped([', '.join(part.strip() for part in cell if part.strip()) for cell in row])
        for row in table.rows]
    for note in table.notes:
        lines += ['', note.replace('|', r'\|')]
    return '\n'.join(lines)


def _piped(cells: Sequence[str]) -> str:
    return '| ' + ' | '.join(cell.replace('|', r'\|') for cell in cells) + ' |'


def _counts(evaluations: Sequence[Evaluation], names: Sequence[str], models: Sequence[str]) -> Table:
    rows = [(('model',), *((model,) for model in models))]
    rows += [
        ((title,), *((str(getattr(evaluation.counts, name)),) for evaluation in evaluations))
        for name, title in _COUNTS.items()]
    notes = []
    if any(evaluation.counts.cameras > 1 for evaluation in evaluations):
        notes.append('episodes are counted once for each camera; intervals are by episode, cameras together')
    return Table(('', *names), tuple(rows), tuple(notes))


def _figures(evaluations: Sequence[Evaluation], names: Sequence[str]) -> Table:
    marks: dict[str, str] = {}
    rows = []
    for line in zip(*(evaluation.figures for evaluation in evaluations)):
        cells = []
        for figure in line:
            told = [text for text in (figure.why, figure.note) if text]
            for text_ in told:
                marks.setdefault(text_, f'({len(marks) + 1})')
            cells.append(_cell(figure, ' '.join(marks[text] for text in told)))
        rows.append(((line[0].title,), *cells))
    return Table(
        ('metric', *names), tuple(rows), (_LEGEND, *(f'{mark} {text}' for text, mark in marks.items())))


def _cell(figure: Figure, marks: str) -> tuple[str, ...]:
    known = not math.isnan(figure.low)
    return (
        _number(figure.value), f'{_number(figure.low)} to {_number(figure.high)}' if known else '',
        str(figure.episodes), f'{100 * figure.malformed:.1f} %' if figure.episodes else '', marks)


def _number(value: float) -> str:
    return 'n/a' if math.isnan(value) else f'{value:.3f}'


def _confusion(name: str, counts: dict[str, dict[str, int]]) -> Table:
    words = [reason.word for reason in FAILURES]
    told = [*words, MISSED]
    rows = [
        ((_word(label),), *((str(counts[label].get(word, 0)),) for word in told))
        for label in [*words, Reason.NONE.word, NO_FAILURE] if label in counts]
    return Table((name, *told), tuple(rows), (_CONFUSION_LEGEND,))


def _has_event(counts: dict[str, dict[str, int]]) -> bool:
    """Where there is none, the matrix says nothing that the recall does not."""
    return any(set(row) - {MISSED} for row in counts.values())


def _word(label: str) -> str:
    return 'failure without a word' if label == Reason.NONE.word else label


def _published(evaluations: Sequence[Evaluation], names: Sequence[str]) -> Table:
    rows = [
        ((f'{model} (published, other data)',), *((f'{error:.3f}',) for error in errors))
        for model, errors in published.MAE.items()]
    for name, evaluation in zip(names, evaluations):
        mae = next(figure for figure in evaluation.figures if figure.key == 'mae')
        rows.append(((f'{name} (here)',), (_number(mae.value),), *(('',),) * (len(published.DATA) - 1)))
    return Table(
        ('MAE', *published.DATA), tuple(rows),
        (f'published by {published.SOURCE}, measured on other data: not comparable with what was measured '
         'here',))
