"""The figures of the failure events as tables in Markdown, which the README quotes as they are."""

from __future__ import annotations

from densereward_ros.events.calibration import START
from densereward_ros.events.fusion import FUSIONS

_NAMES = {
    'before_calibration': 'detector, defaults',
    'after_calibration': 'detector, calibrated',
    'after_calibration_of_single_verdicts': 'detector of single verdicts, calibrated',
    'single_verdict_words': 'words of single verdicts',
    'reward_threshold': 'reward below {level:g}',
    'reward_drop': 'reward drop of {drop:g}',
}
_PROMISES = {
    'words': f'words, {START.confirmations} of {START.among}',
    'words_of_single_verdicts': 'words of single verdicts',
    'drop_without_words': 'reward drop, for a model without words',
    'words_and_drop': 'words and drop together',
}


def table(results: dict) -> str:
    """Every table of the figures, as Markdown."""
    lines = ['| rule | F1 (95% interval) | precision | recall | false alarms a successful episode '
             '| median delay, verdicts | median delay of those found | mean delay, misses count the rest |',
             '|---|---|---|---|---|---|---|---|']
    lines += [_row(name.format(**results[key]), results[key]) for key, name in _NAMES.items()]
    lines += ['', '| word | failures | precision, recall, F1: defaults | calibrated (95% interval of F1) |',
              '|---|---|---|---|']
    for word, entry in results['words'].items():
        before, after = entry['before_calibration'], entry['after_calibration']
        lines.append(
            f'| `{word}` | {entry["failures"]} | {_three(before)} | {_three(after)} ({_span(after, "f1")}) |')
    fusion = results['fusion']
    if fusion:
        lines += ['', '| fusion | F1 (95% interval) | precision | recall | false alarms a successful episode '
                  '| median delay, verdicts |', '|---|---|---|---|---|---|']
        lines += [_row(name, fusion[name], 5) for name in FUSIONS]
    promise = results['promise']
    lines += ['', f'| calibrated for {promise["promised"]:g} | episodes with an event | 95% interval |',
              '|---|---|---|']
    lines += [
        f'| {name} | {promise[key]["rate"]:.3f} | {" to ".join(map(_shown, promise[key]["interval"]))} |'
        for key, name in _PROMISES.items()]
    return '\n'.join(lines)


def _row(name: str, entry: dict, columns: int = 7) -> str:
    cells = [
        f'{_shown(entry["f1"])} ({_span(entry, "f1")})', _shown(entry['precision']), _shown(entry['recall']),
        _shown(entry['false_alarms_per_episode']), _shown(entry['median_delay_verdicts'], '{:g}'),
        _shown(entry['median_delay_of_found_s'], '{:.2f} s'),
        _shown(entry['mean_delay_with_misses_s'], '{:.2f} s')]
    return f'| {name} | ' + ' | '.join(cells[:columns]) + ' |'


def _three(entry: dict) -> str:
    return ', '.join(_shown(entry[name]) for name in ('precision', 'recall', 'f1'))


def _span(entry: dict, name: str) -> str:
    return ' to '.join(map(_shown, entry['intervals'][name]))


def _shown(value: float | None, form: str = '{:.3f}') -> str:
    return 'n/a' if value is None else form.format(value)
