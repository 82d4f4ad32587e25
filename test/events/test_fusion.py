"""FusedDetector: what several cameras agree on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.events.detector import EpisodeState, FailureDetector
from densereward_ros.events.fusion import FusedDetector
from densereward_ros.events.settings import DetectorSettings
from densereward_ros.types import REASONS, Frame, Reason, Verdict, Window

CLOCKS_S = {'/a': 0.0, '/b': 500.0, '/c': -70.0}  # no two cameras need to agree on the time


def window(camera: str, step: int) -> Window:
    """The window of a camera at a step of 0.2 s, by its own clock."""
    seconds = CLOCKS_S[camera] + 100 + 0.2 * step
    frame = Frame(round(seconds * 1e9), 0, lambda: np.zeros((2, 2, 3), np.uint8))
    return Window(camera, 'stack the cup', (frame,) * 3)


def play(detector: FusedDetector, **words: str):
    """Feeds each camera its words (one letter a verdict: c, m, f), in turn; returns the events by step."""
    letters = {'c': Reason.CORRECT, 'm': Reason.MISS, 'f': Reason.FALL}
    events = []
    for step in range(max(map(len, words.values()))):
        for camera, line in words.items():
            if step < len(line):
                event = detector.update(window(f'/{camera}', step), Verdict(0.5, letters[line[step]]))
                if event:
                    events.append((step, event.reason, event.cameras))
    return events


def test_any_tells_what_one_camera_sees_and_tells_it_once():
    """The second camera sees it a moment later: no second event; another failure later is one."""
    detector = FusedDetector(['/a', '/b'])
    assert play(detector, a='cmmmmcccccccccccccff', b='ccmmmmcc') == [
        (2, Reason.MISS, ('/a',)), (19, Reason.FALL, ('/a',))]


def test_any_keeps_the_cool_down_across_cameras():
    """The first camera's failure is over when the second confirms the same, within the cool-down."""
    words = dict(a='cmmccccccc', b='cccccmmmcc')
    assert len(play(FusedDetector(['/a', '/b']), **words)) == 1
    assert len(play(FusedDetector(['/a', '/b'], DetectorSettings(cooldown=0.2)), **words)) == 2


def test_majority_waits_for_the_second_camera_and_names_both():
    """What one of three sees is no event; when a second sees it, whatever it calls it, there is one."""
    cameras = ['/a', '/b', '/c']
    assert play(FusedDetector(cameras, fusion='majority'), a='cmmmmm', b='cccccc', c='cccccc') == []
    events = play(FusedDetector(cameras, fusion='majority'), a='cmmmmmm', b='cccffff', c='ccccccc')
    assert [(step, seen) for step, _, seen in events] == [(4, ('/a', '/b'))]


def test_majority_of_two_is_both():
    """More than half of two."""
    assert play(FusedDetector(['/a', '/b'], fusion='majority'), a='mmmm', b='cccc') == []
    assert len(play(FusedDetector(['/a', '/b'], fusion='majority'), a='mmmm', b='cmmm')) == 1


def test_a_minoritys_failure_that_clears_is_forgotten():
    """A was wrong for a moment; when B sees a real failure later, A does not vote for it any more."""
    detector = FusedDetector(['/a', '/b'], fusion='majority')
    assert play(detector, a='mmcccccccc', b='ccccmmmmmm') == []


def test_the_primary_decides_alone():
    """Its failure is an event at once, and nobody else's is."""
    detector = FusedDetector(['/a', '/b'], fusion='primary', primary='/b')
    assert play(detector, a='mmmmmmm', b='cccmmcc') == [(4, Reason.MISS, ('/b',))]


def test_the_state_is_what_enough_cameras_agree_on():
    """One failing camera of three: failing for any, running for the majority."""
    for fusion, state in (('any', EpisodeState.FAILING), ('majority', EpisodeState.RUNNING)):
        detector = FusedDetector(['/a', '/b', '/c'], fusion=fusion)
        assert detector.state is EpisodeState.UNKNOWN
        play(detector, a='mmm', b='ccc')
        assert detector.state is state
        detector.reset()
        assert detector.state is EpisodeState.UNKNOWN


@pytest.mark.parametrize(('fusion', 'primary', 'line'), [
    ('all', '', "fusion is 'all', allowed: any, majority, primary"),
    ('primary', '/c', "primary_camera is '/c', allowed: /a, /b"),
])
def test_a_fusion_that_cannot_be_is_refused(fusion, primary, line):
    """One line with what is allowed."""
    with pytest.raises(ValueError, match=f'^{line}$'):
        FusedDetector(['/a', '/b'], fusion=fusion, primary=primary)


WORDS = st.lists(st.sampled_from(REASONS), min_size=40, max_size=40)


@given(words=WORDS, fusion=st.sampled_from(['any', 'majority', 'primary']), cooldown=st.floats(0.0, 3.0))
def test_one_camera_is_its_detector(words, fusion, cooldown):
    """With a single camera every fusion gives exactly the events and states of that camera's detector."""
    settings = DetectorSettings(cooldown=cooldown, clearing=2)
    alone, fused = FailureDetector(settings), FusedDetector(['/a'], settings, fusion, '/a')
    for step, reason in enumerate(words):
        at, verdict = window('/a', step), Verdict(0.5, reason)
        assert fused.update(at, verdict) == alone.update(at, verdict)
        assert fused.state is alone.state


@given(words=st.tuples(WORDS, WORDS, WORDS))
def test_a_majority_event_has_its_majority(words):
    """Two cameras at least stand failing, by their own detectors, at every event of three."""
    cameras = ['/a', '/b', '/c']
    fused = FusedDetector(cameras, fusion='majority')
    alone = {camera: FailureDetector() for camera in cameras}
    for step in range(40):
        for camera, line in zip(cameras, words):
            at, verdict = window(camera, step), Verdict(0.5, line[step])
            alone[camera].update(at, verdict)
            event = fused.update(at, verdict)
            if event:
                failing = [c for c in cameras if alone[c].state is EpisodeState.FAILING]
                assert list(event.cameras) == failing and len(failing) >= 2
