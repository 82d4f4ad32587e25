"""The figures of the events: bookkeeping on made-up episodes, and the committed ones in the README."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from densereward_ros.events.calibration import JudgedEpisode
from densereward_ros.tabletop.event_evaluation import CAMERAS, FUSED, Watched, watch
from densereward_ros.tabletop.event_figures import figures
from densereward_ros.tabletop.event_tables import table
from densereward_ros.tabletop.event_verdicts import read, write
from densereward_ros.types import REASONS, Frame, Reason, Verdict, Window

LETTERS = {'c': Reason.CORRECT, 'm': Reason.MISS, 'f': Reason.FALL}
BASELINES = ('single_verdict_words', 'reward_threshold', 'reward_drop')


def judged(words: str, camera: str = '0', reward: float = 0.5) -> JudgedEpisode:
    """Verdicts every two ticks from tick 4, one a letter, 0.9 sure; failures cost 0.4 of the reward."""
    verdicts = []
    for index, letter in enumerate(words):
        frame = Frame((4 + 2 * index) * 100_000_000, 0, lambda: None)
        reason = LETTERS[letter]
        verdicts.append((
            Window(camera, '', (frame,) * 3),
            Verdict(reward - 0.4 * reason.is_failure, reason, True, tuple(
                0.9 if other is reason else 0.02 for other in REASONS))))
    return JudgedEpisode('episode', tuple(verdicts))


def watched(words: str, *failures: tuple[int, Reason], others: tuple[str, ...] = ()) -> Watched:
    """An episode with failures at ticks; other cameras' words."""
    cameras = (judged(words), *(judged(line, str(n)) for n, line in enumerate(others, 1)))
    return Watched(cameras, failures, not failures, 4 + 2 * len(words), 0.01)


@pytest.fixture(scope='module')
def results():
    """Six episodes, of which the outcome can be counted by hand; three have three cameras."""
    clean = 'c' * 20
    held_out = [
        watched('cccccmmmcccccccccccc', (14, Reason.MISS), others=(clean, 'cccccmmmcccccccccccc')),
        watched('cccccmcccccccccccccc', (14, Reason.MISS), others=(clean, clean)),
        watched('cccccffcccccccccccmm', (14, Reason.MISS)),
        watched(clean, others=('ccmmcccccccccccccccc', clean)),
        watched('ccmccccccccccccccccc'),
        watched('ccmmcccccccccccccccc'),
    ]
    good = [judged(clean)] * 60
    return figures(held_out, good, good)


def test_failures_found_events_and_false_alarms_counted_by_hand(results):
    """Two in a row: two of three failures, one event late and one without a failure; names do not matter."""
    before = results['before_calibration']
    assert (before['precision'], before['recall']) == (0.5, 0.6667)
    assert before['f1'] == pytest.approx(2 * 2 / (4 + 3), abs=1e-4)
    assert before['false_alarms_per_episode'] == pytest.approx(1 / 3, abs=1e-4)
    single = results['single_verdict_words']
    assert (single['recall'], single['precision']) == (1.0, 0.5)
    assert single['false_alarms_per_episode'] == pytest.approx(2 / 3, abs=1e-4)


def test_delays_in_both_conventions(results):
    """The second verdict of a failure is one verdict late; the missed failure counts what was left."""
    before = results['before_calibration']
    assert before['median_delay_verdicts'] == 1
    assert results['single_verdict_words']['median_delay_verdicts'] == 0
    assert before['median_delay_of_found_s'] == pytest.approx(0.21)
    assert before['mean_delay_with_misses_s'] == pytest.approx((0.21 + 0.21 + 3.0) / 3, abs=1e-3)


def test_a_word_is_found_by_its_own_name_alone(results):
    """The fall that was a miss is a wrong fall, and a miss that was not found."""
    assert results['words']['miss']['failures'] == 3
    assert results['words']['miss']['before_calibration']['recall'] == pytest.approx(1 / 3, abs=1e-4)
    fall = results['words']['fall']['before_calibration']
    assert (fall['precision'], fall['recall']) == (0.0, None)


