"""However a run is cut, it ends with the verdicts of one that was not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from densereward_ros.models.base import ModelError
from densereward_ros.scoring.batches import lot_size
from densereward_ros.scoring.journal import Journal, read_journal
from densereward_ros.scoring.run import Windowing, head_of, score_episode
from densereward_ros.types import MalformedReply
from scored import ForgetfulModel, episode

BATCH = 2
WINDOWS = lot_size(BATCH) * 2 + 9


def score(file, one, model=None, watch=lambda frame: None):
    """Score an episode into a journal; what the journal then holds."""
    with Journal(file, head_of(one)) as journal:
        score_episode(model or ForgetfulModel(), one, journal, Windowing(batch=BATCH), watch)
    return read_journal(file)


@pytest.fixture(scope='module')
def uncut(tmp_path_factory):
    """The journal of a run that was not cut."""
    file = tmp_path_factory.mktemp('uncut') / 'a'
    recorded = score(file, episode('a', WINDOWS + 2, bad=(30, 50)))
    assert recorded.complete and len(recorded.frames) == WINDOWS - 2
    return file.read_bytes(), recorded


@settings(max_examples=60)
@given(st.data())
def test_any_cut_gives_the_same_verdicts(tmp_path_factory, uncut, data):
    """Cut twice, at any byte: no verdict is lost, repeated or other; at most a lot is scored again."""
    text, whole = uncut
    file = tmp_path_factory.mktemp('cut') / 'a'
    one = episode('a', WINDOWS + 2, bad=(30, 50))
    cut = data.draw(st.integers(0, len(text)))
    file.write_bytes(text[:cut])
    score_until(data.draw(st.integers(0, 20)), file, one)
    text = file.read_bytes()
    file.write_bytes(text[:max(0, len(text) - data.draw(st.integers(0, 300)))])
    kept = len(read_journal(file).frames)
    model = ForgetfulModel()
    recorded = score(file, one, model)
    assert recorded.frames == whole.frames
    assert (recorded.complete, recorded.undecodable) == (True, 2)
    asked = sum(map(len, model.asked))
    assert len(whole.frames) - kept <= asked < len(whole.frames) - kept + lot_size(BATCH)


def score_until(calls, file, one) -> None:
    """A model that fails after so many batches."""
    model = ForgetfulModel()

    def stop(frame):
        if len(model.asked) >= calls:
            raise ModelError('the GPU fell off the bus')

    if read_journal(file).complete:
        return
    try:
        score(file, one, model, watch=stop)
    except ModelError:
        pass


def test_a_cut_within_a_lot_scores_the_lot_again_and_writes_the_rest(tmp_path):
    """So the model is in the state that it was in."""
    one, file = episode('a', WINDOWS + 2), tmp_path / 'a'
    score_until(3, file, one)
    assert len(read_journal(file).frames) == 5  # 1, 2 and 2
    model = ForgetfulModel()
    score(file, one, model)
    assert model.asked[0][0].newest.stamp_ns == 400_000_000
    score_until(20, tmp_path / 'b', one)
    model = ForgetfulModel()
    score(tmp_path / 'b', one, model)
    assert model.asked[0][0].newest.stamp_ns == 400_000_000 + lot_size(BATCH) * 200_000_000
    assert read_journal(tmp_path / 'b').frames == read_journal(file).frames


def test_malformed_replies_are_kept_as_what_they_are(tmp_path):
    """Without a reward, and with what was wrong."""
    def outcome(window):
        return MalformedReply('?', 'no number') if window.newest.stamp_ns == 600_000_000 else None

    recorded = score(tmp_path / 'a', episode('a', 6), ForgetfulModel(outcome))
    assert [(frame.malformed, frame.reward is None) for frame in recorded.frames] == [
        ('', False), ('no number', True), ('', False), ('', False)]
    frame = recorded.frames[1]
    assert (frame.frame, frame.stamp_ns, frame.seconds, frame.log_ns) == (3, 600_000_000, 0.6, 7_600_000_000)
    assert frame.window_ns == (200_000_000, 400_000_000, 600_000_000)


@pytest.mark.parametrize(('one', 'why'), [
    (episode('a', 40, broken_at=25), 'a.mp4: damaged after frame 25'),
    (episode('a', 2), 'a.mp4: too short for a verdict, which takes three frames 0.2 s apart'),
    (episode('a', 0), 'a.mp4: too short for a verdict, which takes three frames 0.2 s apart'),
    (episode('a', 3, bad=range(3)), 'a.mp4: 1 images cannot be decoded (picture 0 is damaged)'),
])
def test_a_recording_that_cannot_be_scored_says_why(tmp_path, one, why):
    """In its journal, so that the others go on; and it is tried again the next time."""
    recorded = score(tmp_path / 'a', one)
    assert (recorded.failed, recorded.complete) == (why, False)
    assert score(tmp_path / 'a', episode('a', 40)).complete


def test_what_the_model_refuses_is_the_recordings_fault_and_what_breaks_it_is_not(tmp_path):
    """A task with a special token costs its recording; a model that fails ends the run."""
    def refuse(window):
        raise ValueError("the task holds '<|x|>', a special token of this model")

    def fail(window):
        raise ModelError('out of order')

    recorded = score(tmp_path / 'a', episode('a', 9), ForgetfulModel(refuse))
    assert recorded.failed == "a.mp4: the task holds '<|x|>', a special token of this model"
    with pytest.raises(ModelError, match='out of order'):
        score(tmp_path / 'b', episode('b', 9), ForgetfulModel(fail))
    assert not read_journal(tmp_path / 'b').failed


@pytest.mark.parametrize('now', [episode('a', 20, bad=(3,)), episode('a', 4)])
def test_a_recording_that_changed_since_is_told_and_then_scored_anew(tmp_path, now):
    """Verdicts of two recordings are not mixed."""
    score_until(4, tmp_path / 'a', episode('a', 40))
    assert 'has changed since a part of it was scored' in score(tmp_path / 'a', now).failed
    assert score(tmp_path / 'a', now).complete
