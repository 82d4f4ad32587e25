"""What a server's answer says: text in several places, probabilities, and garbage."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion_stub import GOOD, message
from densereward_ros.models.server_reply import NoCompletion, read_answer, reply_text, word_probabilities
from densereward_ros.types import REASONS, MalformedReply, Reason, Verdict

FALL = Verdict(0.374, Reason.FALL)


@pytest.mark.parametrize('fields', [
    {'content': '<think>\nfall\n</think>\n\n0.374'},
    {'content': 'fall\n</think>\n\n0.374'},
    {'content': '\n\n0.374', 'reasoning_content': '\nfall\n'},
    {'content': '0.374', 'reasoning_content': 'fall'},
    {'content': '0.374', 'reasoning': 'fall'},
    {'content': '0.374', 'reasoning_content': '<think>fall'},
    {'content': '', 'reasoning_content': '<think>\nfall\n</think>\n\n0.374'},
    {'content': None, 'reasoning_content': 'fall\n</think>\n\n0.374'},
    {'content': None, 'reasoning_content': 'fall\n\n\n0.374'},
    {'content': '', 'reasoning': '<think>\nfall\n0.374'},
    {'content': '<think>\nfall\n</think>\n\n0.374', 'reasoning_content': 'fall'},
    {'content': '<think>\nfall\n</think>\n\n0.374', 'reasoning_content': None},
], ids=json.dumps)
def test_the_think_block_is_found_wherever_a_parser_puts_it(fields):
    """All of it, its inside or nothing moved to reasoning_content (vLLM since 0.12: reasoning)."""
    assert read_answer(message(**fields)) == FALL


@pytest.mark.parametrize(('fields', 'why'), [
    ({'content': '0.374'}, 'no </think>'),
    ({'content': ''}, 'the reply is empty'),
    ({'content': None}, 'the reply is empty'),
    ({'content': 'fall 0.374'}, 'no </think>'),
    ({'content': None, 'reasoning_content': 'fall'}, 'no reward after </think>'),
    ({'content': None, 'reasoning_content': 'I think it fell 0.374'}, 'unknown word'),
    ({'content': None, 'reasoning_content': 'fall 1.374'}, 'outside [0, 1]'),
    ({'content': '<think>\nfall\n</think>\n\n0.37</s>'}, 'not a reward'),
], ids=json.dumps)
def test_what_is_no_reply_stays_malformed(fields, why):
    """A parser that throws the word away leaves a number without one, and no reward is made of it."""
    reply = read_answer(message(**fields))
    assert isinstance(reply, MalformedReply)
    assert why in reply.why


@pytest.mark.parametrize(('answer', 'why'), [
    (None, 'no JSON object'),
    ([], 'no JSON object'),
    ('text', 'no JSON object'),
    ({}, 'no choices'),
    ({'choices': []}, 'no choices'),
    ({'choices': {}}, 'no choices'),
    ({'choices': [1]}, 'a choice without a message'),
    ({'choices': [{'message': GOOD}]}, 'a choice without a message'),
    ({'choices': [{'message': {'content': [{'type': 'text', 'text': GOOD}]}}]}, 'a message without text'),
    ({'choices': [{'message': {'content': GOOD, 'reasoning': 5}}]}, 'a message without text'),
    ({'error': 'CUDA', 'choices': [{'message': {'content': GOOD}}]}, 'an error: CUDA'),
])
def test_garbage_is_no_answer(answer, why):
    """It counts against the server, and is no reply of the model."""
    with pytest.raises(NoCompletion) as caught:
        read_answer(answer)
    assert str(caught.value) == why


NAMES = ['choices', 'message', 'content', 'reasoning', 'logprobs', 'token', 'top_logprobs']
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=20)


@settings(max_examples=40)
@given(JSON)
def test_no_answer_whatever_breaks_it(answer):
    """Any JSON is a verdict, a malformed reply, or NoCompletion."""
    try:
        assert isinstance(read_answer(answer), (Verdict, MalformedReply))
    except NoCompletion:
        pass


@settings(max_examples=40)
@given(JSON)
def test_no_logprobs_whatever_break_it(logprobs):
    """Nor cost a verdict its reward."""
    verdict = read_answer(message(GOOD, logprobs={'content': logprobs}))
    assert (verdict.reward, verdict.reason) == (0.5, Reason.CORRECT)
    assert verdict.reason_probabilities is None


@given(st.text(), st.text())
def test_what_a_parser_moved_is_never_lost(reasoning, content):
    """All text of both places is in the reply, but for the white space and the tag around a bare word."""
    text = reply_text({'content': content, 'reasoning_content': reasoning})
    if not reasoning or '</think>' in content:
        assert text == content
    else:
        inside = ''.join((reasoning + content).replace('<think>', '').replace('</think>', '').split())
        assert ''.join(text.replace('<think>', '').replace('</think>', '').split()) == inside


def entry(token: str, probability: float = 1.0, **others: float) -> dict:
    """One token as vLLM lists it, with the likeliest others; a key '_' in a name stands for a line break."""
    listed = {token: probability, **{name.replace('_', '\n'): p for name, p in others.items()}}
    return {
        'token': token, 'logprob': math.log(probability), 'bytes': list(token.encode()),
        'top_logprobs': [
            {'token': name, 'logprob': math.log(p) if p else -9999.0, 'bytes': list(name.encode())}
            for name, p in listed.items()]}


def around(*word: dict) -> dict:
    """The logprobs of a whole reply with these entries for its word."""
    return {'content': [
        entry('<think>'), entry('\n'), *word, entry('\n'), entry('</think>'), entry('\n\n'), entry('0'),
        entry('.'), entry('3'), entry('7'), entry('4')]}


def test_probabilities_come_from_the_tokens_listed_at_the_word():
    """All six words, among each other: what other tokens have is not theirs."""
    logprobs = around(
        entry('fall', 0.6, correct=0.1, miss=0.05, collision=0.03, smooth=0.01, failure=0.01, the=0.2))
    found = word_probabilities(logprobs, Reason.FALL)
    assert sum(found) == pytest.approx(1.0)
    assert dict(zip(REASONS, found)) == {
        Reason.CORRECT: pytest.approx(0.125), Reason.MISS: pytest.approx(0.0625),
        Reason.COLLISION: pytest.approx(0.0375), Reason.FALL: pytest.approx(0.75),
        Reason.SMOOTH: pytest.approx(0.0125), Reason.FAILURE: pytest.approx(0.0125)}
    verdict = read_answer(message('<think>\nfall\n</think>\n\n0.374', logprobs=logprobs))
    assert verdict.reason_probabilities == found


def test_a_word_that_is_not_listed_has_nothing_when_nothing_is_left():
    """Twenty tokens with all but half a percent; -9999 is how vLLM writes a token that was forbidden."""
    found = word_probabilities(around(entry('fall', 0.98, correct=0.018, miss=0.0)), Reason.FALL)
    assert found == pytest.approx((0.018 / 0.998, 0.0, 0.0, 0.98 / 0.998, 0.0, 0.0))


def test_words_of_several_tokens_are_known_by_their_first():
    """The longest that is listed; 'coll' and 'c' begin the same word."""
    logprobs = around(entry('coll', 0.7, corr=0.1, f=0.05, fall=0.05, sm=0.05, m=0.049), entry('ision'))
    found = word_probabilities(logprobs, Reason.COLLISION)
    assert found == pytest.approx(tuple(p / 0.999 for p in (0.1, 0.049, 0.7, 0.05, 0.05, 0.05)))


@pytest.mark.parametrize(('logprobs', 'why'), [
    (None, 'the server gives none'),
    ({'content': None}, 'nor in this case'),
    ({'content': []}, 'no tokens'),
    ({'content': [entry('<think>'), entry('\n')]}, 'cut before the word'),
    ({'content': [{'token': 'token_id:151667', 'logprob': 0.0, 'top_logprobs': []}]}, 'tokens as numbers'),
    (around(entry('fall', 0.9)), 'a tenth is left, and nobody knows whose it is'),
    (around({**entry('fall', 0.9), 'top_logprobs': None}), 'no others'),
    (around(entry('f', 0.5, correct=0.2, miss=0.1, collision=0.1, smooth=0.1), entry('all')), 'f is two'),
    (around(entry('fall', 0.3, correct=0.7)), 'another word was likelier: counted in another way'),
    (around(entry(' fall', 0.999)), 'a token with a blank, of another format'),
    (around({**entry('fall', 0.999), 'logprob': 'high'}), 'no number'),
    (around({**entry('fall', 0.999), 'logprob': math.nan, 'top_logprobs': []}), 'not a number'),
])
def test_what_cannot_be_told_is_none(logprobs, why):
    """And never a guess; the reward is there all the same."""
    assert word_probabilities(logprobs, Reason.FALL) is None, why
    assert read_answer(message('<think>\nfall\n</think>\n\n0.374', logprobs=logprobs)) == FALL