def test_fusions_trade_false_alarms_for_misses(results):
    """Single verdicts of three cameras: any has the false alarm and both failures; the majority neither."""
    fusion = results['fusion']
    assert fusion['episodes'] == 3
    assert fusion['any']['false_alarms_per_episode'] == 1.0
    assert fusion['majority']['false_alarms_per_episode'] == 0.0
    assert fusion['any']['recall'] == fusion['primary']['recall'] == 1.0
    assert fusion['majority']['recall'] == 0.5


def test_watching_gives_what_the_figures_need():
    """An oracle's verdicts: the first episodes before three cameras, whose pictures differ."""
    class Oracle:
        def __init__(self) -> None:
            self.pictures = {}

        def score(self, windows):
            for window in windows:
                self.pictures.setdefault(window.newest.stamp_ns, []).append(window.newest.image.sum())
            return [Verdict(0.5, Reason.CORRECT, True, (1.0,) + (0.0,) * 5) for _ in windows]

    oracle = Oracle()
    item, one = watch(oracle, ('held out', 1))
    assert item == ('held out', 1) and not one.clean and len(one.cameras) == CAMERAS
    assert [word for _, word in one.failures] == [Reason.MISS]
    assert all(len(set(sums)) == CAMERAS for sums in oracle.pictures.values())
    _, single = watch(oracle, ('successful', 3))
    assert single.clean and single.failures == () and len(single.cameras) == 1
    assert FUSED >= 40


def test_verdicts_survive_the_file(tmp_path):
    """Stamps, rewards to three decimals, words, and the probability of a named failure."""
    episodes = [judged('ccmmc'), judged('fc')]
    write(episodes, {'name': 'm'}, tmp_path / 'v.npz')
    found, model = read(tmp_path / 'v.npz')
    assert model == {'name': 'm'} and len(found) == 2
    for old, new in zip(episodes, found):
        for (window, verdict), (other, again) in zip(old.verdicts, new.verdicts, strict=True):
            assert other.newest.stamp_ns == window.newest.stamp_ns
            assert (again.reason, again.reward) == (verdict.reason, pytest.approx(verdict.reward, abs=5e-4))
            if verdict.reason.is_failure:
                assert again.reason_probabilities == pytest.approx(verdict.reason_probabilities)


@pytest.fixture(scope='module')
def committed(repository: Path):
    """What `make evaluate-events` wrote last."""
    return json.loads((repository / 'benchmark' / 'events.json').read_text())


def test_the_readme_quotes_the_committed_figures(repository: Path, committed):
    """Every line of every table, as it was printed."""
    lines = (repository / 'docs' / 'events.md').read_text().splitlines()
    for line in table(committed).splitlines():
        assert line in lines, line


def test_the_committed_figures_reach_the_bar(committed):
    """Calibrated for 0.05: F1 above every baseline, no more false alarms, three verdicts late at most."""
    after = committed['after_calibration']
    assert committed['configuration']['episodes'] >= 300
    for name in BASELINES:
        assert after['f1'] > committed[name]['f1'], name
        assert after['false_alarms_per_episode'] <= committed[name]['false_alarms_per_episode'], name
    assert after['median_delay_verdicts'] <= 3
    assert committed['promise']['words']['interval'][0] <= committed['promise']['promised']


def test_the_committed_figures_are_of_the_stored_verdicts(repository: Path, committed):
    """Figures and verdicts were written by one run, of one model."""
    _, model = read(repository / 'benchmark' / 'successful_verdicts.npz')
    assert committed['model'] == model


def test_a_figure_that_is_not_defined_is_shown_as_such():
    """One successful episode: nothing can be found, and there is no delay."""
    shown = table(figures([watched('c' * 20)], [judged('c' * 20)] * 120, [judged('c' * 20)] * 10))
    assert '| detector, defaults | n/a' in shown
    assert '| n/a | n/a | n/a |' in shown
