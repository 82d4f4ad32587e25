"""One episode of the report: film strip, reward curve, events and verdicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from urllib.parse import quote

from densereward_ros.report.curves import Scale, drawing, reward_chart, scale_of
from densereward_ros.report.film import Still
from densereward_ros.report.markup import Markup, join, table, tag
from densereward_ros.report.numbers import NOTHING, duration_text, reward_text, share_text
from densereward_ros.results.rows import ScoredEpisode, ScoredFrame
from densereward_ros.text import one_line
from densereward_ros.types import Reason, Rule

NEAR_S = 0.3  # a still this close to a moment shows it
MOST_EVENTS = 50  # told in words on the page; the rest is in the table of events
UNFOLDED_EVENTS = 8
RULES = {Rule.WORD: 'word', Rule.REWARD_DROP: 'reward drop'}


@dataclass(frozen=True)
class Pictures:
    """What there is to see of an episode.

    stills: of the film strip, in time order; missing: why there are none. png and video: files beside the
    page, '' without.
    """

    stills: tuple[Still, ...] = ()
    missing: str = ''
    png: str = ''
    video: str = ''


def episode_section(
    episode: ScoredEpisode, number: int, pictures: Pictures, bounded: bool, most_rows: int, unfolded: bool
) -> Markup:
    """Everything about one episode, folded away behind its name unless unfolded.

    number: its place in the list of episodes, for links. most_rows: of the table of verdicts.
    """
    scale = scale_of(episode, bounded)
    body = [
        _facts(episode),
        tag('p', f'No pictures: {one_line(pictures.missing, 300)}', class_='note')
        if pictures.missing else None,
        tag('div',
            _strip(episode, pictures.stills, scale),
            reward_chart(episode, scale, bounded) if episode.frames else None,
            class_='story'),
        tag('p', 'No window of this episode could be scored: it takes three frames.', class_='note')
        if not episode.frames else None,
        _events(episode),
        _verdicts(episode, most_rows),
        tag('p', *(tag('a', text, href=quote(file)) for text, file in (
            ('Picture (PNG)', pictures.png), ('Video with overlay (MP4)', pictures.video)) if file),
            tag('a', 'All episodes', href='#episodes'), class_='more'),
    ]
    heading = tag(
        'summary', tag('b', episode.name), tag('span', episode.task, class_='task'),
        tag('span', _outcome(episode), class_='last'))
    # A browser that follows a link to what is folded away unfolds it: hence the body has the name.
    return tag('details', heading, tag('div', *body, class_='body', id=f'e{number}'), class_='episode',
               open=unfolded)


def label_text(episode: ScoredEpisode) -> Markup | None:
    """Whether the episode is labelled a success or a failure; None where it is not."""
    if episode.labels.success is None:
        return None
    return tag('span', 'success', class_='good') if episode.labels.success else tag(
        'span', 'failure', class_='bad')


def events_text(episode: ScoredEpisode) -> str:
    """The words of the events, each with how often it occurs; '' without events."""
    words = Counter(event.reason.word for event in episode.events)
    return ', '.join(word if count == 1 else f'{word} ×{count}' for word, count in words.items())


def _outcome(episode: ScoredEpisode) -> Markup:
    events = events_text(episode)
    return join(
        tag('span', events, class_='bad') if events else tag('span', 'no event', class_='muted'),
        tag('span', ' · last ', class_='muted'), tag('strong', reward_text(_last(episode))))


def _last(episode: ScoredEpisode) -> float | None:
    return next((frame.reward for frame in reversed(episode.frames) if frame.reward is not None), None)


def _facts(episode: ScoredEpisode) -> Markup:
    labels, frames = episode.labels, episode.frames
    malformed = sum(frame.reward is None for frame in frames)
    failures = None
    if labels.failures is not None:
        failures = ', '.join(
            f'{failure.reason.word if failure.reason else "failure"} at {failure.seconds:.1f} s'
            for failure in labels.failures[:MOST_EVENTS]) or 'none'
    facts = [
        ('source', episode.source),
        ('camera', episode.camera or None),
        ('length', duration_text(frames[-1].seconds) if frames else NOTHING),
        ('verdicts', str(len(frames) - malformed)),
        ('malformed', tag('span', f'{malformed} ({share_text(malformed, len(frames))})', class_='warn')
         if malformed else None),
        ('label', label_text(episode)),
        ('labelled failures', failures),
    ]
    return tag('dl', *(tag('div', tag('dt', name), tag('dd', value)) for name, value in facts
                       if value is not None), class_='facts')


def _strip(episode: ScoredEpisode, stills: tuple[Still, ...], scale: Scale) -> Markup | None:
    """The stills side by side, each joined to its moment on the time axis below where the page is wide."""
    if not stills:
        return None
    figures, links = [], []
    for slot, still in enumerate(stills):
        words = _moment(episode, still.seconds)
        said = f'{still.seconds:.1f} s' + (f' {words}' if words else '')
        figures.append(tag(
            'figure', tag('img', src=still.uri, width=still.width, height=still.height, decoding='async',
                          alt=f'Camera image at {said}'),
            tag('figcaption', said), class_='at' if words else None))
        foot, middle = scale.x(still.seconds), 1000 * (slot + 0.5) / len(stills)
        links.append(tag('path', class_='at' if words else None,
                         d=f'M{middle:.1f} 0V12L{foot:.1f} 40V100'))
    return join(
        tag('div', *figures, class_='strip', style=f'--count:{len(stills)}'),
        drawing(*links, class_='links'))


def _moment(episode: ScoredEpisode, seconds: float) -> str:
    """The word of the event at a time, '' where there is none."""
    near = [event for event in episode.events if abs(event.seconds - seconds) < NEAR_S]
    return min(near, key=lambda event: abs(event.seconds - seconds)).reason.word if near else ''


def _events(episode: ScoredEpisode) -> Markup | None:
    if not episode.events:
        return None
    rows = [
        [number, f'{event.seconds:.1f}', tag('span', event.reason.word, class_='bad'), RULES[event.rule],
         reward_text(event.reward), reward_text(event.previous_reward),
         NOTHING if event.probability is None else f'{event.probability:.2f}', event.confirmations]
        for number, event in enumerate(episode.events[:MOST_EVENTS], 1)]
    more = len(episode.events) - len(rows)
    shown = join(
        table(['', 'seconds', 'event', 'rule', 'reward', 'before', 'prob.', 'verdicts'], rows,
              {'', 'seconds', 'reward', 'before', 'prob.', 'verdicts'}, class_='events'),
        tag('p', f'{more} more are in the table of events.', class_='note') if more > 0 else None)
    if len(rows) <= UNFOLDED_EVENTS:
        return shown
    return tag('details', tag('summary', f'{len(episode.events)} events'), shown, class_='rows')


def _verdicts(episode: ScoredEpisode, most: int) -> Markup | None:
    """The table of verdicts, folded away; of a long one every n-th row and those that stand out."""
    frames = episode.frames
    if not frames:
        return None
    events = {event.stamp_ns: event.reason.word for event in episode.events}
    shown = _telling(frames, events, most)
    columns = [
        ('frame', True, lambda frame: frame.frame),
        ('seconds', True, lambda frame: f'{frame.seconds:.2f}'),
        ('segment', True, lambda frame: frame.segment),
        ('reward', True, lambda frame: reward_text(frame.reward)),
        ('reason', False, lambda frame: _said(frame, events.get(frame.stamp_ns, ''))),
        ('prob.', True, _probability),
        ('labelled', True, lambda frame: '' if frame.target is None else f'{frame.target:.3f}'),
    ]
    cells = [[cell(frame) for frame in shown] for _, _, cell in columns]
    kept = [
        i for i, (name, _, _) in enumerate(columns)
        if any(cell != '' for cell in cells[i]) and (name != 'segment' or len(set(cells[i])) > 1)]
    rows = [list(row) for row in zip(*(cells[i] for i in kept))]
    all_there = len(shown) == len(frames)
    return tag(
        'details',
        tag('summary', f'Verdicts, {len(shown)} row{"s" * (len(shown) != 1)}' if all_there else
            f'Verdicts, {len(shown)} of {len(frames)} rows (the table of frames has them all)'),
        table([columns[i][0] for i in kept], rows, {columns[i][0] for i in kept if columns[i][1]}),
        class_='rows verdicts')


def _said(frame: ScoredFrame, event: str) -> Markup | str:
    """The reason, what was wrong with a malformed reply, and the event that the verdict completed."""
    if frame.reward is None:
        return tag('span', f'malformed: {one_line(frame.malformed, 120)}', class_='warn')
    word = frame.reason.word if frame.reason else ''
    told = '' if not event else 'event' if event == word else f'event: {event}'
    words = ', '.join(filter(None, (word, told)))
    return tag('span', words, class_='bad') if frame.reason.is_failure or event else words


def _probability(frame: ScoredFrame) -> str:
    if frame.reason_probabilities is None or frame.reason is Reason.NONE:
        return ''
    return f'{frame.reason_probabilities[frame.reason - 1]:.2f}'


def _telling(frames, events: dict[int, str], most: int) -> list[ScoredFrame]:
    """At most so many: evenly spread, and then those at events and changes while there is room."""
    if len(frames) <= most:
        return list(frames)
    step = -(-2 * len(frames) // most)
    kept = set(range(0, len(frames), step))
    for i, frame in enumerate(frames):
        changed = i and (frame.reason, frame.segment) != (frames[i - 1].reason, frames[i - 1].segment)
        if (frame.stamp_ns in events or changed) and len(kept) < most:
            kept.add(i)
    return [frames[i] for i in sorted(kept)]
