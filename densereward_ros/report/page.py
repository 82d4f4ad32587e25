"""The whole report as one page: no scripts, no files beside it that it needs, no requests."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from densereward_ros.evaluation.figures import Figure
from densereward_ros.report.curves import sparkline, value_range
from densereward_ros.report.episode import Pictures, episode_section, events_text, label_text
from densereward_ros.report.markup import Markup, join, table, tag
from densereward_ros.report.metrics import metrics_section
from densereward_ros.report.numbers import NOTHING, duration_text, reward_text, share_text
from densereward_ros.report.style import STYLE
from densereward_ros.report.summary import distributions
from densereward_ros.results.rows import Results, ScoredEpisode
from densereward_ros.text import one_line

MOST_EPISODES = 500  # in full; of a longer run those with something to tell, and the list of all
MOST_ROWS = 20_000  # of all tables of verdicts together
MOST_VALUES = 30  # of one entry of run.json
UNFOLDED = 6  # so many episodes are open at first; more would be a wall
# Nothing may be fetched, run or sent: not even a recording's name could make it so.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(
    title: str, results: Results, pictures: Callable[[ScoredEpisode], Pictures],
    figures: Sequence[Figure] = (),
) -> str:
    """The HTML of the page.

    pictures: asked once for each episode that is shown in full, in order. figures: of the whole run.
    """
    bounded = bounded_of(results)
    full = in_full(results.episodes)
    rows = MOST_ROWS // max(1, len(full))
    sections = [
        episode_section(results.episodes[i], i + 1, pictures(results.episodes[i]), bounded,
                        max(20, rows), len(full) <= UNFOLDED)
        for i in full]
    body = [
        tag('header', tag('h1', title), tag('p', _lead(results), class_='lead'), _tiles(results)),
        _failed(results),
        tag('h2', 'Episodes', id='episodes'), _list(results, set(full), bounded),
        *distributions(results, bounded),
        *([tag('h2', 'Metrics'), metrics_section(figures)] if figures else []),
        tag('h2', 'Episode by episode') if sections else None,
        tag('p', f'{len(full)} of {len(results.episodes)} episodes are shown in full: those with an event, a '
            'malformed reply or a label of failure first.', class_='note')
        if len(full) < len(results.episodes) else None,
        *sections,
        tag('h2', 'Where the numbers come from'), _provenance(results.run),
    ]
    head = [
        Markup('<meta charset="utf-8">'),
        tag('meta', http_equiv='Content-Security-Policy', content=POLICY),
        tag('meta', name='viewport', content='width=device-width, initial-scale=1'),
        tag('meta', name='color-scheme', content='light dark'),
        tag('meta', name='referrer', content='no-referrer'),
        tag('title', f'{title} · densereward'),
        tag('style', Markup(STYLE)),
    ]
    return f'<!DOCTYPE html>\n{tag("html", tag("head", *head), tag("body", tag("main", *body)), lang="en")}\n'


def bounded_of(results: Results) -> bool:
    """Whether rewards go from 0 to 1: what the run says, or what the rewards look like where it does not."""
    stated = results.run.get('bounded')
    if isinstance(stated, bool):
        return stated
    return all(0 <= frame.reward <= 1 for episode in results.episodes for frame in episode.frames
               if frame.reward is not None)


def in_full(episodes: Sequence[ScoredEpisode]) -> list[int]:
    """Which episodes are shown in full, ascending: all, or of too many those with something to tell first."""
    def dull(i: int) -> bool:
        episode = episodes[i]
        return not (episode.events or episode.labels.success is False
                    or any(frame.reward is None for frame in episode.frames))

    return sorted(sorted(range(len(episodes)), key=dull)[:MOST_EPISODES])


def _lead(results: Results) -> Markup:
    tasks = {episode.task for episode in results.episodes}
    model = results.run.get('model') or 'a model that the run does not name'
    told = [f'scored by {model}']
    if tasks:
        told.append(f'{len(tasks)} tasks' if len(tasks) > 1 else f'task: {one_line(tasks.pop(), 200)}')
    return join(' · '.join(told))


def _tiles(results: Results) -> Markup:
    frames = [frame for episode in results.episodes for frame in episode.frames]
    malformed = sum(frame.reward is None for frame in frames)
    events = sum(len(episode.events) for episode in results.episodes)
    struck = sum(bool(episode.events) for episode in results.episodes)
    labelled = [episode.labels.success for episode in results.episodes if episode.labels.success is not None]
    seconds = sum(episode.frames[-1].seconds for episode in results.episodes if episode.frames)
    tiles = [
        ('Episodes', len(results.episodes), duration_text(seconds) if frames else None),
        ('Verdicts', len(frames) - malformed, None),
        ('Failure events', events, f'in {struck} episode{"s" * (struck != 1)}' if events else None),
        ('Malformed replies', malformed, share_text(malformed, len(frames)) if frames else None),
    ]
    if labelled:
        tiles.append(('Labelled successes', sum(labelled), f'of {len(labelled)} labelled'))
    if results.failed:
        tiles.append(('Failed recordings', len(results.failed), None))
    return tag('dl', *(
        tag('div', tag('dt', name),
            tag('dd', f'{number:,}'.replace(',', '\u202f'), tag('small', small) if small else None))
        for name, number, small in tiles), class_='tiles')


def _failed(results: Results) -> Markup | None:
    if not results.failed:
        return None
    rows = [[tag('span', source), one_line(why, 500)] for source, why in results.failed]
    return join(tag('h2', 'Recordings that could not be scored'),
                table(['recording', 'why'], rows, class_='failed'))


def _list(results: Results, full: set[int], bounded: bool) -> Markup:
    if not results.episodes:
        return tag('p', 'No episode was scored.', class_='note')
    low, high = value_range(results.episodes, bounded)
    heads = ['', 'episode', 'reward', 'length', 'verdicts', 'mean', 'last', 'events', 'label']
    rows = []
    for i, episode in enumerate(results.episodes):
        rewards = [frame.reward for frame in episode.frames if frame.reward is not None]
        malformed = len(episode.frames) - len(rewards)
        name = tag('a', episode.name, href=f'#e{i + 1}') if i in full else tag('span', episode.name)
        rows.append([
            i + 1, join(
                name, tag('span', one_line(episode.task, 200), class_='task'),
                tag('span', events_text(episode), class_='bad narrow') if episode.events else None),
            sparkline(episode, low, high) if i in full else None,
            duration_text(episode.frames[-1].seconds) if episode.frames else NOTHING,
            join(len(rewards), tag('span', f' +{malformed}', class_='warn') if malformed else None),
            reward_text(sum(rewards) / len(rewards) if rewards else None),
            reward_text(rewards[-1] if rewards else None),
            tag('span', events_text(episode), class_='bad') if episode.events else None,
            label_text(episode) or NOTHING])
    return table(heads, rows, {'', 'length', 'verdicts', 'mean', 'last'}, class_='list')


def _provenance(run: dict[str, Any]) -> Markup:
    entries = [(name.replace('_', ' '), _value(value)) for name, value in run.items()]
    if not entries:
        return tag('p', 'The run does not say.', class_='note')
    return tag('dl', *(join(tag('dt', name), tag('dd', value)) for name, value in entries),
               class_='provenance')


def _value(value: object) -> Markup:
    if not isinstance(value, (dict, list, tuple)):
        return tag('code', _text(value))
    pairs = list(value.items()) if isinstance(value, dict) else [('', each) for each in value]
    shown = [
        tag('div', f'{name}: ' if name else None, tag('code', _text(each)))
        for name, each in pairs[:MOST_VALUES]]
    rest = tag('div', f'and {len(pairs) - len(shown)} more in run.json') if len(pairs) > len(shown) else None
    return join(*shown, rest) if pairs else join(NOTHING)


def _text(value: object) -> str:
    """As a person writes it."""
    if value is None or value == '' or value == []:
        return NOTHING
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    if isinstance(value, float):
        return f'{value:g}'
    if isinstance(value, (list, tuple)):
        return one_line(', '.join(map(_text, value)), 1000)
    return one_line(str(value), 300)
