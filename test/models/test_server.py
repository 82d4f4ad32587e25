"""The reward model on a server, against a stub that says what no real server would."""

from __future__ import annotations

import contextlib
import gzip
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from completion_stub import GOOD, CompletionStub, message, wait_until
from densereward_ros.models.base import Interrupted, ModelError, ModelOptions, Unanswered
from densereward_ros.models.circuit import State
from densereward_ros.models.opening import open_model
from densereward_ros.models.server import ServerModel
from densereward_ros.models.server_address import KEY_VARIABLE
from densereward_ros.models.server_request import REPLY_PATTERN
from densereward_ros.types import ImageError, MalformedReply, Reason, Verdict, Window

pytestmark = pytest.mark.slow  # together they take long

KEY = 'sk-secret-0123456789'
CORRECT = Verdict(0.5, Reason.CORRECT)
TIMEOUT_S = 0.4
SLACK_S = 2.0  # for a machine that is busy with other tests; a server that hangs would take a minute


@pytest.fixture
def stub() -> Iterator[CompletionStub]:
    """A server of the model 'reward'."""
    server = CompletionStub()
    yield server
    server.close()


@pytest.fixture
def opened(stub, monkeypatch) -> Iterator[Callable[..., ServerModel]]:
    """Opens models on the stub, impatient ones if asked, and closes them; `lines`: what the last has told."""
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    models: list[ServerModel] = []

    def start(**options: object) -> ServerModel:
        lines: list[str] = []
        patience = TIMEOUT_S if options.pop('impatient', False) else 10.0
        values = {
            'model': 'reward', 'server_checkpoint': 'tabletop', 'server_url': stub.url,
            'server_timeout': patience, **options}
        models.append(open_model(ModelOptions(engine='server', **values), lines.append))
        start.lines = lines
        return models[-1]

    yield start
    for model in models:
        model.close()


@pytest.fixture
def window(make_window) -> Window:
    """Any window."""
    return make_window()


def timed(call: Callable[[], object]) -> tuple[object, float]:
    """What it returned or raised, and the seconds that it took."""
    started = time.monotonic()
    try:
        outcome: object = call()
    except Exception as error:
        outcome = error
    return outcome, time.monotonic() - started


def failed(model: ServerModel, window: Window) -> str:
    """The error of a score that must fail, within the timeout."""
    outcome, seconds = timed(lambda: model.score([window]))
    assert isinstance(outcome, ModelError), outcome
    assert seconds < TIMEOUT_S + SLACK_S
    assert '\n' not in str(outcome)
    return str(outcome)


def recovered(model: ServerModel, window: Window) -> list:
    """What the model says as soon as it says something."""
    said: list = []

    def ask() -> bool:
        with contextlib.suppress(ModelError):
            said.extend(model.score([window]))
        return bool(said)

    wait_until(ask, 20.0)
    return said


# What a good server gives


def test_a_verdict_comes_from_the_server(stub, opened, window):
    """One warm-up, then one request a window, which says all there is to say."""
    model = opened()
    assert model.score([window]) == [CORRECT]
    assert model.score([]) == []
    assert model.name == 'reward'
    warm_up, asked = stub.exchanges
    assert warm_up.warm_up and not asked.warm_up
    assert asked.body.keys() == {
        'model', 'messages', 'temperature', 'top_p', 'n', 'max_tokens', 'seed', 'logprobs', 'top_logprobs'}
    assert (asked.body['model'], asked.body['temperature'], asked.body['max_tokens']) == ('reward', 0.0, 32)
    assert 'You watch a robot arm' in asked.body['messages'][0]['content']
    assert asked.body['messages'][1]['content'][3] == {'type': 'text', 'text': window.task}
    assert opened.lines == [
        f'reward is ready on {stub.url}: a server of unknown kind; replies are not kept to the format, '
        'probabilities of the words are asked for']


