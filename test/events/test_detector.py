"""FailureDetector: verdicts in, one event per onset out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.events.detector import EpisodeState, FailureDetector
from densereward_ros.events.settings import DetectorSettings
from densereward_ros.types import FAILURES, REASONS, Frame, Reason, Rule, Verdict, Window

STEP_S = 0.2


def window(time_s: float, segment: int = 0) -> Window:
    """A window whose newest frame has this stamp."""
    frame = Frame(round(time_s * 1e9), 0, lambda: np.zeros((2, 2, 3), np.uint8))
    return Window('/camera', 'stack the cup', (frame, frame, frame), segment)


def run(detector: FailureDetector, words: str, start_s: float = 0.0, segment: int = 0):
    """Feeds one verdict for each word, 0.2 s apart, reward falling by 0.1 to 0; returns {index: event}."""
    events = {}
    for index, word in enumerate(words.split()):
        verdict = Verdict(reward=max(0.0, 0.9 - 0.1 * index), reason=Reason[word.upper()])
        event = detector.update(window(start_s + index * STEP_S, segment), verdict)
        if event:
            events[index] = event
    return events


def test_two_in_a_row_make_one_event_with_its_evidence():
    """The event carries the reason, the rule, the reward now and the reward before the failure."""
    events = run(FailureDetector(), 'correct miss miss miss correct')
    assert list(events) == [2]
    event = events[2]
    assert (event.reason, event.rule, event.confirmations) == (Reason.MISS, Rule.WORD, 2)
    assert event.reward == 0.9 - 0.1 * 2
    assert event.previous_reward == 0.9
    assert event.probability is None


def test_words_that_disagree_confirm_nothing():
    """One stray failure word, or two different ones, is no event."""
    assert run(FailureDetector(), 'miss correct miss fall miss correct') == {}


def test_one_confirmation_fires_at_once():
    """confirmations 1 is the raw word."""
    assert list(run(FailureDetector(DetectorSettings(confirmations=1)), 'correct fall fall')) == [1]


def test_the_cool_down_is_per_reason():
    """Within the cool-down the same reason is silent and another one is heard."""
    detector = FailureDetector(DetectorSettings(cooldown=2.0))
    events = run(detector, 'miss miss correct miss miss correct fall fall')
    assert {index: event.reason for index, event in events.items()} == {1: Reason.MISS, 7: Reason.FALL}


def test_a_failure_that_outlasts_the_cool_down_is_reported_late():
    """A second miss that began within the cool-down and still stands after it is not lost."""
    detector = FailureDetector(DetectorSettings(cooldown=1.0))
    events = run(detector, 'miss miss correct miss miss miss miss miss miss')
    assert list(events) == [1, 6]
    assert events[6].confirmations == 4


def test_a_failure_that_never_clears_is_one_event():
    """One onset, one event, however long the failure stays."""
    assert list(run(FailureDetector(DetectorSettings(cooldown=0.5)), 'smooth ' * 60)) == [1]


def test_a_new_segment_starts_the_count_again():
    """A verdict from before a silent camera or a clock jump confirms nothing after it."""
    detector = FailureDetector()
    assert run(detector, 'correct miss', segment=0) == {}
    assert run(detector, 'miss', start_s=60.0, segment=1) == {}
    events = run(detector, 'miss', start_s=60.2, segment=1)
    assert list(events) == [0]
    assert events[0].previous_reward is None


def test_a_clock_that_jumps_back_does_not_mute_the_detector():
    """A looped recording repeats its failure, and the event comes again."""
    detector = FailureDetector()
    assert len(run(detector, 'correct miss miss', start_s=100.0, segment=0)) == 1
    assert len(run(detector, 'correct miss miss', start_s=1.0, segment=1)) == 1


def test_the_probability_of_the_reason_is_passed_on():
    """reason_probabilities are indexed by reason - 1."""
    detector = FailureDetector(DetectorSettings(confirmations=1))
    verdict = Verdict(0.4, Reason.FALL, True, (0.1, 0.0, 0.0, 0.7, 0.1, 0.1))
    assert detector.update(window(0.0), verdict).probability == 0.7


def test_state_follows_the_verdicts():
    """UNKNOWN before the first verdict, FAILING while a confirmed failure stands, RUNNING otherwise."""
    detector = FailureDetector()
    states = [detector.state]
    for index, word in enumerate(['correct', 'miss', 'miss', 'correct']):
        detector.update(window(index * STEP_S), Verdict(0.5, Reason[word.upper()]))
        states.append(detector.state)
    assert states == [EpisodeState.UNKNOWN, EpisodeState.RUNNING, EpisodeState.RUNNING,
                      EpisodeState.FAILING, EpisodeState.RUNNING]
    detector.reset()
    assert detector.state is EpisodeState.UNKNOWN


@given(
    words=st.lists(st.sampled_from(REASONS), max_size=80),
    confirmations=st.integers(1, 4),
    cooldown=st.floats(0.0, 5.0),
)
def test_no_event_without_evidence_and_at_most_one_per_cool_down(words, confirmations, cooldown):
    """For any stream: each event has its evidence, comes once per run and outside the cool-down."""
    detector = FailureDetector(DetectorSettings(confirmations=confirmations, cooldown=cooldown))
    last_fired: dict[Reason, float] = {}
    run_length, fired_in_run = 0, False
    for index, reason in enumerate(words):
        same = index > 0 and words[index - 1] is reason
        run_length, fired_in_run = (run_length + 1, fired_in_run) if same else (1, False)
        stamp_s = round(index * STEP_S, 9)
        event = detector.update(window(stamp_s), Verdict(0.5, reason))
        cooling = reason in last_fired and stamp_s - last_fired[reason] < cooldown - 1e-9
        if event:
            assert reason in FAILURES and event.reason is reason
            assert event.confirmations == run_length >= confirmations
            assert not fired_in_run and not cooling
            last_fired[reason], fired_in_run = stamp_s, True
        elif reason in FAILURES and run_length >= confirmations and not fired_in_run:
            assert stamp_s - last_fired[reason] < cooldown + 1e-9


def fed(settings: DetectorSettings, verdicts, step_s: float = STEP_S, segment: int = 0):
    """Feeds verdicts, step_s apart; returns {index: event} and the state after each."""
    detector, events, states = FailureDetector(settings), {}, []
    for index, verdict in enumerate(verdicts):
        event = detector.update(window(round(index * step_s, 9), segment), verdict)
        if event:
            events[index] = event
        states.append(detector.state)
    return events, states


def named(word: str, probability: float, reward: float = 0.5) -> Verdict:
    """A verdict with the probability of its word; the rest is spread evenly."""
    reason = Reason[word.upper()]
    rest = (1 - probability) / 5
    return Verdict(reward, reason, True, tuple(probability if r is reason else rest for r in REASONS))


def rewards(*values: float) -> list[Verdict]:
    """Verdicts that name no failure."""
    return [Verdict(value, Reason.CORRECT) for value in values]


def test_n_of_the_last_m_bridges_a_verdict_that_flickers():
    """2 of 3: miss, correct, miss is enough; 2 of 2 it is not; and the event counts the votes alone."""
    words = [Verdict(0.5, Reason[w]) for w in ('CORRECT', 'MISS', 'CORRECT', 'MISS')]
    events, _ = fed(DetectorSettings(confirmation_window=3), words)
    assert {index: event.confirmations for index, event in events.items()} == {3: 2}
    assert fed(DetectorSettings(), words)[0] == {}


def test_the_verdict_that_completes_n_of_m_shows_the_failure_itself():
    """A verdict of another word never gives the event of the words before it."""
    words = [Verdict(0.5, Reason[w]) for w in ('MISS', 'MISS', 'FALL', 'CORRECT')]
    events, _ = fed(DetectorSettings(confirmations=2, confirmation_window=4), words)
    assert list(events) == [1]


def test_a_probability_floor_is_for_its_word_alone():
    """Misses below their floor confirm nothing; falls have none."""
    floors = (0.6, 0.0, 0.0, 0.0, 0.0)
    settings = DetectorSettings(confirmations=2, probability_floors=floors)
    sure, unsure = named('miss', 0.6), named('miss', 0.59)
    assert list(fed(settings, [sure, unsure, sure, sure])[0]) == [3]
    assert fed(settings, [unsure] * 9)[0] == {}
    events, _ = fed(settings, [named('fall', 0.3)] * 2)
    assert events[1].probability == 0.3
    assert list(fed(settings, [Verdict(0.5, Reason.MISS)] * 2)[0]) == [1], 'no probabilities, no floor'


def test_a_drop_of_the_reward_is_an_event_with_its_peak():
    """0.8 to 0.5 within two seconds; the reason is FAILURE, since no word says which."""
    events, states = fed(DetectorSettings(reward_drop=0.3), rewards(0.2, 0.8, 0.75, 0.5, 0.5, 0.5))
    event, = events.values()
    assert (list(events), event.rule, event.reason) == ([3], Rule.REWARD_DROP, Reason.FAILURE)
    assert (event.previous_reward, event.reward, event.confirmations) == (0.8, 0.5, 1)
    assert states == [EpisodeState.RUNNING] * 3 + [EpisodeState.FAILING] * 3


def test_a_slow_decline_is_no_drop():
    """The peak is that of the last `drop_window` seconds, by stamps, and is forgotten after it."""
    slow = rewards(*np.linspace(0.9, 0.1, 50))
    assert fed(DetectorSettings(reward_drop=0.3, drop_window=2.0), slow)[0] == {}
    assert fed(DetectorSettings(reward_drop=0.3, drop_window=5.0), slow)[0] != {}


def test_a_drop_serves_models_without_words():
    """A score head names nothing and is unbounded; its drop is an event all the same."""
    scores = [Verdict(score, Reason.NONE, bounded=False) for score in (3.0, 7.5, 1.0)]
    events, states = fed(DetectorSettings(reward_drop=5.0), scores)
    assert list(events) == [2]
    assert EpisodeState.SUCCEEDED not in states and EpisodeState.STALLED not in states


def test_word_and_drop_tell_of_one_failure_once():
    """The drop comes first and takes the word that stands beside it; the words that follow add nothing."""
    settings = DetectorSettings(reward_drop=0.3)
    events, _ = fed(settings, rewards(0.8) + [Verdict(0.3, Reason.MISS)] * 30)
    assert {index: (event.rule, event.reason) for index, event in events.items()} == {
        1: (Rule.REWARD_DROP, Reason.MISS)}
    words_first = [Verdict(0.8, Reason.MISS)] * 2 + [Verdict(0.3, Reason.MISS)] * 30
    assert {index: event.rule for index, event in fed(settings, words_first)[0].items()} == {1: Rule.WORD}


def test_a_failure_is_held_until_it_is_cleared():
    """With `clearing` 3 two verdicts without it are not its end: no second event, and still failing."""
    words = ['MISS', 'MISS', 'CORRECT', 'CORRECT', 'MISS', 'MISS', 'CORRECT', 'CORRECT', 'CORRECT']
    settings = DetectorSettings(clearing=3, cooldown=0.0)
    events, states = fed(settings, [Verdict(0.5, Reason[word]) for word in words])
    assert list(events) == [1]
    assert states[1:8] == [EpisodeState.FAILING] * 7 and states[8] is EpisodeState.RUNNING


def test_words_of_a_failure_that_is_over_do_not_count_for_the_next():
    """2 of 4: after an event and its end, one more miss is one vote, not two."""
    words = [Verdict(0.5, Reason[w]) for w in ('MISS', 'MISS', 'CORRECT', 'MISS', 'CORRECT', 'MISS')]
    events, _ = fed(DetectorSettings(confirmation_window=4, cooldown=0.0), words)
    assert list(events) == [1, 5]


def test_stalled_is_no_progress_below_the_success_level():
    """Ten seconds without a rise; a rise of 0.05 ends it; climbing back after a fall is progress."""
    settings = DetectorSettings(stall_time=10.0, stall_rise=0.05)
    _, states = fed(settings, rewards(*[0.5] * 11, 0.54, 0.56, 0.3, 0.3, 0.3, 0.36), step_s=1.0)
    assert states[:10] == [EpisodeState.RUNNING] * 10
    assert states[10:12] == [EpisodeState.STALLED] * 2
    assert states[12:] == [EpisodeState.RUNNING] * 5
    assert EpisodeState.STALLED not in fed(settings, rewards(*[0.95] * 30), step_s=1.0)[1]
    off = DetectorSettings(stall_time=0.0)
    assert set(fed(off, rewards(*[0.5] * 30), step_s=1.0)[1]) == {EpisodeState.RUNNING}


def test_succeeded_is_at_or_above_the_level_for_a_while():
    """One high reward is no success; a second of them is; below the level it is none any more."""
    _, states = fed(DetectorSettings(), rewards(0.95, 0.5, *[0.9] * 6, 0.85))
    assert states == [EpisodeState.RUNNING] * 7 + [EpisodeState.SUCCEEDED, EpisodeState.RUNNING]


def test_a_failure_outranks_success():
    """A block that falls off the plate again: failing, although the reward is high."""
    verdicts = rewards(*[1.0] * 8) + [Verdict(1.0, Reason.FALL)] * 2
    assert fed(DetectorSettings(), verdicts)[1][-2:] == [EpisodeState.SUCCEEDED, EpisodeState.FAILING]


def test_settings_may_change_while_verdicts_come():
    """What was seen counts under the new numbers: a third miss completes 3 of 3 that was 5 of 5 before."""
    detector = FailureDetector(DetectorSettings(confirmations=5))
    assert run(detector, 'miss miss') == {}
    detector.settings = DetectorSettings(confirmations=2)
    assert list(run(detector, 'miss', start_s=0.4)) == [0]


@pytest.mark.parametrize(('values', 'line'), [
    ({'confirmations': 0}, 'confirmations is 0, allowed: a whole number, 1 to 100'),
    ({'confirmations': 2.0}, 'confirmations is 2.0, allowed: a whole number, 1 to 100'),
    ({'confirmations': True}, 'confirmations is True, allowed: a whole number, 1 to 100'),
    ({'confirmations': 3, 'confirmation_window': 2},
     'confirmation_window is 2, allowed: 0, or at least confirmations, which is 3'),
    ({'cooldown': -1.0}, 'cooldown is -1.0, allowed: 0.0 to 3600'),
    ({'reward_drop': float('nan')}, 'reward_drop is nan, allowed: 0.0 to 1000'),
    ({'success_level': 1.5}, 'success_level is 1.5, allowed: 0.0 to 1'),
    ({'probability_floors': (0.5,)},
     'probability_floors holds 1 numbers, allowed: 5, for miss, collision, fall, smooth, failure'),
    ({'probability_floors': (0.0, 2.0, 0.0, 0.0, 0.0)},
     'the probability floor of collision is 2.0, allowed: 0.0 to 1'),
])
def test_settings_that_cannot_be_are_refused_in_one_line(values, line):
    """Name, value, and what is allowed."""
    with pytest.raises(ValueError) as caught:
        DetectorSettings(**values)
    assert str(caught.value) == line


SETTINGS = st.builds(
    lambda needed, more, floor, drop, **rest: DetectorSettings(
        confirmations=needed, confirmation_window=needed + more, probability_floors=(floor,) * 5,
        reward_drop=drop, **rest),
    needed=st.integers(1, 3), more=st.integers(0, 3), floor=st.sampled_from([0.0, 0.3, 0.6]),
    drop=st.sampled_from([0.0, 0.3]), drop_window=st.floats(0.2, 3.0), clearing=st.integers(1, 3),
    cooldown=st.floats(0.0, 3.0))
STREAM = st.lists(st.tuples(
    st.sampled_from(REASONS), st.sampled_from([0.2, 0.5, 0.8]), st.floats(0.0, 1.0), st.floats(0.05, 1.0),
    st.booleans()), max_size=60)


def stream_of(steps):
    """(window, verdict) of each step: word, its probability, reward, seconds since the last, new segment."""
    time_s, segment = 0.0, 0
    for word, probability, reward, wait_s, breaks in steps:
        time_s, segment = time_s + wait_s, segment + (breaks and wait_s > 0.9)
        yield window(time_s, segment), named(word.word, probability, reward)


@given(settings=SETTINGS, steps=STREAM)
def test_any_event_has_its_evidence_and_the_cool_down_is_kept(settings, steps):
    """For any stream and settings: votes or a drop that can be counted by hand, and one per cool-down."""
    detector, seen, fired = FailureDetector(settings), [], {}
    for at, verdict in stream_of(steps):
        seen = [pair for pair in seen if pair[0].segment == at.segment] + [(at, verdict)]
        event = detector.update(at, verdict)
        if event is None:
            continue
        now = at.newest.stamp_ns
        assert event.reason in FAILURES and event.reward == verdict.reward and event.cameras == ('/camera',)
        assert detector.state is EpisodeState.FAILING
        assert now - fired.get(event.reason, -10**12) >= settings.cooldown * 1e9 - 1
        fired[event.reason] = now
        if event.rule is Rule.WORD:
            votes = [
                v for _, v in seen
                if v.reason is event.reason
                and v.reason_probabilities[v.reason - 1] >= settings.probability_floors[0]]
            assert verdict.reason is event.reason and verdict is votes[-1]
            assert len(votes) >= event.confirmations >= settings.confirmations
        else:
            peak = max(v.reward for w, v in seen if now - w.newest.stamp_ns <= settings.drop_window * 1e9)
            assert event.previous_reward == peak >= verdict.reward + settings.reward_drop > verdict.reward


@given(settings=SETTINGS, steps=STREAM, jitter=st.lists(st.integers(0, 10**9), min_size=60, max_size=60))
def test_arrival_decides_nothing(settings, steps, jitter):
    """The same frames, arriving late, early or in bursts: the same events and states."""
    def replayed(arrivals):
        detector, told = FailureDetector(settings), []
        for (at, verdict), received_ns in zip(stream_of(steps), arrivals):
            frame = Frame(at.newest.stamp_ns, received_ns, at.newest.decode)
            event = detector.update(Window('/camera', '', (frame,) * 3, at.segment), verdict)
            told.append((event and (event.reason, event.rule, event.confirmations), detector.state))
        return told

    assert replayed(jitter) == replayed([0] * 60)
