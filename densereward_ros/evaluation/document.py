"""Evaluations as JSON, with everything that it takes to get the same numbers again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Sequence

from densereward_ros import __version__
from densereward_ros.evaluation.figures import LEVEL, SAMPLES, SEED, Evaluation, Figure
from densereward_ros.metrics.bootstrap import rounded
from densereward_ros.metrics.detection import EARLY_S


def document(
    evaluations: Sequence[Evaluation], names: Sequence[str], runs: Sequence[dict[str, Any]], tolerance: float
) -> dict[str, Any]:
    """Ready for JSON; what is undefined is null, and says why.

    names: of the folders. runs: what their run.json holds.
    """
    return {
        'package_version': __version__,
        'tolerance_s': {'early': min(EARLY_S, tolerance), 'late': tolerance},
        'interval': {'method': 'percentile bootstrap by episode', 'level': LEVEL, 'samples': SAMPLES,
                     'seed': SEED},
        'results': [
            {'folder': name, 'run': run, 'counts': asdict(evaluation.counts),
             'figures': {figure.key: _figure(figure) for figure in evaluation.figures},
             'confusion': evaluation.confusion}
            for name, run, evaluation in zip(names, runs, evaluations, strict=True)],
    }


def _figure(figure: Figure) -> dict[str, Any]:
    interval = [rounded(figure.low), rounded(figure.high)]
    return {
        'value': rounded(figure.value), 'interval': None if None in interval else interval,
        'episodes': figure.episodes, 'malformed': rounded(figure.malformed),
        **{name: told for name, told in (('why', figure.why), ('note', figure.note)) if told}}
