"""One picture of a run: frames at key moments, the reward curve and what happened, on one time axis."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Callable, Sequence

from densereward_ros.types import Reason

if TYPE_CHECKING:
    import numpy as np

WIDTH_IN, DPI = 8.3, 200  # 1660 pixels: sharp at twice the width of a README column
MAX_PICTURES = 7
STRIP_IN, CAPTION_IN, LINK_IN, FRAME_GAP_IN = 0.92, 0.16, 0.30, 0.05
GAP_S = 1.5  # a longer silence interrupts the curve of a node
JITTER_S = 0.15  # what is noted at the same moment differs by less

INK, MUTED, GRID, SHADE = '#1f2933', '#66727f', '#e3e8ed', '#f5f7f9'
CURVE, FAILURE, RECOVERY, SUCCESS = '#1d4ed8', '#c81e1e', '#b45309', '#15803d'


@dataclass(frozen=True)
class Reward:
    """One reward, at a time in seconds. The curve breaks where the task changes."""

    seconds: float
    value: float
    reason: Reason
    task: str = ''


@dataclass(frozen=True)
class Moment:
    """Something that happened at one time, in seconds."""

    seconds: float
    text: str


@dataclass(frozen=True)
class Span:
    """Something that lasted, from start to end in seconds."""

    start: float
    end: float
    text: str


@dataclass
class Timeline:
    """What the picture shows. All times are seconds from the start of the run, ascending.

    frames: (seconds, uint8 RGB image). truth: (seconds, true progress in [0, 1]), where it is known.
    gap: a longer silence, in seconds, interrupts a curve.
    """

    title: str
    duration: float
    subtitle: str = ''
    frames: list[tuple[float, np.ndarray]] = field(default_factory=list)
    rewards: list[Reward] = field(default_factory=list)
    truth: list[tuple[float, float]] = field(default_factory=list)
    tasks: list[Span] = field(default_factory=list)
    failures: list[Moment] = field(default_factory=list)
    recoveries: list[Span] = field(default_factory=list)
    successes: list[Moment] = field(default_factory=list)
    gap: float = GAP_S


def draw_timeline(timeline: Timeline, file: str | Path | BinaryIO) -> None:
    """Write the picture as a PNG of 1660 pixels' width. Raises OSError when it cannot be written."""
    with warnings.catch_warnings():
        # A task in a script that the font lacks: the boxes it draws say enough.
        warnings.filterwarnings('ignore', message='Glyph')
        # Stronger compression makes the file a tenth smaller and takes three times as long.
        _figure(timeline).savefig(file, dpi=DPI, format='png', pil_kwargs={'compress_level': 3})


def _figure(timeline: Timeline):
    # pyplot would keep the figure alive and ask for a display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    chosen = choose_frames(timeline)
    lanes = [lane for lane in _lanes(timeline) if lane[1]]
    heights = {
        'top': 0.62,
        'strip': STRIP_IN + LINK_IN if chosen else 0.0,
        'tasks': 0.34 if timeline.tasks else 0.08,
        'curve': 1.75,
        'lanes': 0.08 + 0.25 * len(lanes),
        'bottom': 0.46,
    }
    height = sum(heights.values())
    figure = Figure(figsize=(WIDTH_IN, height), dpi=DPI, facecolor='white')
    FigureCanvasAgg(figure)
    left, right = 0.085, 0.985

    def axes(part: str):
        names = list(heights)
        bottom = sum(heights[name] for name in names[names.index(part) + 1:])
        return figure.add_axes((left, bottom / height, right - left, heights[part] / height))

    _title(figure, timeline, left, right, height)
    curve = axes('curve')
    _curve(curve, timeline)
    figure.legend(
        *curve.get_legend_handles_labels(), loc='center right', bbox_to_anchor=(right, 0.14 / height),
        ncols=3, frameon=False, fontsize=6.8, labelcolor=INK, borderpad=0, borderaxespad=0, handlelength=1.6,
        columnspacing=1.2)
    if timeline.tasks:
        _tasks(axes('tasks'), curve, timeline)
    _draw_lanes(axes('lanes'), timeline, lanes)
    if chosen:
        _strip(axes('strip'), timeline, chosen)
    return figure