def test_windows_of_a_tick_are_asked_for_at_once_and_come_back_in_order(stub, opened, make_window):
    """Four cameras wait as long as one."""
    together = threading.Barrier(4)

    def answer(exchange):
        together.wait(5)
        number = exchange.body['messages'][1]['content'][3]['text'][-1]
        time.sleep(0.02 * (4 - int(number)))
        return message(f'<think>\nfall\n</think>\n\n0.{number}00')

    stub.answer = answer
    model = opened(server_timeout=10.0)
    windows = [make_window(seed=number, task=f'task {number}') for number in range(4)]
    assert [verdict.reward for verdict in model.score(windows)] == [0.0, 0.1, 0.2, 0.3]
    assert stub.most == 4


@pytest.mark.parametrize(('owner', 'version', 'told', 'extra'), [
    ('vllm', '0.11.2', 'vLLM 0.11.2', {'structured_outputs': {'regex': REPLY_PATTERN}}),
    ('vllm', '0.9.1', 'vLLM 0.9.1', {'guided_regex': REPLY_PATTERN}),
    ('sglang', '', 'SGLang', {'regex': REPLY_PATTERN, 'separate_reasoning': False}),
])
def test_the_kind_is_found_out_and_the_format_constrained(stub, opened, window, owner, version, told, extra):
    """By who owns the model, and by what the server says of itself."""
    stub.owner, stub.version = owner, version
    model = opened()
    assert model.score([window]) == [CORRECT]
    assert extra.items() <= stub.scored[0].body.items()
    assert f'{told}; replies are kept to the format' in opened.lines[-1]
    assert (model.status()['server kind'], model.status()['server keeps the format']) == (told, 'true')
    assert opened(constrain=False).score([window]) == [CORRECT]
    assert not extra.items() <= stub.scored[1].body.items()


def test_what_a_server_refuses_is_not_asked_for_again(stub, opened, window):
    """A proxy that knows no constraints, a server that refuses even n: the plainest request is left."""
    def picky(exchange):
        if exchange.body.keys() - {'model', 'messages', 'temperature', 'top_p', 'max_tokens', 'seed'}:
            return exchange.send(422, b'{"detail": "Unsupported fields in the request"}')
        return message()

    stub.owner, stub.version = 'vllm', '0.12.0'
    stub.answer = stub.warm_up = picky
    model = opened()
    assert [model.score([window]) for _ in range(2)] == [[CORRECT]] * 2
    assert len(stub.exchanges) == 5 + 2
    assert opened.lines[-1].endswith(
        'replies cannot be kept to the format, probabilities of the words it does not tell')


def test_probabilities_of_the_words_come_with_the_verdict(stub, opened, window):
    """From logprobs as vLLM gives them; None where there are none."""
    listed = [{'token': word, 'logprob': value, 'bytes': []} for word, value in (
        ('correct', -0.1), ('miss', -3.0), ('fall', -4.0), ('smooth', -5.0), ('failure', -6.0),
        ('collision', -7.0))]
    tokens = [
        {'token': token, 'logprob': -0.1, 'bytes': [], 'top_logprobs': others}
        for token, others in (('<think>', []), ('\n', []), ('correct', listed), ('\n', []))]
    stub.answer = lambda exchange: message(GOOD, logprobs={'content': tokens})
    model = opened()
    found = model.score([window])[0].reason_probabilities
    assert sum(found) == pytest.approx(1.0) and max(found) == found[0] > 0.9
    stub.answer = lambda exchange: message(GOOD)
    assert model.score([window])[0].reason_probabilities is None


def test_a_reasoning_parser_costs_no_reward(stub, opened, window):
    """The text in reasoning_content, and an empty content."""
    stub.answer = lambda exchange: message('', reasoning_content='<think>\nfall\n</think>\n\n0.250')
    assert opened().score([window]) == [Verdict(0.25, Reason.FALL)]


def test_a_malformed_reply_is_the_models_and_not_the_servers(stub, opened, window):
    """It neither raises nor counts against the server."""
    stub.answer = lambda exchange: message('I think that it fell.')
    model = opened()
    for _ in range(5):
        reply, = model.score([window])
        assert isinstance(reply, MalformedReply) and reply.text == 'I think that it fell.'
    assert model.circuit.state is State.CLOSED


# What a bad one gives: an error within the timeout, and never a reward


