"""Results are a function of the journals: events as the detector finds them, targets from the labels."""

from __future__ import annotations

import dataclasses

from densereward_ros.events.calibration import JudgedEpisode, events
from densereward_ros.events.settings import DEFAULTS
from densereward_ros.recordings.episode import Labels
from densereward_ros.recordings.judging import judge
from densereward_ros.recordings.windows import windows_of
from densereward_ros.scoring.collecting import collect
from densereward_ros.scoring.journal import Journal, read_journal
from densereward_ros.scoring.run import Windowing, head_of, score_episode
from densereward_ros.types import MalformedReply, Reason, Rule, Verdict
from scored import ForgetfulModel, episode


def worded(window) -> Verdict | MalformedReply:
    """Falls at 2 s for a second, with one malformed reply in between."""
    second = window.newest.stamp_ns / 1e9
    if second == 2.4:
        return MalformedReply('', 'nothing')
    reason = Reason.FALL if 2 <= second < 3 else Reason.CORRECT
    reward = 0.2 if reason is Reason.FALL else second / 10
    return Verdict(reward, reason, True, (0.0, 0.0, 0.0, 1.0, 0.0, 0.0))


def recorded(folder, one, outcome=worded):
    """An episode and its journal."""
    with Journal(folder / one.name, head_of(one)) as journal:
        score_episode(ForgetfulModel(outcome), one, journal, Windowing(), lambda frame: None)
    return one, read_journal(folder / one.name)


def test_events_are_those_of_the_detector_and_have_the_frames_times(tmp_path):
    """The same as over the windows themselves; a malformed reply neither confirms nor clears."""
    one = episode('a', 30)
    results = collect([recorded(tmp_path, one)], DEFAULTS, {'model': 'm'})
    scored, = results.episodes
    verdicts, _ = judge(ForgetfulModel(worded), (seen.window for seen in windows_of(one)))
    expected = events(JudgedEpisode('a', verdicts), DEFAULTS)
    event, = scored.events
    assert (event.stamp_ns, event.seconds) == (2_200_000_000, 2.2)
    assert (event.reason, event.rule, event.confirmations, event.probability, event.previous_reward) == (
        Reason.FALL, Rule.WORD, 2, 1.0, 0.18)
    assert [one.window.newest.stamp_ns for one in expected] == [event.stamp_ns]
    assert [frame.malformed for frame in scored.frames if frame.reward is None] == ['nothing']
    late = collect([recorded(tmp_path, one)], dataclasses.replace(DEFAULTS, confirmations=4), {})
    assert [event.seconds for event in late.episodes[0].events] == [2.8]
    assert [frame.reward for frame in late.episodes[0].frames] == [frame.reward for frame in scored.frames]


def test_targets_are_labelled_progress_and_nothing_is_made_up(tmp_path):
    """Only between the first and the last labelled moment."""
    labels = Labels(progress=((1.0, 0.0), (3.0, 1.0)))
    scored, = collect([recorded(tmp_path, episode('a', 22, labels=labels))], DEFAULTS, {}).episodes
    targets = {frame.seconds: frame.target for frame in scored.frames}
    assert [targets[second] for second in (0.8, 1.0, 2.0, 3.0, 3.2)] == [None, 0.0, 0.5, 1.0, None]
    assert scored.labels == labels


def test_the_run_says_where_its_numbers_come_from(tmp_path):
    """Failures are listed, time is that of what was scored, and rewards of any size make it unbounded."""
    ones = [
        recorded(tmp_path, episode('a', 22, bad=(9,))), recorded(tmp_path, episode('b', 60, broken_at=50)),
        recorded(tmp_path, episode('c', 12), lambda window: Verdict(-3.5, Reason.NONE, False))]
    results = collect(ones, DEFAULTS, {'model': 'm'}, [('x.mp4', 'x.mp4: no video')])
    assert [one.name for one in results.episodes] == ['a', 'c']
    assert results.failed == (('x.mp4', 'x.mp4: no video'), ('b.mp4', 'b.mp4: damaged after frame 50'))
    seconds = sum(one.seconds for _, one in (ones[0], ones[2]))
    assert results.run == {
        'model': 'm', 'bounded': False, 'windows': 29, 'seconds_per_window': seconds / 29,
        'undecodable': {'a': 1}}
    assert [frame.reward for frame in results.episodes[1].frames] == [-3.5] * 10
    assert collect([], DEFAULTS, {}).run['seconds_per_window'] is None
