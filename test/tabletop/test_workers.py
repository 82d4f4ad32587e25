"""Work in several processes: every item once, and an error ends it."""

from __future__ import annotations

import pytest

from densereward_ros.models.base import ModelError
from densereward_ros.tabletop.workers import work_through


@pytest.mark.parametrize('processes', [1, pytest.param(2, marks=pytest.mark.slow)])
def test_every_item_comes_back_once(processes):
    """In any order, and the report says what happens."""
    lines = []
    asked = ['name', 'corrected', 'name']  # of the model, by a function that every process can import
    results = list(work_through(getattr, asked, 'tabletop', 'reference', processes, lines.append))
    assert sorted(map(str, results)) == ['0', 'tabletop', 'tabletop']
    assert lines[0] == 'scoring 3 episodes with tabletop'


@pytest.mark.parametrize('processes', [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_model_that_cannot_be_opened_is_an_error_and_no_loop(processes):
    """A pool whose initializer raises would start processes for ever."""
    with pytest.raises(ModelError, match='/nowhere: no such folder'):
        list(work_through(getattr, ['name'], '/nowhere', 'fast', processes, lambda line: None))