def choose_frames(timeline: Timeline, most: int = MAX_PICTURES) -> list[int]:
    """Which frames tell the story: those at failures and successes first, then those in the widest gaps.

    Returns ascending indices into timeline.frames.
    """
    times = [seconds for seconds, _ in timeline.frames]
    if not times:
        return []
    apart = timeline.duration / (2 * most)
    chosen: list[int] = []

    def offer(seconds: float) -> None:
        index = min(range(len(times)), key=lambda i: abs(times[i] - seconds))
        if len(chosen) < most and all(abs(times[index] - times[other]) >= apart for other in chosen):
            chosen.append(index)

    for moment in (*timeline.failures, *timeline.successes):
        offer(moment.seconds)
    while len(chosen) < min(most, len(times)):
        edges = sorted([times[0] - apart, *(times[i] for i in chosen), times[-1] + apart])
        start, end = max(zip(edges, edges[1:]), key=lambda gap: gap[1] - gap[0])
        before = len(chosen)
        offer((start + end) / 2)
        if len(chosen) == before:
            break
    return sorted(chosen)


def _title(figure, timeline: Timeline, left: float, right: float, height: float) -> None:
    figure.text(left, 1 - 0.27 / height, timeline.title, size=11.5, weight='bold', color=INK, va='center',
                parse_math=False)
    figure.text(left, 1 - 0.46 / height, timeline.subtitle, size=7.5, color=MUTED, va='center',
                parse_math=False)


def _strip(axes, timeline: Timeline, chosen: list[int]) -> None:
    """The frames side by side, each joined to its moment on the time axis. The axes count inches."""
    width, height = (axes.get_window_extent().width / DPI, axes.get_window_extent().height / DPI)
    axes.set_axis_off()
    cell = (width - FRAME_GAP_IN * (MAX_PICTURES - 1)) / MAX_PICTURES
    used = cell * len(chosen) + FRAME_GAP_IN * (len(chosen) - 1)
    room = STRIP_IN - CAPTION_IN
    for slot, index in enumerate(chosen):
        seconds, image = timeline.frames[index]
        colour, words = _caption(timeline, seconds)
        middle = (width - used) / 2 + slot * (cell + FRAME_GAP_IN) + cell / 2
        scale = min(cell / image.shape[1], room / image.shape[0])
        half, high = scale * image.shape[1] / 2, scale * image.shape[0]
        bottom = height - room
        extent = (middle - half, middle + half, bottom, bottom + high)
        axes.imshow(image, interpolation='lanczos', extent=extent, zorder=2)
        axes.plot([extent[0], extent[1], extent[1], extent[0], extent[0]],
                  [bottom, bottom, bottom + high, bottom + high, bottom], color=colour or GRID,
                  linewidth=1.4 if colour else 0.8, solid_joinstyle='miter', zorder=3, clip_on=False)
        axes.text(middle, bottom - CAPTION_IN / 2 - 0.01, words, size=6.6, color=colour or MUTED,
                  weight='bold' if colour else 'normal', ha='center', va='center', parse_math=False)
        foot = width * seconds / timeline.duration
        axes.plot([middle, middle, foot, foot], [LINK_IN, 0.75 * LINK_IN, 0.15 * LINK_IN, -0.03],
                  color=colour or '#b8c2cc', linewidth=0.8, solid_joinstyle='round', clip_on=False)
    axes.set(xlim=(0, width), ylim=(0, height), aspect='auto')


