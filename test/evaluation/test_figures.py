"""Every metric on a few episodes whose figures can be worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from densereward_ros.evaluation.figures import evaluate
from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.results.rows import Results, ScoredEpisode, ScoredEvent, ScoredFrame
from densereward_ros.types import Reason, Rule

RUN = {'model': 'm', 'bounded': True, 'seconds_per_window': 0.1}


def episode(name, rewards, labels=None, events=(), targets=None, task='stack'):
    """One reply a second from second 2, None where it was malformed; events: (seconds, word)."""
    frames = tuple(
        ScoredFrame(number, 0, 2.0 + number, 0, reward, malformed='' if reward is not None else 'no reward',
                    target=None if targets is None else targets[number])
        for number, reward in enumerate(rewards))
    told = tuple(ScoredEvent(0, at, word, Rule.WORD, 0.1, None, None, 2) for at, word in events)
    return ScoredEpisode(name, name, '', task, labels or Labels(), frames, told)


def figures_of(*episodes, run=RUN, tolerance=2.0):
    """By key."""
    return {figure.key: figure for figure in evaluate(Results(episodes, run), tolerance).figures}


RISING = episode('rising', [0.1, 0.4, 0.9], Labels(True), targets=[0.0, 0.5, 1.0])
MIXED = episode('mixed', [0.2, None, 0.6, 0.4, 0.8], Labels(True, ()))
CONSTANT = episode('constant', [0.5, 0.5], Labels(True), events=[(3.0, Reason.FALL)])
SHORT = episode('short', [0.3], Labels(True))
FAILED = episode(
    'failed', [0.1, 0.3, 0.2, 0.2], Labels(False, (LabelledFailure(3.0, Reason.MISS), LabelledFailure(4.5))),
    events=[(3.5, Reason.MISS)], targets=[0.1, 0.2, 0.2, None])
UNMARKED = episode('unmarked', [0.4, 0.5, 0.6], Labels(False), events=[(3.0, Reason.MISS)])
UNKNOWN = episode('unknown', [0.4, 0.5, 0.6])
SILENT = episode('silent', [], Labels(True))
ALL = (RISING, MIXED, CONSTANT, SHORT, FAILED, UNMARKED, UNKNOWN, SILENT)


@pytest.fixture(scope='module')
def found():
    """The figures of all of them."""
    return figures_of(*ALL)


def test_value_order_is_the_mean_over_successes_where_it_is_defined(found):
    """1 and 0.8; constant rewards and a single frame are no 0, but counted and told."""
    order = found['value_order']
    assert order.value == pytest.approx((1.0 + 0.8) / 2)
    assert order.episodes == 2
    assert order.note.startswith('undefined in 2 of 4 successful episodes')
    # One of the eleven replies of the four successful episodes was malformed.
    assert order.malformed == pytest.approx(1 / 11)


def test_alignment_is_over_all_frames_with_a_target(found):
    """Six frames of two episodes: (0.1 + 0.1 + 0.1 + 0 + 0.1 + 0) / 6."""
    assert found['mae'].value == pytest.approx(0.4 / 6)
    assert found['mae'].episodes == found['pearson'].episodes == 2
    # Ranks of the rewards 1.5 5 6 1.5 4 3, of the targets 1 5 6 2 3.5 3.5.
    x, y = [1.5, 5, 6, 1.5, 4, 3], [1, 5, 6, 2, 3.5, 3.5]
    dx, dy = [value - 3.5 for value in x], [value - 3.5 for value in y]
    expected = sum(a * b for a, b in zip(dx, dy)) / math.sqrt(sum(a * a for a in dx) * sum(b * b for b in dy))
    assert found['spearman'].value == pytest.approx(expected)
    assert 0.9 < found['pearson'].value < 1.0


def test_ranking_is_within_a_task(found):
    """Four successes and two failures of one task make eight pairs that can tell."""
    # Successes end at 0.9, 0.8, 0.5, 0.3 and failures at 0.2, 0.6: six concordant, two discordant pairs.
    assert found['tau_final'].value == pytest.approx((6 - 2) / math.sqrt(15 * 8))
    # Their means are 0.467, 0.5, 0.5, 0.3 and 0.2, 0.5: four concordant, two discordant and two tied pairs;
    # of all fifteen three are tied in the mean.
    assert found['tau_mean'].value == pytest.approx((4 - 2) / math.sqrt(12 * 8))
    assert found['tau_final'].episodes == 6 and found['tau_final'].note == ''


def test_events_find_failures_within_the_tolerance(found):
    """Of known failures: one of two is found, by one of two events; what nobody marked is left out."""
    assert (found['precision'].value, found['recall'].value) == (0.5, 0.5)
    assert found['f1'].value == pytest.approx(0.5)
    assert found['f1'].episodes == 5  # four successes and the failure that is marked
    none = figures_of(*ALL, tolerance=0.4)
    assert (none['precision'].value, none['recall'].value) == (0.0, 0.0)


def test_an_event_may_come_a_little_early():
    """By half a second, as labels are made by hand; not with a tolerance of 0."""
    early = episode('e', [0.1, 0.2], Labels(False, (LabelledFailure(3.4),)), events=[(3.0, Reason.MISS)])
    assert figures_of(early)['recall'].value == 1.0
    assert figures_of(early)['delay_of_found_s'].value == pytest.approx(0.1)
    assert figures_of(early, tolerance=0.0)['recall'].value == 0.0


def test_alarms_of_whole_episodes(found):
    """Both failures have an event, and one of four successes has: 1 and 3 / 4."""
    assert found['true_positive_rate'].value == 1.0
    assert found['true_negative_rate'].value == 0.75
    assert found['balanced_accuracy'].value == pytest.approx(0.875)
    assert found['balanced_accuracy'].episodes == 6


def test_a_success_that_had_a_failure_is_one_for_the_alarms():
    """It recovered; the alarm was right."""
    recovered = episode('r', [0.1, 0.2], Labels(True, (LabelledFailure(2.0),)), events=[(3.0, Reason.MISS)])
    found = figures_of(recovered, RISING)
    assert (found['true_positive_rate'].value, found['true_negative_rate'].value) == (1.0, 1.0)


def test_delays_in_both_conventions_with_the_time_of_inference(found):
    """0.5 s and 0.1 s for the verdict; the one that was missed counts the 0.5 s to the end at 5 s."""
    assert found['delay_of_found_s'].value == pytest.approx(0.6)
    assert found['delay_with_misses_s'].value == pytest.approx((0.6 + 0.5) / 2)
    assert found['delay_of_found_s'].episodes == 1
    assert math.isnan(found['delay_of_found_s'].low), 'one episode says nothing of how sure it is'


def test_malformed_replies_are_a_share_of_all(found):
    """One of 21."""
    assert found['malformed'].value == pytest.approx(1 / 21)
    assert found['malformed'].episodes == 7


def test_what_there_was_is_counted():
    """Also what no metric could use."""
    counts = evaluate(Results(ALL, RUN, (('bad.mp4', 'empty'),)), 2.0).counts
    assert (counts.episodes, counts.successful, counts.failed, counts.unlabelled) == (8, 5, 2, 1)
    assert (counts.marked, counts.failures, counts.progress) == (6, 2, 0)
    assert (counts.silent, counts.replies, counts.unreadable, counts.cameras) == (1, 21, 1, 1)


def test_words_of_failures_and_of_events():
    """A failure that was missed has a label without a word; the event in a success is of no failure."""
    assert evaluate(Results(ALL, RUN), 2.0).confusion == {
        'miss': {'miss': 1}, 'none': {'missed': 1}, 'no failure': {'fall': 1}}


def test_intervals_are_resampled_by_episode():
    """Of two episodes with value orders 1 and -1 some resamples hold one of them alone."""
    falling = episode('falling', [0.9, 0.5, 0.1], Labels(True))
    order = figures_of(RISING, falling)['value_order']
    assert (order.value, order.low, order.high) == (0.0, -1.0, 1.0)


def test_cameras_of_one_episode_are_resampled_together():
    """Two views of each of two episodes: one rises and one falls in both, so no resample differs."""
    views = [
        replace(one, source='set', camera=camera, index=index) for index in (0, 1)
        for camera, one in (('/left', RISING), ('/right', episode('f', [0.9, 0.5, 0.1], Labels(True))))]
    order = figures_of(*views)['value_order']
    assert (order.value, order.low, order.high, order.episodes) == (0.0, 0.0, 0.0, 4)
    unnumbered = [replace(view, index=None) for view in views]
    assert figures_of(*unnumbered)['value_order'] == order, 'the second view of a camera is another episode'
    alone = figures_of(*views[:2])['value_order']
    assert alone.value == 0.0 and math.isnan(alone.low), 'two cameras of one episode say nothing of how sure'


@pytest.mark.parametrize(('episodes', 'key', 'why'), [
    ((), 'value_order', 'no episode is labelled a success'),
    ((UNKNOWN,), 'value_order', 'no episode is labelled a success'),
    ((CONSTANT, SHORT), 'value_order', 'no successful episode has two different rewards'),
    ((UNKNOWN,), 'pearson', 'no frame with a reward has a labelled progress'),
    ((episode('c', [0.5, 0.5], targets=[0.1, 0.2]),), 'spearman', 'rewards or targets are constant'),
    ((UNKNOWN,), 'tau_final', 'no episode with a reward is labelled a success or a failure'),
    ((RISING, MIXED), 'tau_mean', 'no task has successes and failures with different scores'),
    ((RISING, episode('other', [0.1], Labels(False), task='open')), 'tau_mean',
     'no task has successes and failures with different scores'),
    ((UNMARKED, UNKNOWN), 'f1', 'no episode has its failures marked'),
    ((RISING,), 'precision', 'there is no event'),
    ((RISING,), 'recall', 'no failure is marked'),
    ((RISING,), 'f1', 'there is neither an event nor a failure'),
    ((RISING,), 'true_positive_rate', 'no episode is labelled a failure'),
    ((FAILED,), 'true_negative_rate', 'every episode had a failure'),
    ((FAILED,), 'balanced_accuracy', 'the episodes with a label all had a failure, or none had'),
    ((RISING,), 'delay_of_found_s', 'no failure is marked'),
    ((episode('f', [0.1], Labels(False, (LabelledFailure(2.0),))),), 'delay_of_found_s',
     'no failure was found'),
    ((SILENT,), 'malformed', 'there is no reply'),
])
def test_what_is_undefined_says_why(episodes, key, why):
    """NaN without an interval, never 0."""
    figure = figures_of(*episodes)[key]
    assert math.isnan(figure.value) and math.isnan(figure.low) and math.isnan(figure.high)
    assert figure.why == why


def test_a_model_without_bounds_has_no_mean_absolute_error():
    """Its rewards are on another scale; correlations do not mind."""
    found = figures_of(RISING, FAILED, run={'model': 'm', 'bounded': False})
    assert found['mae'].why == 'the rewards of this model are not on the scale of progress'
    assert not math.isnan(found['pearson'].value)
    assert found['delay_of_found_s'].why == 'run.json does not say how long a verdict took'


def test_all_replies_malformed_is_no_reward():
    """Nothing is made up of them: no order, no ranking, no error; all of them are counted."""
    found = figures_of(episode('m', [None, None], Labels(True), targets=[0.1, 0.2]))
    assert found['value_order'].why == 'no successful episode has two different rewards'
    assert found['tau_final'].why == 'no episode with a reward is labelled a success or a failure'
    assert found['mae'].why == 'no frame with a reward has a labelled progress'
    assert found['malformed'].value == 1.0 and found['value_order'].malformed == 1.0