@pytest.mark.parametrize(('answer', 'why'), [
    (lambda e: e.hang(), 'gave no answer in time (server_timeout is 0.4 s)'),
    (lambda e: e.drip(), 'gave no answer in time (server_timeout is 0.4 s)'),
    (lambda e: e.flood(), 'sent an answer of more than 1000000 bytes'),
    (lambda e: e.send(200, json.dumps(message('x' * 2_000_000)).encode()), 'sent an answer of more than 1'),
    (lambda e: e.send(200, gzip.compress(json.dumps(message()).encode()), Content_Encoding='gzip'),
     'sent a compressed answer, which nobody asked for'),
    (lambda e: e.send(200, b'<html>It works!</html>'), 'sent no chat completion, but no JSON'),
    (lambda e: e.send(200, b'\xff\xfe\x00'), 'sent no chat completion, but no JSON'),
    (lambda e: e.send(200, b'[' * 200_000), 'sent no chat completion, but no JSON'),
    (lambda e: e.send(200, b''), 'sent no chat completion, but no JSON'),
    (lambda e: e.send(200, b'null'), 'sent no chat completion, but no JSON object'),
    (lambda e: e.send(200, b'{"error": "CUDA\\n"}'), r'sent no chat completion, but an error: CUDA\n'),
    (lambda e: e.send(200, json.dumps(message()).encode()[:40], length=500), 'broke the connection off: '),
    (lambda e: e.cut(), 'broke the connection off: '),
    (lambda e: e.error(500), 'answered 500: the stub says no'),
    (lambda e: e.send(500, b'Internal Server Error', Content_Type='text/plain'),
     'answered 500: Internal Server Error'),
    (lambda e: e.error(503, 'a\nb\x1b[31m'), r'answered 503: a b\x1b[31m'),
    (lambda e: e.error(400, 'image is too large'), 'answered 400: image is too large'),
    (lambda e: e.error(401), 'answered 401 (it wants a key; a key is read from the environment variable'),
    (lambda e: e.error(404, 'The model does not exist.'), 'answered 404: The model does not exist.'),
    (lambda e: e.error(429), 'answered 429: the stub says no'),
    (lambda e: e.send(307, b'', Location='http://elsewhere/v1'),
     "answered 307, a redirect to 'http://elsewhere/v1', which is not followed"),
    (lambda e: e.error(500, 'x' * 5000), 'answered 500: ' + 'x' * 197 + '...'),
], ids=range(22))
def test_a_bad_answer_is_one_line_in_time_and_no_reward(stub, opened, window, answer, why):
    """Whatever it is; the server is used again as soon as it answers well."""
    model = opened(impatient=True)
    stub.answer = answer
    assert why in failed(model, window)
    assert failed(model, window).startswith(stub.url)
    stub.answer = lambda exchange: message()
    assert recovered(model, window) == [CORRECT]


def test_a_passing_fault_is_tried_again_within_the_tick(stub, opened, window):
    """A 503, a closed connection, and then the answer: no reward is lost. What cannot help is not tried."""
    faults = [lambda e: e.error(503), lambda e: e.cut(), lambda e: message()]
    stub.answer = lambda exchange: faults[len(stub.scored) - 1](exchange)
    model = opened(server_timeout=5.0)
    assert model.score([window]) == [CORRECT]
    assert len(stub.scored) == 3
    assert model.status()['server requests without answer'] == '2'
    stub.answer = lambda exchange: exchange.error(400)
    failed(model, window)
    assert len(stub.scored) == 4


def test_a_window_without_an_answer_costs_the_others_nothing(stub, opened, make_window):
    """Unanswered carries what came; its camera gets nothing."""
    stub.answer = lambda e: e.hang() if 'slow' in str(e.body['messages'][1]['content'][3]) else message()
    model = opened(impatient=True)
    windows = [make_window(task=task) for task in ('one', 'slow', 'three')]
    outcome, seconds = timed(lambda: model.score(windows))
    assert isinstance(outcome, Unanswered) and 'no answer in time' in str(outcome)
    assert outcome.outcomes == [CORRECT, None, CORRECT]
    assert seconds < TIMEOUT_S + SLACK_S
    assert model.circuit.state is State.CLOSED


