"""The reward over time as a drawing that stretches with the page: lines in SVG, words in HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from densereward_ros.report.markup import Markup, join, tag
from densereward_ros.report.numbers import duration_text, marks, reward_text
from densereward_ros.results.rows import ScoredEpisode, ScoredFrame
from densereward_ros.types import Rule

MOST_POINTS = 300  # of one curve; more cannot be told apart on a page
WIDE, NARROW = 900, 300  # pixels: how wide the drawing is on a desk and on a telephone
LEAST_S = 1.0  # of the time axis
LARGEST = 1e300  # reward that has a place of its own on the axis: beyond, differences are infinite
LABEL = '▲'  # of a labelled failure; it is shown without its word where there is no room
LETTER = 6.6  # pixels, of a word beside a mark
Point = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """What the drawing shows: times in seconds, and values; each range is greater than 0."""

    start: float
    end: float
    low: float
    high: float

    def x(self, seconds: float) -> float:
        """Thousandths of the width."""
        return 1000 * (seconds - self.start) / (self.end - self.start)

    def y(self, value: float) -> float:
        """Percent of the height, from the top; a little is left free above and below."""
        return 4 + 92 * (self.high - min(max(value, self.low), self.high)) / (self.high - self.low)


def scale_of(episode: ScoredEpisode, bounded: bool) -> Scale:
    """Room for everything in an episode: from 0 to 1 where the rewards are bounded."""
    times = [0.0, *(frame.seconds for frame in episode.frames), *(event.seconds for event in episode.events),
             *(failure.seconds for failure in episode.labels.failures or ()),
             *(seconds for seconds, _ in episode.labels.progress or ())]
    start, end = min(times), max(times)
    low, high = value_range([episode], bounded)
    return Scale(start, max(end, start + LEAST_S), low, high)


def value_range(episodes: Sequence[ScoredEpisode], bounded: bool) -> tuple[float, float]:
    """From 0 to 1, or from the lowest to the highest reward where those are not bounded."""
    values = [frame.reward for episode in episodes for frame in episode.frames if frame.reward is not None]
    if bounded or not values:
        return 0.0, 1.0
    low, high = (min(max(value, -LARGEST), LARGEST) for value in (min(values), max(values)))
    size = max(1.0, abs(low), abs(high))
    room = 0.0 if high - low > 1e-9 * size else size / 2
    return low - room, high + room


def stretches(frames: Sequence[ScoredFrame]) -> list[list[ScoredFrame]]:
    """The verdicts between which a curve is unbroken: no malformed reply and no new segment among them."""
    found: list[list[ScoredFrame]] = []
    before = None
    for frame in frames:
        if frame.reward is not None:
            if before is None or before.reward is None or before.segment != frame.segment:
                found.append([])
            found[-1].append(frame)
        before = frame
    return found


def thin(points: Sequence[Point], most: int) -> list[Point]:
    """At most so many of the points, the highest and the lowest of each part of the curve among them."""
    if len(points) <= most:
        return list(points)
    parts = max(1, most // 2 - 1)
    kept = {0, len(points) - 1}
    for part in range(parts):
        among = range(part * len(points) // parts, (part + 1) * len(points) // parts)
        kept.add(min(among, key=lambda i: points[i][1]))
        kept.add(max(among, key=lambda i: points[i][1]))
    return [points[i] for i in sorted(kept)]


def drawing(*content: Markup | None, **attributes: str) -> Markup:
    """A drawing in thousandths of its width and percents of its height."""
    return tag('svg', *content, viewBox='0 0 1000 100', preserveAspectRatio='none', aria_hidden='true',
               **attributes)


def reward_chart(episode: ScoredEpisode, scale: Scale, bounded: bool) -> Markup:
    """The reward curve with its axes, labelled progress, events, labelled failures and malformed replies."""
    frames, labels = episode.frames, episode.labels
    runs = stretches(frames)
    drawn = [
        _path('grid', *(f'M0 {scale.y(value):.1f}H1000' for value, _ in marks(scale.low, scale.high, 6))),
        _ticks('seam', scale, _seams(frames)),
        _ticks('event', scale, [event.seconds for event in episode.events if event.rule is Rule.WORD]),
        _ticks('event drop', scale, [
            event.seconds for event in episode.events if event.rule is Rule.REWARD_DROP]),
        _path('truth', _line(_progress(labels.progress, scale))) if labels.progress else None,
        *_curves(runs, scale, MOST_POINTS),
        _ticks('malformed', scale, [frame.seconds for frame in frames if frame.reward is None], top=95),
        _path('wrong', *(
            f'M{x:.1f} {y:.1f}h0' for x, y in thin(
                [(scale.x(frame.seconds), scale.y(frame.reward)) for frame in frames
                 if frame.reward is not None and frame.reason.is_failure], MOST_POINTS))),
    ]
    y_axis = [tag('span', text, class_='y', style=f'top:{scale.y(value):.1f}%')
              for value, text in marks(scale.low, scale.high, 6)]
    times = marks(scale.start, scale.end, 9)
    x_axis = [tag('span', f'{text} s' if (at, text) == times[-1] else text, class_='x',
                  style=f'left:{scale.x(at) / 10:.2f}%') for at, text in times]
    known = [(failure.seconds, failure.reason.word if failure.reason else 'failure')
             for failure in (labels.failures or ())[:MOST_POINTS]]
    return tag(
        'figure',
        _flags('flags', scale, [
            (event.seconds, str(number), event_words(event))
            for number, event in enumerate(episode.events, 1)]),
        tag('div', drawing(*drawn), *y_axis, class_='plot', role='img', aria_label=told(episode)),
        _flags('flags known', scale, [(seconds, LABEL, word) for seconds, word in known]) if known else None,
        tag('div', *x_axis, class_='axis', aria_hidden='true'),
        _legend(episode, bounded),
        class_='chart')


def event_words(event) -> str:
    """What a mark says of an event: its word, and that the drop rule gave it where it did."""
    return event.reason.word if event.rule is Rule.WORD else f'{event.reason.word}, drop'


def told(episode: ScoredEpisode) -> str:
    """The curve in words, for who cannot see it."""
    values = [frame.reward for frame in episode.frames if frame.reward is not None]
    if not values:
        return 'No reward in this episode.'
    events = ', '.join(f'{event.reason.word} at {event.seconds:.1f} s' for event in episode.events[:20])
    return (
        f'Reward over {duration_text(episode.frames[-1].seconds)}: first {reward_text(values[0])}, '
        f'lowest {reward_text(min(values))}, highest {reward_text(max(values))}, '
        f'last {reward_text(values[-1])}. Failure events: {events or "none"}.')


def sparkline(episode: ScoredEpisode, low: float, high: float) -> Markup | None:
    """The curve alone, as small as a word, its values between those of all episodes; None without any."""
    runs = stretches(episode.frames)
    if not runs:
        return None
    own = scale_of(episode, True)
    scale = Scale(own.start, own.end, low, high)
    return drawing(
        _path('event', *(f'M{scale.x(event.seconds):.0f} 0V100' for event in episode.events[:20])),
        *_curves(runs, scale, 40, '.0f'), class_='spark')


def _curves(runs, scale: Scale, most: int, digits: str = '.1f') -> list[Markup | None]:
    """One line for each stretch, with its share of the points by its length; a lone verdict is a dot."""
    total = sum(len(run) for run in runs)
    if len(runs) > most:  # flickering replies: the longest stretches tell the most
        runs = sorted(sorted(runs, key=len)[-most:], key=lambda run: run[0].frame)
    places = [
        thin([(scale.x(frame.seconds), scale.y(frame.reward)) for frame in run],
             max(4, most * len(run) // total))
        for run in runs]
    return [
        _path('curve', *(_line(line, digits) for line in places if len(line) > 1)),
        _path('dot', *(f'M{x:.1f} {y:.1f}h0' for line in places if len(line) == 1 for x, y in line))]


def _line(points: Sequence[Point], digits: str = '.1f') -> str:
    (x, y), *rest = points
    return f'M{x:{digits}} {y:{digits}}L' + ' '.join(f'{x:{digits}} {y:{digits}}' for x, y in rest)


def _path(kind: str, *pieces: str) -> Markup | None:
    data = ''.join(pieces)
    return tag('path', class_=kind, d=data) if data else None


def _ticks(kind: str, scale: Scale, times: Sequence[float], top: int = 0) -> Markup | None:
    """Upright lines, from `top` to the foot."""
    places = thin([(scale.x(seconds), 0.0) for seconds in times], MOST_POINTS)
    return _path(kind, *(f'M{x:.1f} {top}V100' for x, _ in places))


def _progress(progress: Sequence[Point], scale: Scale) -> list[Point]:
    """Labelled progress goes from 0 to 1 whatever the rewards do, so it has the whole height."""
    return thin([(scale.x(seconds), 4 + 92 * (1 - value)) for seconds, value in progress], MOST_POINTS)


def _seams(frames: Sequence[ScoredFrame]) -> list[float]:
    """Where a new segment begins."""
    return [other.seconds for one, other in zip(frames, frames[1:]) if one.segment != other.segment]


def _flags(kind: str, scale: Scale, entries: list[tuple[float, str, str]]) -> Markup:
    """Marks with words above or below the plot, each as far as there is room for it.

    There are two measures of room, and the style sheet shows what fits the page that it is on.
    """
    entries = sorted(entries)
    places = [scale.x(seconds) / 1000 for seconds, _, _ in entries]
    texts = [(mark, word) for _, mark, word in entries]
    spans = [
        tag('span', tag('b', mark), tag('i', word), style=f'left:{100 * at:.2f}%',
            class_=f'flag{wide and f" {wide}-wide"}{narrow and f" {narrow}"}')
        for at, (mark, word), wide, narrow in zip(
            places, texts, fit_flags(places, texts, WIDE), fit_flags(places, texts, NARROW))
        if mark == LABEL or (wide, narrow) != ('no', 'no')]
    return tag('div', *spans, class_=kind, aria_hidden='true')


def fit_flags(places: Sequence[float], texts: Sequence[tuple[str, str]], width: float) -> list[str]:
    """How each mark with its word fits a row of so many pixels: places are ascending, from 0 to 1.

    '' with its word after it, 'back' with its word before it, 'short' without its word, 'no' not at all.
    """
    left = [at * width - 4 for at in places]
    short = [LETTER * len(mark) + 6 for mark, _ in texts]
    shown: list[int] = []
    for i in range(len(places)):
        if not shown or left[i] >= left[shown[-1]] + short[shown[-1]]:
            shown.append(i)
    found = ['no'] * len(places)
    free = -12.0
    for i, following in zip(shown, [*shown[1:], None]):
        long = short[i] + LETTER * len(texts[i][1]) + 8
        end = width + 12 if following is None else left[following]
        if left[i] + long <= end:
            found[i], free = '', left[i] + long
        elif left[i] + short[i] - long >= free:
            found[i], free = 'back', left[i] + short[i]
        else:
            found[i], free = 'short', left[i] + short[i]
    return found


def _legend(episode: ScoredEpisode, bounded: bool) -> Markup:
    shown = [('curve', 'reward')] if any(frame.reward is not None for frame in episode.frames) else []
    if any(frame.reward is not None and frame.reason.is_failure for frame in episode.frames):
        shown.append(('wrong', 'verdict names a failure'))
    if any(event.rule is Rule.WORD for event in episode.events):
        shown.append(('event', 'failure event, by word'))
    if any(event.rule is Rule.REWARD_DROP for event in episode.events):
        shown.append(('event drop', 'failure event, by reward drop'))
    if episode.labels.progress:
        scaled = '' if bounded else ', 0 to 1 over the height'
        shown.append(('truth', f'labelled progress{scaled}'))
    if episode.labels.failures:
        shown.append(('known', f'{LABEL} labelled failure'))
    if any(frame.reward is None for frame in episode.frames):
        shown.append(('malformed', 'malformed reply'))
    if _seams(episode.frames):
        shown.append(('seam', 'new segment'))
    return tag('ul', *(tag('li', _sample(kind), join(text)) for kind, text in shown), class_='legend')


def _sample(kind: str) -> Markup | None:
    if kind == 'known':
        return None
    across = kind in ('curve', 'truth')
    way = 'M0 50H1000' if across else 'M500 50h0' if kind == 'wrong' else 'M500 0V100'
    return drawing(_path(kind, way))