def _caption(timeline: Timeline, seconds: float) -> tuple[str | None, str]:
    """The colour (None for an ordinary moment) and the words under a frame."""
    for moments, colour in ((timeline.failures, FAILURE), (timeline.successes, SUCCESS)):
        near = [moment for moment in moments if abs(moment.seconds - seconds) < 0.3]
        if near:
            return colour, f'{seconds:.1f} s  {near[0].text}'
    return None, f'{seconds:.1f} s'


def _curve(axes, timeline: Timeline) -> None:
    values = [reward.value for reward in timeline.rewards] or [0.0]
    low, high = (0.0, 1.0) if min(values) >= 0 and max(values) <= 1 else (min(values), max(values))
    margin = 0.04 * (high - low or 1.0)
    axes.set_xlim(0, timeline.duration)
    axes.set_ylim(low - margin, high + margin)
    for index, task in enumerate(timeline.tasks):
        axes.axvspan(task.start, task.end, color=SHADE if index % 2 == 0 else 'white', linewidth=0, zorder=0)
    axes.grid(axis='y', color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for span in timeline.recoveries:
        axes.axvspan(span.start, span.end, color=RECOVERY, alpha=0.10, linewidth=0, zorder=1)
    for moment in timeline.failures:
        axes.axvline(moment.seconds, color=FAILURE, linewidth=0.9, alpha=0.75, zorder=2)
    for moment in timeline.successes:
        axes.axvline(moment.seconds, color=SUCCESS, linewidth=0.9, alpha=0.75, zorder=2)
    if timeline.truth:
        starts = [task.start for task in timeline.tasks]
        line = _broken(timeline.truth, timeline.gap, lambda i: any(
            timeline.truth[i - 1][0] - JITTER_S < start < timeline.truth[i][0] + JITTER_S
            for start in starts))
        axes.plot(*line, color='#8b97a3', linewidth=1.0, linestyle=(0, (3, 1.6)), zorder=3,
                  label='true progress')
    points = [(reward.seconds, reward.value) for reward in timeline.rewards]
    line = _broken(points, timeline.gap, lambda i: timeline.rewards[i - 1].task != timeline.rewards[i].task)
    axes.plot(*line, color=CURVE, linewidth=1.6, solid_capstyle='round', zorder=4, label='reward')
    wrong = [reward for reward in timeline.rewards if reward.reason.is_failure]
    if wrong:
        axes.plot([reward.seconds for reward in wrong], [reward.value for reward in wrong],
                  linestyle='none', marker='o', markersize=3.4, markeredgewidth=0.5,
                  markeredgecolor='white', color=FAILURE, zorder=5, label='verdict names a failure')
    axes.tick_params(axis='y', labelsize=7, color=GRID, labelcolor=MUTED, length=0, pad=4)
    axes.tick_params(axis='x', length=0, labelbottom=False)
    axes.set_ylabel('reward', size=7.5, color=INK)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ('bottom', 'left'))
        spine.set(color=GRID, linewidth=0.8)


def _broken(
    points: Sequence[tuple[float, float]], gap: float, breaks_at: Callable[[int], bool]
) -> tuple[list[float], list[float]]:
    """x and y of a line that breaks before point i where `breaks_at` says so, and after a silence."""
    x: list[float] = []
    y: list[float] = []
    for i, (seconds, value) in enumerate(points):
        if i and (seconds - points[i - 1][0] > gap or breaks_at(i)):
            x.append(seconds)
            y.append(float('nan'))
        x.append(seconds)
        y.append(value)
    return x, y


def _tasks(axes, curve, timeline: Timeline) -> None:
    """The task titles over their stretch of the curve, in two lines where one is too narrow."""
    axes.set_axis_off()
    axes.set_xlim(curve.get_xlim())
    axes.set_ylim(0, 1)
    for index, task in enumerate(timeline.tasks):
        axes.axvspan(task.start, task.end, color=SHADE if index % 2 == 0 else 'white', linewidth=0)
        middle = (task.start + task.end) / 2
        label = axes.text(
            middle, 0.5, task.text, size=6.8, color=INK, ha='center', va='center', linespacing=1.15,
            parse_math=False)
        _fit(axes, label, task.text, task.end - task.start)