def test_a_dead_server_is_left_alone_and_used_again_when_it_answers(stub, opened, window, monkeypatch):
    """After three ticks each score() fails at once, without a request; then one warm-up decides."""
    monkeypatch.setattr('densereward_ros.models.circuit.FIRST_PAUSE_S', 0.3)
    model = opened(impatient=True)
    stub.answer = stub.warm_up = lambda exchange: exchange.error(500)
    for _ in range(3):
        failed(model, window)
    assert model.status()['server circuit'] == 'open'
    assert model.status()['last server error'] == f'{stub.url} answered 500: the stub says no'
    before = len(stub.exchanges)
    outcome, seconds = timed(lambda: model.score([window]))
    assert 'answered 500: the stub says no (asked again in 0.' in str(outcome)
    assert seconds < 0.1 and len(stub.exchanges) == before
    wait_until(lambda: model.circuit.state is State.HALF_OPEN)
    failed(model, window)  # still dead: half-open, and open again
    assert model.circuit.state is State.OPEN
    assert [exchange.warm_up for exchange in stub.exchanges[before:]] == [True]
    stub.answer = stub.warm_up = lambda exchange: message()
    wait_until(lambda: model.circuit.state is State.HALF_OPEN)
    assert recovered(model, window) == [CORRECT]
    assert model.status()['server circuit'] == 'closed'
    assert opened.lines[-1].startswith('reward is ready on')


def test_a_server_that_came_back_as_another_kind_is_asked_in_its_own_words(stub, opened, window, monkeypatch):
    """An update, or a failover: what it refuses is found out anew."""
    monkeypatch.setattr('densereward_ros.models.circuit.FIRST_PAUSE_S', 0.05)
    model = opened(impatient=True)
    stub.answer = lambda exchange: exchange.error(500)
    for _ in range(3):
        failed(model, window)
    stub.owner, stub.version, stub.answer = 'vllm', '0.12.0', lambda exchange: message()
    wait_until(lambda: model.circuit.state is State.HALF_OPEN)
    assert recovered(model, window) == [CORRECT]
    assert 'structured_outputs' in stub.scored[-1].body


def test_a_server_that_is_slow_to_come_back_is_waited_for(stub, opened, window, monkeypatch):
    """Longer than a tick lasts: no tick is longer for it, and it is asked once."""
    monkeypatch.setattr('densereward_ros.models.circuit.FIRST_PAUSE_S', 0.05)
    model = opened(impatient=True)
    stub.answer = lambda exchange: exchange.error(500)
    for _ in range(3):
        failed(model, window)
    ready, before = threading.Event(), len(stub.exchanges)
    stub.warm_up = lambda exchange: message() if ready.wait(20) else None
    stub.answer = lambda exchange: message()
    wait_until(lambda: model.circuit.state is State.HALF_OPEN)
    for _ in range(2):
        assert failed(model, window) == f'{stub.url} is asked whether it is there again'
    assert model.circuit.state is State.HALF_OPEN
    assert [exchange.warm_up for exchange in stub.exchanges[before:]] == [True]
    ready.set()
    assert recovered(model, window) == [CORRECT]
    assert [exchange.warm_up for exchange in stub.exchanges[before:]] == [True, False]


def test_a_wish_to_be_left_alone_is_followed(stub, opened, window):
    """Retry-After longer than the tick opens the circuit at once."""
    model = opened(impatient=True)
    stub.answer = lambda exchange: exchange.error(429, Retry_After='7')
    failed(model, window)
    assert (model.circuit.state, round(model.circuit.rest_s)) == (State.OPEN, 7)
    assert len(stub.scored) == 1


# interrupt and close


def test_interrupt_ends_a_running_score_at_once(stub, opened, window):
    """From another thread; it stays so until resume(), and counts against nobody."""
    stub.answer = lambda exchange: exchange.hang()
    model = opened(server_timeout=30.0)
    threading.Timer(0.2, model.interrupt).start()
    outcome, seconds = timed(lambda: model.score([window]))
    assert isinstance(outcome, Interrupted)
    assert 0.1 < seconds < 0.6
    with pytest.raises(Interrupted):
        model.score([window])
    model.resume()
    stub.answer = lambda exchange: message()
    assert model.score([window]) == [CORRECT]
    assert model.circuit.last_error == ''


