"""When a server is left alone, and when it is asked again."""

from __future__ import annotations

import pytest

from densereward_ros.models.circuit import FAILURES, FIRST_PAUSE_S, LONGEST_PAUSE_S, Circuit, State


@pytest.fixture
def clock() -> list[float]:
    """Its first item is the time in seconds, which the test moves."""
    return [100.0]


@pytest.fixture
def circuit(clock) -> Circuit:
    """A closed one."""
    return Circuit(lambda: clock[0])


def test_it_opens_at_the_third_failure_in_a_row(circuit):
    """Two, a success, and two more are no reason."""
    assert FAILURES == 3
    for _ in range(2):
        circuit.failed('one')
        circuit.failed('two')
        assert circuit.state is State.CLOSED
        circuit.succeeded()
    for why in ('one', 'two', 'three'):
        assert circuit.state is State.CLOSED
        circuit.failed(why)
    assert (circuit.state, circuit.last_error) == (State.OPEN, 'three')


def test_after_the_pause_the_next_question_decides(circuit, clock):
    """A success closes it for good: three more failures are needed again. The last error stays to be read."""
    circuit.failed('no connection', at_once=True)
    assert circuit.state is State.OPEN
    assert 0.8 * FIRST_PAUSE_S <= circuit.rest_s <= 1.2 * FIRST_PAUSE_S
    clock[0] += 1.2 * FIRST_PAUSE_S
    assert (circuit.state, circuit.rest_s) == (State.HALF_OPEN, 0.0)
    circuit.succeeded()
    assert (circuit.state, circuit.last_error) == (State.CLOSED, 'no connection')
    circuit.failed('slow')
    assert circuit.state is State.CLOSED


def test_the_pause_doubles_up_to_ten_seconds(circuit, clock):
    """A server that came back is used within twelve seconds, however long it was away."""
    pauses = []
    for _ in range(8):
        circuit.failed('dead', at_once=True)
        pauses.append(circuit.rest_s)
        clock[0] += circuit.rest_s
        assert circuit.state is State.HALF_OPEN
    for pause, wanted in zip(pauses, (1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0)):
        assert 0.8 * wanted <= pause <= 1.2 * wanted
    assert LONGEST_PAUSE_S == 10.0


def test_robots_do_not_come_back_in_the_same_moment():
    """Of twenty that lost one server together."""
    rests = set()
    for _ in range(20):
        circuit = Circuit(lambda: 0.0)
        circuit.failed('dead', at_once=True)
        rests.add(circuit.rest_s)
    assert len(rests) == 20


@pytest.mark.parametrize(('wish', 'least', 'most'), [(0.0, 0.8, 1.2), (7.0, 7.0, 7.0), (3600.0, 60.0, 60.0)])
def test_a_servers_wish_is_followed_within_reason(circuit, wish, least, most):
    """Retry-After opens it at once; an hour is no answer for a robot."""
    circuit.failed('too many requests', at_once=not wish, wish_s=wish)
    assert least <= circuit.rest_s <= most