def _fit(axes, label, text: str, room: float) -> None:
    """Break or cut a label so that it is at most `room` seconds wide."""
    words = text.split()
    half = next((i for i in range(1, len(words)) if len(' '.join(words[:i])) >= len(text) / 2), len(words))
    for attempt in (text, ' '.join(words[:half]) + '\n' + ' '.join(words[half:])):
        label.set_text(attempt)
        if _width(axes, label) <= 0.96 * room:
            return
    while words and _width(axes, label) > 0.96 * room:
        words.pop()
        label.set_text(' '.join(words) + ' ...' if words else '')


def _width(axes, label) -> float:
    """Width of a text, in seconds of the time axis."""
    box = label.get_window_extent(axes.figure.canvas.get_renderer())
    return box.width / axes.get_window_extent().width * (axes.get_xlim()[1] - axes.get_xlim()[0])


def _lanes(timeline: Timeline) -> tuple[tuple[str, list[Span], str, str], ...]:
    """Name, entries, colour and marker of each row below the curve."""
    return (
        ('failures', [Span(m.seconds, m.seconds, m.text) for m in timeline.failures], FAILURE, 'v'),
        ('recoveries', timeline.recoveries, RECOVERY, 's'),
        ('tasks done', [Span(m.seconds, m.seconds, m.text) for m in timeline.successes], SUCCESS, '*'),
    )


def _draw_lanes(axes, timeline: Timeline, lanes) -> None:
    axes.set_xlim(0, timeline.duration)
    axes.set_ylim(len(lanes) - 0.4, -0.6 - 0.1)
    axes.set_yticks(range(len(lanes)), [lane[0] for lane in lanes])
    for tick, lane in zip(axes.get_yticklabels(), lanes):
        tick.set_color(lane[2])
    for row, (_, entries, colour, marker) in enumerate(lanes):
        labels = []
        for entry in entries:
            axes.plot([entry.start, entry.end], [row, row], color=colour, linewidth=4.5, alpha=0.35,
                      solid_capstyle='butt')
            axes.plot(entry.start, row, marker=marker, color=colour, markersize=5 if marker != '*' else 6.5,
                      markeredgewidth=0, clip_on=False)
            labels.append(axes.text(entry.start, row, entry.text, size=6.8, color=colour,
                                    va='center_baseline', parse_math=False))
        widths = [_width(axes, label) for label in labels]
        for label, start in zip(labels, place_labels(entries, widths, timeline.duration)):
            label.set_visible(start is not None)
            label.set_x(start or 0.0)
    axes.tick_params(axis='y', labelsize=6.8, length=0, pad=4)
    axes.tick_params(axis='x', labelsize=7, labelcolor=MUTED, color=GRID, length=3)
    axes.set_xlabel('seconds', size=7.5, color=INK, labelpad=2)
    for name, spine in axes.spines.items():
        spine.set_visible(name == 'bottom')
        spine.set(color=GRID, linewidth=0.8)


def place_labels(entries: Sequence[Span], widths: Sequence[float], duration: float) -> list[float | None]:
    """Where the label of each entry of a row starts: after the entry, or before it at the picture's edge.

    All in seconds. None for a label that would run into its neighbour's, or over its neighbour.
    """
    pad = 0.011 * duration
    starts: list[float | None] = []
    free_from = 0.0
    for entry, width, following in zip(entries, widths, [*entries[1:], None]):
        start = entry.end + pad
        if start + width > (duration if following is None else min(duration, following.start)):
            start = entry.start - pad - width
        fits = start >= free_from
        starts.append(start if fits else None)
        free_from = max(free_from, entry.end + pad, start + width + pad if fits else 0.0)
    return starts
