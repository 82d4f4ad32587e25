"""The folder that scores are kept in: two tables, the episodes, and where the numbers come from."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.results.files import in_one_step
from densereward_ros.results.rows import Results, ScoredEpisode, ScoredEvent, ScoredFrame
from densereward_ros.types import REASON_OF_WORD, REASONS, Reason, Rule

if TYPE_CHECKING:
    import pyarrow

TABLES = ('parquet', 'csv')
_PROBABILITIES = tuple(f'p_{reason.word}' for reason in REASONS)
# pyarrow's names of their types; all but names and texts may be empty.
FRAME_COLUMNS = {
    'episode': 'string', 'camera': 'string', 'task': 'string', 'frame': 'int64', 'stamp_ns': 'int64',
    'seconds': 'double', 'segment': 'int64', 'reward': 'double', 'reason': 'string',
    **dict.fromkeys(_PROBABILITIES, 'double'), 'malformed': 'string', 'target': 'double'}
EVENT_COLUMNS = {
    'episode': 'string', 'camera': 'string', 'task': 'string', 'stamp_ns': 'int64', 'seconds': 'double',
    'reason': 'string', 'rule': 'string', 'reward': 'double', 'previous_reward': 'double',
    'probability': 'double', 'confirmations': 'int64'}


def write_results(results: Results, folder: Path, table: str = 'parquet') -> None:
    """Write frames.TABLE, events.TABLE, episodes.json and, last of all, run.json, each in one step.

    table: one of TABLES. A table of the other kind from an earlier run is removed. Raises OSError, with the
    files that were there before it still whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    frames = [_frame_row(episode, frame) for episode in results.episodes for frame in episode.frames]
    events = [_event_row(episode, event) for episode in results.episodes for event in episode.events]
    _write_table(folder / f'frames.{table}', FRAME_COLUMNS, frames)
    _write_table(folder / f'events.{table}', EVENT_COLUMNS, events)
    _write_json(folder / 'episodes.json', {
        'episodes': [_episode_entry(episode) for episode in results.episodes],
        'failed': [{'source': source, 'why': why} for source, why in results.failed]})
    _write_json(folder / 'run.json', results.run)
    for other in set(TABLES) - {table}:
        for name in ('frames', 'events'):
            (folder / f'{name}.{other}').unlink(missing_ok=True)


def read_results(folder: str | Path) -> Results:
    """Read what write_results wrote. Raises RecordingError."""
    folder = Path(folder)
    run, listed = _read_json(folder, 'run.json'), _read_json(folder, 'episodes.json')
    try:
        rows: dict[str, tuple[list[ScoredFrame], list[ScoredEvent]]] = {
            entry['name']: ([], []) for entry in listed['episodes']}
        for row in _read_table(folder, 'frames', FRAME_COLUMNS):
            rows[row['episode']][0].append(_frame(row))
        for row in _read_table(folder, 'events', EVENT_COLUMNS):
            rows[row['episode']][1].append(_event(row))
        episodes = tuple(
            ScoredEpisode(
                entry['name'], entry['source'], entry['camera'], entry['task'], _labels(entry['labels']),
                *map(tuple, rows[entry['name']]), entry['index'])
            for entry in listed['episodes'])
        failed = tuple((entry['source'], entry['why']) for entry in listed['failed'])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(
            f'{folder}: its files do not belong together ({type(error).__name__}: {error}); allowed is a '
            'folder as `densereward score` wrote it') from None
    return Results(episodes, run, failed)


def _frame_row(episode: ScoredEpisode, frame: ScoredFrame) -> dict[str, Any]:
    return {
        'episode': episode.name, 'camera': episode.camera, 'task': episode.task, 'frame': frame.frame,
        'stamp_ns': frame.stamp_ns, 'seconds': frame.seconds, 'segment': frame.segment,
        'reward': frame.reward, 'reason': frame.reason.word,
        **dict(zip(_PROBABILITIES, frame.reason_probabilities or [None] * len(REASONS))),
        'malformed': frame.malformed, 'target': frame.target}


