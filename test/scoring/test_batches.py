"""Batches cover an episode's windows once each, and depend on nothing but their number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.models.base import OutOfMemory
from densereward_ros.recordings.windows import windows_of
from densereward_ros.scoring.batches import BATCHES_IN_A_LOT, batches_of, lot_size, score_batch
from scored import ForgetfulModel, episode


@given(st.integers(0, 700), st.integers(1, 12), st.integers(0, 5))
def test_every_window_is_in_one_batch_wherever_scoring_begins(count, batch, lots):
    """From the beginning of any lot on, the batches are those of the whole episode."""
    whole = list(batches_of(iter(range(count)), batch))
    assert [one for each in whole for one in each.windows] == list(range(count))
    assert all(len(each.windows) <= batch for each in whole)
    assert [each.first for each in whole] == [each.windows[0] for each in whole]
    assert [each.first for each in whole if each.begins] == list(range(0, count, lot_size(batch)))
    first = lots * lot_size(batch)
    rest = list(batches_of(iter(range(first, count)), batch, first))
    assert rest == [each for each in whole if each.first >= first]


def test_a_lot_is_one_window_and_then_full_batches():
    """The first window reads the prompt for all others."""
    sizes = [len(each.windows) for each in batches_of(iter(range(2 * lot_size(4))), 4)]
    assert sizes == 2 * [1, *[4] * BATCHES_IN_A_LOT]


def test_no_lot_begins_anywhere_else():
    """Rather than verdicts that differ in the last bits."""
    with pytest.raises(ValueError, match='multiples of 129'):
        next(batches_of(iter(range(300)), 8, 8))


def test_a_model_forgets_at_the_beginning_of_a_lot_only():
    """One that keeps nothing need not be able to."""
    class Model(ForgetfulModel):
        forgot = 0

        def forget(self):
            super().forget()
            self.forgot = len(self.asked)

    model = Model()
    for batch in batches_of(windows_of(episode('a', 40)), 2):
        score_batch(model, batch)
    assert len(model.asked) == 20 and model.forgot == 17  # 38 windows: 1, 16 times 2; 1, 2, 2
    assert score_batch(Plain(), batch) == ['nothing'] * 2


class Plain:
    """A model without a memory."""

    def score(self, windows):
        """The same of all."""
        return ['nothing' for _ in windows]


def test_a_batch_that_does_not_fit_into_memory_is_halved():
    """In order; one window alone that does not fit is the model's error."""
    class Small(ForgetfulModel):
        most = 2

        def score(self, windows):
            if len(windows) > self.most:
                raise OutOfMemory('too many')
            return [window.newest.stamp_ns for window in windows]

    model = Small()
    batch = list(batches_of(windows_of(episode('a', 30)), 7))[1]
    assert score_batch(model, batch) == [one.window.newest.stamp_ns for one in batch.windows]
    model.most = 0
    with pytest.raises(OutOfMemory):
        score_batch(model, batch)