def test_a_closed_model_says_so_and_leaves_no_thread(opened, window):
    """May be closed twice."""
    before = set(threading.enumerate())
    model = opened()
    model.close()
    model.close()
    wait_until(lambda: not [
        thread for thread in set(threading.enumerate()) - before
        if thread.name.startswith(('server', 'asyncio'))])
    with pytest.raises(ModelError, match='reward is closed'):
        model.score([window])


def test_what_no_model_can_take_is_refused_before_anything_is_sent(stub, opened, make_window):
    """As a local model does; it counts against nobody."""
    model = opened()
    with pytest.raises(ImageError, match='2x500 pixels'):
        model.score([make_window(500, 2)])
    with pytest.raises(ValueError, match='chat-template tokens'):
        model.score([make_window(task='end <|im_end|>')])
    assert stub.scored == []
    model.prepare([make_window()])
    assert stub.scored == []


# At open


def test_a_server_that_is_not_there_is_a_warning_and_is_used_when_it_comes(opened, window, monkeypatch):
    """A robot may be up before its server."""
    monkeypatch.setattr('densereward_ros.models.circuit.FIRST_PAUSE_S', 0.05)
    late = CompletionStub()
    late.close()
    model = opened(server_url=late.url, impatient=True)
    line, = opened.lines
    assert line.startswith(
        'warning: no reward until the server answers, which is tried again: '
        f'{late.url} cannot be reached: ConnectError')
    assert model.status()['server circuit'] in ('open', 'half-open')
    assert 'cannot be reached' in failed(model, window)


def test_a_connection_that_breaks_at_the_first_question_is_no_server_that_is_away(stub, opened, window):
    """As that of `transformers serve`, which hangs up when it has failed to list its models."""
    faults = [lambda e: e.cut(), lambda e: message()]
    stub.warm_up = lambda exchange: faults[len(stub.exchanges) - 1](exchange)
    model = opened()
    assert len(opened.lines) == 1 and opened.lines[0].startswith('reward is ready on')
    assert model.score([window]) == [CORRECT]


@pytest.mark.parametrize('status', [500, 503, 429])
def test_a_server_that_is_not_ready_is_a_warning(stub, opened, window, status, monkeypatch):
    """It may still be loading its model."""
    monkeypatch.setattr('densereward_ros.models.circuit.FIRST_PAUSE_S', 0.05)
    stub.warm_up = lambda exchange: exchange.error(status, 'loading')
    model = opened()
    assert f'{stub.url} answered {status}: loading' in opened.lines[0]
    stub.warm_up = lambda exchange: message()
    wait_until(lambda: model.circuit.state is State.HALF_OPEN)
    assert recovered(model, window) == [CORRECT]


@pytest.mark.parametrize(('change', 'options', 'why'), [
    ({'warm_up': lambda e: e.error(401)}, {},
     'answered 401 (it wants a key; a key is read from the environment variable DENSEREWARD_SERVER_KEY)'),
    ({'warm_up': lambda e: e.error(404, 'The model `x` does not exist.')}, {'model': 'x'},
     "does not serve the model 'x' (it serves reward: set model to one of them)"),
    ({'warm_up': lambda e: e.error(400, 'no'), 'models': ['a', 'b', 'c', 'd', 'e', 'f']}, {'model': 'x'},
     "does not serve the model 'x' (it serves a, b, c, d, e, ...: set model to one of them)"),
    ({'warm_up': lambda e: e.error(404, 'Not Found'), 'models': None}, {}, 'answered 404: Not Found'),
    ({'warm_up': lambda e: e.send(308, b'', Location='https://robot/v1')}, {},
     "answered 308, a redirect to 'https://robot/v1', which is not followed: set server_url to where"),
    ({}, {'server_url': 'robot:8000'}, "server_url is 'robot:8000', which is no URL of a server"),
    ({}, {'server_checkpoint': 'nothing'}, 'no system prompt for nothing'),
])
def test_what_waiting_cannot_mend_fails_in_one_line(stub, opened, change, options, why):
    """A wrong key, name or URL; and no thread is left."""
    for name, value in change.items():
        setattr(stub, name, value)
    before = set(threading.enumerate())
    with pytest.raises(ModelError) as caught:
        opened(**options)
    assert why in str(caught.value)
    assert '\n' not in str(caught.value)
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == 'server']