def _frame(row: dict[str, Any]) -> ScoredFrame:
    probabilities = tuple(row[name] for name in _PROBABILITIES)
    return ScoredFrame(
        row['frame'], row['stamp_ns'], row['seconds'], row['segment'], row['reward'], _reason(row['reason']),
        None if None in probabilities else probabilities, row['malformed'], row['target'])


def _event_row(episode: ScoredEpisode, event: ScoredEvent) -> dict[str, Any]:
    return {
        **asdict(event), 'episode': episode.name, 'camera': episode.camera, 'task': episode.task,
        'reason': event.reason.word, 'rule': event.rule.name.lower()}


def _event(row: dict[str, Any]) -> ScoredEvent:
    own = {name: row[name] for name in EVENT_COLUMNS if name not in ('episode', 'camera', 'task')}
    return replace(
        ScoredEvent(**own), reason=_reason(row['reason']), rule=Rule[row['rule'].upper()])


def _episode_entry(episode: ScoredEpisode) -> dict[str, Any]:
    labels = episode.labels
    failures = None if labels.failures is None else [
        {'seconds': failure.seconds, 'reason': failure.reason.word} for failure in labels.failures]
    return {
        'name': episode.name, 'source': episode.source, 'camera': episode.camera, 'task': episode.task,
        'index': episode.index, 'frames': len(episode.frames), 'events': len(episode.events),
        'labels': {'success': labels.success, 'failures': failures, 'progress': labels.progress}}


def _labels(entry: dict[str, Any]) -> Labels:
    failures, progress = entry['failures'], entry['progress']
    return Labels(
        entry['success'],
        None if failures is None else tuple(
            LabelledFailure(failure['seconds'], _reason(failure['reason'])) for failure in failures),
        None if progress is None else tuple((seconds, value) for seconds, value in progress))


def _reason(word: str) -> Reason:
    return Reason.NONE if word == Reason.NONE.word else REASON_OF_WORD[word]


def _schema(columns: dict[str, str]) -> pyarrow.Schema:
    import pyarrow

    return pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()])


def _write_table(file: Path, columns: dict[str, str], rows: list[dict[str, Any]]) -> None:
    import pyarrow
    from pyarrow import csv, parquet

    table = pyarrow.Table.from_pylist(rows, _schema(columns))
    write = parquet.write_table if file.suffix == '.parquet' else csv.write_csv
    in_one_step(file, lambda part: write(table, part))


def _read_table(folder: Path, name: str, columns: dict[str, str]) -> list[dict[str, Any]]:
    import pyarrow
    from pyarrow import csv, parquet

    file = next((folder / f'{name}.{kind}' for kind in TABLES if (folder / f'{name}.{kind}').exists()), None)
    if file is None:
        raise RecordingError(f'{folder}: there is no {name}.parquet and no {name}.csv')
    try:
        if file.suffix == '.parquet':
            return parquet.read_table(file).cast(_schema(columns)).to_pylist()
        options = csv.ConvertOptions(
            column_types=_schema(columns), include_columns=list(columns), strings_can_be_null=False)
        parsing = csv.ParseOptions(newlines_in_values=True)
        return csv.read_csv(file, parse_options=parsing, convert_options=options).to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        why = ' '.join(str(error).split())[:200]
        raise RecordingError(f'{file}: not a table of scores ({why})') from None


def _write_json(file: Path, value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False) + '\n'
    in_one_step(file, lambda part: part.write_text(text, encoding='utf-8'))


def _read_json(folder: Path, name: str) -> Any:
    try:
        return json.loads((folder / name).read_text(encoding='utf-8'))
    except OSError as error:
        raise RecordingError(
            f'{folder}: {name} cannot be read ({error.strerror}); allowed is a folder that '
            '`densereward score` has finished') from None
    except ValueError as error:
        raise RecordingError(f'{folder / name}: not JSON ({error})') from None
