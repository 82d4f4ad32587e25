"""How the rewards and the reasons of all episodes are spread."""

from __future__ import annotations

from collections import Counter

from densereward_ros.report.curves import drawing, value_range
from densereward_ros.report.markup import Markup, join, tag
from densereward_ros.report.numbers import marks, share_text
from densereward_ros.results.rows import Results
from densereward_ros.types import REASONS

BINS = 25


def distributions(results: Results, bounded: bool) -> list[Markup]:
    """The section with both, empty without a verdict."""
    frames = [frame for episode in results.episodes for frame in episode.frames]
    if not frames:
        return []
    panels = [_rewards(results, bounded), _reasons(frames)]
    return [tag('h2', 'Rewards and reasons'),
            tag('div', *(panel for panel in panels if panel is not None), class_='two')]


def _rewards(results: Results, bounded: bool) -> Markup | None:
    frames = [frame for episode in results.episodes for frame in episode.frames if frame.reward is not None]
    if not frames:
        return None
    low, high = value_range(results.episodes, bounded)
    counts = [Counter() for _ in range(BINS)]
    for frame in frames:
        counts[min(BINS - 1, int(BINS * (frame.reward - low) / (high - low)))][frame.reason.is_failure] += 1
    most = max(count.total() for count in counts)
    width = 1000 / BINS
    bars = []
    for i, count in enumerate(counts):
        top = 100.0
        for failure in (False, True):
            tall = 100 * count[failure] / most
            top -= tall
            if tall:
                bars.append(tag(
                    'rect', class_='f' if failure else None, x=f'{i * width + 2:.0f}', y=f'{top:.2f}',
                    width=f'{width - 4:.0f}', height=f'{tall:.2f}'))
    axis = [tag('span', text, class_='x', style=f'left:{100 * (value - low) / (high - low):.2f}%')
            for value, text in marks(low, high, 6)]
    middle = sorted(frame.reward for frame in frames)[len(frames) // 2]
    return tag(
        'figure', tag('h3', 'Rewards, in red those of verdicts that name a failure'
                      if any(frame.reason.is_failure for frame in frames) else 'Rewards'),
        tag('div', drawing(*bars), class_='histogram', role='img',
            aria_label=f'Histogram of {len(frames)} rewards; half of them are below {middle:.3g}.'),
        tag('div', *axis, class_='axis', aria_hidden='true'))


def _reasons(frames) -> Markup | None:
    words = Counter('malformed reply' if frame.reward is None else frame.reason.word for frame in frames)
    if set(words) == {'none'}:
        return None
    names = {reason.word: ('f' if reason.is_failure else None) for reason in REASONS}
    names |= {word: kind for word, kind in (('none', 'g'), ('malformed reply', 'm')) if words[word]}
    most = max(words.values())
    rows = [
        join(tag('dt', word),
             tag('dd', tag('span', class_=kind, style=f'width:{100 * words[word] / most:.1f}%')
                 if words[word] else None),
             tag('dd', f'{words[word]} ', tag('small', share_text(words[word], len(frames)), class_='muted'),
                 class_='n'))
        for word, kind in names.items()]
    return tag('div', tag('h3', 'Reasons'), tag('dl', *rows, class_='bars'))
