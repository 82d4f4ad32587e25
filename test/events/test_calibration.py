"""Calibration: the detector's own evidence as a score, refusals, and the promise on real verdicts."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from densereward_ros.events import calibration
from densereward_ros.events.calibration import (
    START,
    JudgedEpisode,
    calibrate,
    check_promise,
    events,
    rules_of,
    score,
)
from densereward_ros.events.conformal import CalibrationError
from densereward_ros.events.settings import DEFAULTS
from densereward_ros.tabletop.event_evaluation import CALIBRATION, CHECK
from densereward_ros.tabletop.event_figures import wordless
from densereward_ros.tabletop.event_verdicts import read
from densereward_ros.types import FAILURES, REASONS, Frame, Reason, Rule, Verdict, Window


def episode(*steps: tuple[str, float, float]) -> JudgedEpisode:
    """An episode of verdicts 0.2 s apart: word, its probability, reward."""
    verdicts = []
    for index, (word, probability, reward) in enumerate(steps):
        frame = Frame(index * 200_000_000, 0, lambda: None)
        reason = Reason[word.upper()]
        probabilities = tuple(
            probability if other is reason else (1 - probability) / 5 for other in REASONS)
        verdicts.append((Window('/camera', '', (frame,) * 3), Verdict(reward, reason, True, probabilities)))
    return JudgedEpisode('episode', tuple(verdicts))


GOOD = episode(*[('correct', 0.9, 0.5)] * 5)


def test_the_score_is_the_highest_floor_that_gives_an_event():
    """2 of 3: the second best of the last three, at a verdict that itself reaches it."""
    steps = episode(('miss', 0.9, 0.5), ('correct', 0.9, 0.5), ('miss', 0.4, 0.5), ('fall', 0.8, 0.5))
    assert score(steps, 'words', START) == 0.4
    assert score(steps, 'words', replace(DEFAULTS, confirmations=1)) == 0.9
    assert score(GOOD, 'words', START) == 0.0


def test_the_score_of_drops_is_the_deepest():
    """0.7 below the peak of the last two seconds."""
    assert score(episode(*[('correct', 1.0, r) for r in (0.9, 0.4, 0.2, 0.5)]), 'drop', DEFAULTS) == (
        pytest.approx(0.7))


STEPS = st.lists(st.tuples(
    st.sampled_from([reason.word for reason in REASONS]), st.floats(0.01, 1.0), st.floats(0.0, 1.0)),
    min_size=1, max_size=30)


@given(steps=STEPS, threshold=st.floats(0.001, 1.0), needed=st.integers(1, 3), more=st.integers(0, 2))
def test_the_detector_has_an_event_exactly_where_the_score_reaches_the_threshold(
        steps, threshold, needed, more):
    """Without this the promise would be about something else than the detector."""
    one = episode(*steps)
    settings = replace(DEFAULTS, confirmations=needed, confirmation_window=needed + more)
    floored = replace(settings, probability_floors=(threshold,) * len(FAILURES))
    assert bool(events(one, floored)) is (score(one, 'words', settings) >= threshold)
    mute = replace(one, verdicts=tuple((w, replace(v, reason=Reason.CORRECT)) for w, v in one.verdicts))
    dropping = events(mute, replace(settings, reward_drop=threshold))
    assert bool(dropping) is (score(mute, 'drop', settings) >= threshold)
    assert all(event.rule is Rule.REWARD_DROP for event in dropping)


def test_thresholds_lie_just_above_the_score_that_may_not_alarm():
    """19 episodes at 0.05: the highest score is the threshold, and the episode that has it gives no event."""
    worst = episode(('miss', 0.6, 0.5), ('miss', 0.55, 0.5))
    found = calibrate([GOOD] * 18 + [worst], 0.05, DEFAULTS)
    assert found.probability_floors == (0.5501,) * 5
    assert found.reward_drop == 0.0
    assert events(worst, found) == [] and events(worst, DEFAULTS) != []


def test_whatever_the_score_the_threshold_lies_above_it():
    """0.043 and a score next to it differ in the last bit of a float alone; each would void the promise."""
    drops = {i / 1000 - j / 1000 for i in range(1001) for j in range(i)}
    scores = {n / 10_000 for n in range(1, 10_000)} | drops
    for worst in scores:
        above = calibration._above(worst)
        assert worst < above < worst + 0.000_201, worst


def test_a_drop_that_may_not_alarm_does_not():
    """19 successful episodes with the same drop, of three decimals: none of them has an event."""
    drop = episode(('correct', 1.0, 0.543), ('correct', 1.0, 0.5))
    mute = [wordless(replace(drop, name=str(n))) for n in range(19)]
    found = calibrate(mute, 0.05, DEFAULTS, ('drop',))
    assert [events(one, found) for one in mute] == [[]] * 19


def test_where_nothing_counts_against_it_the_word_is_enough():
    """No floor is needed where at most the promised share of successful episodes has an event anyway."""
    assert calibrate([GOOD] * 19, 0.05, DEFAULTS).probability_floors == (0.0,) * 5


def test_several_rules_share_the_rate():
    """Each is held to the half of it: 0.1 for two is 0.05 for each, which takes 19 episodes."""
    drops = [episode(('correct', 1.0, 0.9), ('correct', 1.0, 0.9 - 0.01 * i)) for i in range(19)]
    found = calibrate(drops, 0.1, DEFAULTS, ('words', 'drop'))
    assert found.reward_drop == pytest.approx(0.18, abs=2e-4) and found.reward_drop > 0.18
    with pytest.raises(CalibrationError, match='shared by 2 rules: that needs at least 19'):
        calibrate(drops[1:], 0.1, DEFAULTS, ('words', 'drop'))


@pytest.mark.parametrize(('successes', 'rate', 'words'), [
    (18, 0.05, '18 successful episodes cannot promise an event in at most 0.05 of episodes: that needs at '
     'least 19; these promise 0.053 at best'),
    (0, 0.05, '0 successful episodes cannot promise an event in at most 0.05 of episodes: that needs at '
     'least 19'),
    (100, 0.0, 'false alarms are 0.0, allowed: a rate above 0 and below 1'),
    (100, 1.5, 'false alarms are 1.5, allowed: a rate above 0 and below 1'),
])
def test_a_promise_that_cannot_be_kept_is_refused(successes, rate, words):
    """One line that says how many episodes it takes, and what these can promise."""
    with pytest.raises(CalibrationError) as caught:
        check_promise(successes, rate, 1)
    assert str(caught.value) == words


def test_what_no_threshold_can_promise_is_refused():
    """A model that is sure of failures that are none; and drops alone where words would alarm too."""
    sure = episode(*[('miss', 1.0, 0.5)] * 2)
    with pytest.raises(CalibrationError, match='names failures with certainty'):
        calibrate([sure] * 19, 0.05, DEFAULTS)
    with pytest.raises(CalibrationError, match='the model names failures'):
        calibrate([sure] * 19, 0.05, DEFAULTS, ('drop',))


def test_the_rule_follows_from_the_model():
    """Words where it has them; drops for a score head, which names none."""
    scores = JudgedEpisode('scores', tuple(
        (window, Verdict(verdict.reward, Reason.NONE, False)) for window, verdict in GOOD.verdicts))
    assert rules_of([GOOD]) == ('words',)
    assert rules_of([scores]) == ('drop',)


@pytest.fixture(scope='module')
def stored(repository: Path):
    """Verdicts of the demo checkpoint on successful episodes: those to calibrate on, and the others."""
    episodes, model = read(repository / 'benchmark' / 'successful_verdicts.npz')
    assert len(episodes) == CALIBRATION + CHECK and CHECK >= 300
    return episodes[:CALIBRATION], episodes[CALIBRATION:], model


def test_the_stored_verdicts_are_of_the_shipped_checkpoint(repository: Path, stored):
    """After a new training, `make evaluate-events` makes them again."""
    weights = repository / 'models' / 'tabletop' / 'model.safetensors'
    assert stored[2]['sha256']['model.safetensors'] == hashlib.sha256(weights.read_bytes()).hexdigest()


KINDS = [
    (START, ('words',)), (replace(DEFAULTS, confirmations=1), ('words',)), (DEFAULTS, ('drop',)),
    (START, ('words', 'drop'))]


@pytest.mark.parametrize(('settings', 'rules'), KINDS, ids=['2 of 3', 'single', 'drop', 'both'])
def test_the_promise_holds_on_300_episodes_that_calibration_never_saw(stored, settings, rules):
    """At 0.05, with verdicts of the demo checkpoint: the promised rate is not below the rate's interval."""
    calibration, check, _ = stored
    if 'words' not in rules:
        calibration, check = ([wordless(one) for one in some] for some in (calibration, check))
    found = calibrate(calibration, 0.05, settings, rules)
    alarms = sum(bool(events(one, found)) for one in check)
    assert binomtest(alarms, len(check)).proportion_ci(0.95, 'exact').low <= 0.05, alarms


@pytest.mark.parametrize(('settings', 'rules'), KINDS, ids=['2 of 3', 'single', 'drop', 'both'])
def test_the_promise_holds_over_many_draws(stored, settings, rules):
    """The guarantee is over the draw of the episodes: the mean rate of 300 random splits is at most 0.05."""
    episodes = stored[0] + stored[1]
    scores = np.array([[score(one, rule, settings) for rule in rules] for one in episodes])
    rng, rates = np.random.default_rng(1), []
    from densereward_ros.events.conformal import conformal_threshold

    for _ in range(300):
        order = rng.permutation(len(episodes))
        here, there = scores[order[:59]], scores[order[59:]]
        limits = [conformal_threshold(column, 0.05 / len(rules)) for column in here.T]
        rates.append(np.mean((there > limits).any(axis=1)))
    assert np.mean(rates) <= 0.05 + 0.003
    if rules != ('words',) or settings is not START:
        assert np.mean(rates) > 0.01, 'a rule that never alarms would prove nothing'