def test_a_model_that_is_not_listed_is_tried_all_the_same(stub, opened, window):
    """Hosted endpoints and transformers serve list other things than they serve."""
    stub.models = ['another']
    assert opened().score([window]) == [CORRECT]


@pytest.mark.parametrize('name', ['openai', 'torch'])
def test_what_this_engine_needs_and_what_not(stub, name):
    """openai, said in one line where it is missing; and never torch, so that the node starts in a second."""
    script = (
        'import sys\n'
        f'sys.modules[{name!r}] = None\n'
        'from densereward_ros.models.base import ModelOptions\n'
        'from densereward_ros.models.opening import open_model\n'
        f"options = ModelOptions(engine='server', model='tabletop', server_url={stub.url!r})\n"
        'try:\n'
        '    open_model(options, print).close()\n'
        'except Exception as error:\n'
        '    print(type(error).__name__, error)\n')
    done = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True, env=os.environ)
    assert done.stderr == ''
    if name == 'openai':
        assert done.stdout.startswith('ModelError openai not installed for')
        assert '-m pip install openai' in done.stdout
    else:
        assert done.stdout.startswith('tabletop is ready on')


@pytest.mark.parametrize(('options', 'why'), [
    ({'engine': 'fast', 'server_url': 'http://robot/v1'}, "server_url is set, and engine is 'fast'"),
    ({'engine': 'server', 'image_format': 'webp'}, "image_format is 'webp' (png, jpeg are allowed)"),
    ({'engine': 'server', 'jpeg_quality': 0}, 'jpeg_quality is 0 (1 to 100 are allowed)'),
    ({'engine': 'server', 'server_timeout': 0.0}, 'server_timeout is 0.0 (0.05 to 600 seconds are allowed)'),
    ({'engine': 'server'}, "engine is 'server', and server_url is empty"),
])
def test_options_that_no_server_can_honour(options, why):
    """One line each."""
    with pytest.raises(ModelError) as caught:
        open_model(ModelOptions(**options))
    assert why in str(caught.value)


# The key


def test_the_key_is_sent_and_is_in_no_log(stub, opened, window, monkeypatch, caplog, capfd):
    """With every logger at its most talkative, and a server that quotes it in all its errors."""
    model_free = opened()
    assert model_free.score([window]) == [CORRECT]
    assert 'authorization' not in {name.lower() for name in stub.scored[0].headers}
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setenv('OPENAI_API_KEY', 'sk-another')
    monkeypatch.setenv('OPENAI_ORG_ID', 'org-another')
    monkeypatch.setenv('OPENAI_LOG', 'debug')
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    model = opened(impatient=True)
    told += opened.lines
    assert recovered(model, window) == [CORRECT]
    headers = stub.scored[1].headers
    assert headers['Authorization'] == f'Bearer {KEY}'
    assert not [value for value in headers.values() if 'another' in value]
    for status in (400, 401, 500):
        stub.answer = lambda e, status=status: e.error(status, f'wrong key {e.headers["Authorization"]}')
        error, _ = timed(lambda: model.score([window]))
        assert 'wrong key Bearer ***' in str(error)
        told += [str(error), repr(error), str(model.status())]
    stub.warm_up = lambda exchange: exchange.error(403, f'{KEY} may not')
    with pytest.raises(ModelError, match=r'the key was refused; .*\): \*\*\* may not') as caught:
        opened()
    told += [str(caught.value), caplog.text, *capfd.readouterr()]
    assert KEY not in '\n'.join(told)
    assert 'sk-another' not in '\n'.join(told)
