"""A picture of a calibration: how many episodes each threshold would alarm, and where it was set."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

from densereward_ros.report.timeline import CURVE, DPI, FAILURE, GRID, INK, MUTED, SUCCESS


def draw_calibration(
    rules: Sequence[tuple[str, float, Sequence[float], Sequence[float]]], share: float, file: Path
) -> None:
    """Write a PNG with one panel for each rule. Raises OSError when it cannot be written.

    rules: name, threshold, scores of the successful episodes, and those of the failures, if any.
    share: of successful episodes that may alarm by one rule.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 2.6 * len(rules)), dpi=DPI, facecolor='white', layout='constrained')
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(rules), squeeze=False)[:, 0]
    for axes, (name, threshold, clean, failed) in zip(panels, rules):
        for scores, colour, label in (
                (clean, SUCCESS, f'{len(clean)} successful'), (failed, FAILURE, f'{len(failed)} failures')):
            if scores:
                ordered = sorted(scores)
                left = [1 - index / len(ordered) for index in range(len(ordered) + 1)]
                axes.step([0.0, *ordered], left, where='post', color=colour, linewidth=1.5, label=label)
        axes.axvline(threshold, color=CURVE, linewidth=1.2, label=f'threshold {threshold:g}')
        axes.axhline(share, color=MUTED, linewidth=0.8, linestyle=(0, (3, 2)), label=f'{share:g} promised')
        axes.set_xlim(0, max(1.0, 1.02 * threshold))
        axes.set_ylim(0, 1.02)
        axes.set_title(name, size=8.5, color=INK, loc='left')
        axes.set_xlabel('threshold', size=7.5, color=INK)
        axes.set_ylabel('episodes with an event', size=7.5, color=INK)
        axes.tick_params(labelsize=7, labelcolor=MUTED, color=GRID)
        axes.grid(color=GRID, linewidth=0.6)
        axes.legend(fontsize=6.8, frameon=False, labelcolor=INK)
        for spine in axes.spines.values():
            spine.set_color(GRID)
    figure.savefig(file, format='png')
