"""Evaluations as text, as Markdown and as JSON."""

from __future__ import annotations

import json

import pytest

from densereward_ros import __version__
from densereward_ros.evaluation.document import document
from densereward_ros.evaluation.figures import evaluate
from densereward_ros.evaluation.tables import Table, markdown, tables, text
from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.results.rows import Results, ScoredEpisode, ScoredEvent, ScoredFrame
from densereward_ros.types import Reason, Rule


def scored(name, rewards, labels, events=(), camera=''):
    """One reply a second."""
    frames = tuple(ScoredFrame(n, 0, float(n), 0, reward) for n, reward in enumerate(rewards))
    told = tuple(ScoredEvent(0, at, Reason.FALL, Rule.WORD, 0.1, None, None, 2) for at in events)
    return ScoredEpisode(name, name, camera, 'stack', labels, frames, told)


EPISODES = (
    scored('a', [0.1, 0.2, 0.3], Labels(True)), scored('b', [0.1, 0.3, 0.2], Labels(True), (1.0,)),
    scored('c', [0.2, 0.1, None, 0.1], Labels(False, (LabelledFailure(1.0, Reason.MISS),))))


@pytest.fixture(scope='module')
def two():
    """A model with bounds and times, and one without."""
    return [
        evaluate(Results(EPISODES, run), 2.0)
        for run in ({'bounded': True, 'seconds_per_window': 0.1}, {'bounded': False})]


def test_cells_line_up_and_notes_are_numbered_once(two):
    """Two folders side by side: columns begin at one place, and one reason has one mark."""
    counts, figures, *_ = tables(two, ['one', 'other'], ['m', 'n (fast)'])
    lines = text(figures).splitlines()
    assert lines[0].split() == ['metric', 'one', 'other']
    at = lines[0].index('other')
    order = next(line for line in lines if line.startswith('value order'))
    assert order[at:].split() == ['0.750', '0.500', 'to', '1.000', '2', '0.0', '%']
    assert order[lines[0].index('one'):at].strip() == order[at:].strip()
    mae = next(line for line in lines if line.startswith('alignment, MAE'))
    assert mae.split()[2:] == ['n/a', '0', '(1)', 'n/a', '0', '(2)']
    assert sum('no frame with a reward has a labelled progress' in line for line in lines) == 1
    assert text(counts).splitlines()[1].split() == ['model', 'm', 'n', '(fast)']


def test_confusion_matrices_are_per_folder(two):
    """The miss was missed; the event of the second episode was of no failure."""
    _, _, first, second = tables(two, ['one', 'other'], ['m', 'n'])
    assert first.header == ('one', 'miss', 'collision', 'fall', 'smooth', 'failure', 'missed')
    assert first.rows == (
        (('miss',), ('0',), ('0',), ('0',), ('0',), ('0',), ('1',)),
        (('no failure',), ('0',), ('0',), ('1',), ('0',), ('0',), ('0',)))
    assert second.header[0] == 'other'


def test_without_an_event_there_is_no_matrix():
    """As of a model without words whose drops nobody asked for."""
    assert len(tables([evaluate(Results(EPISODES[2:], {}), 2.0)], ['x'], ['m'])) == 2


def test_published_errors_are_marked_as_such(two):
    """Only where they are asked for, and never as if they were measured here."""
    assert len(tables(two, ['one', 'other'], ['m', 'n'])) == 4
    shown = text(tables(two, ['one', 'other'], ['m', 'n'], others=True)[-1])
    assert 'DenseReward (published, other data)' in shown and '0.259' in shown
    assert 'measured on other data' in shown and 'one (here)' in shown


def test_markdown_is_a_table_whatever_the_names(two):
    """Every row has as many cells; a pipe in a name does not make one more."""
    shown = markdown(tables(two, ['a|b', 'c'], ['m', 'n'])[1])
    rows = [line for line in shown.splitlines() if line.startswith('|')]
    assert {line.replace(r'\|', '').count('|') for line in rows} == {4}
    assert r'a\|b' in rows[0]
    assert '| value order (VOC) | 0.750, 0.500 to 1.000, 2, 0.0 % |' in shown


def test_a_table_without_rows_is_its_header():
    """As of a run without an episode."""
    assert text(Table(('a', 'b'), ())) == 'a   b'
    assert markdown(Table(('a', 'b'), ())) == '| a | b |\n|---|---|'


def test_two_cameras_are_told():
    """Both are counted, which somebody who counts episodes must know."""
    cameras = (
        scored('a', [0.1, 0.2], Labels(True), camera='/left'),
        scored('b', [0.1, 0.2], Labels(True), camera='/right'))
    counts, *_ = tables([evaluate(Results(cameras, {}), 2.0)], ['x'], ['m'])
    assert 'once for each camera' in text(counts)


def test_json_has_everything_that_the_numbers_depend_on(two):
    """Null for what is undefined, with its reason; run.json as it was; tolerance, seed and version."""
    run = {'model': 'm', 'bounded': True}
    found = json.loads(json.dumps(document(two, ['one', 'other'], [run, {}], 2.0), allow_nan=False))
    assert found['package_version'] == __version__
    assert found['tolerance_s'] == {'early': 0.5, 'late': 2.0}
    assert found['interval']['seed'] == 0 and found['interval']['level'] == 0.95
    one, other = found['results']
    assert (one['folder'], one['run'], one['counts']['episodes']) == ('one', run, 3)
    assert one['figures']['value_order'] == {
        'value': 0.75, 'interval': [0.5, 1.0], 'episodes': 2, 'malformed': 0.0}
    assert other['figures']['mae']['value'] is None and other['figures']['mae']['interval'] is None
    assert other['figures']['mae']['why'] == 'the rewards of this model are not on the scale of progress'
    assert one['confusion'] == {'miss': {'missed': 1}, 'no failure': {'fall': 1}}
