"""FailureDetector: verdicts in, one event per onset out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.events.detector import EpisodeState, FailureDetector
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
    assert list(run(FailureDetector(confirmations=1), 'correct fall fall')) == [1]


def test_the_cool_down_is_per_reason():
    """Within the cool-down the same reason is silent and another one is heard."""
    events = run(FailureDetector(cooldown=2.0), 'miss miss correct miss miss correct fall fall')
    assert {index: event.reason for index, event in events.items()} == {1: Reason.MISS, 7: Reason.FALL}


def test_a_failure_that_outlasts_the_cool_down_is_reported_late():
    """A second miss that began within the cool-down and still stands after it is not lost."""
    events = run(FailureDetector(cooldown=1.0), 'miss miss correct miss miss miss miss miss miss')
    assert list(events) == [1, 6]
    assert events[6].confirmations == 4


def test_a_failure_that_never_clears_is_one_event():
    """One onset, one event, however long the failure stays."""
    assert list(run(FailureDetector(cooldown=0.5), 'smooth ' * 60)) == [1]


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
    detector = FailureDetector(confirmations=1)
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
    detector = FailureDetector(confirmations, cooldown)
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
