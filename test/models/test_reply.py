"""The reply parser: what is a verdict, what is not, and why."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.models.reply import format_reply, parse_reply
from densereward_ros.types import REASONS, MalformedReply, Reason, Verdict

WORDS = 'correct, miss, collision, fall, smooth, failure'


def test_the_model_cards_two_examples_are_read():
    """The card shows the reply once with line breaks inside the tags and once without."""
    expected = Verdict(reward=0.374, reason=Reason.CORRECT, bounded=True, reason_probabilities=None)
    assert parse_reply('<think>\ncorrect\n</think>\n\n0.374') == expected
    assert parse_reply('<think>correct</think>0.374') == expected


@pytest.mark.parametrize('reason', REASONS)
@pytest.mark.parametrize('thousandths', range(0, 1001, 125))
def test_a_formatted_reply_reads_back(reason: Reason, thousandths: int):
    """format_reply writes the card's form, and parse_reply gives back the very reason and reward."""
    text = format_reply(reason, thousandths / 1000)
    assert text == f'<think>\n{reason.word}\n</think>\n\n{thousandths // 1000}.{thousandths % 1000:03d}'
    assert parse_reply(text) == Verdict(thousandths / 1000, reason)


@given(
    st.sampled_from(REASONS),
    st.integers(0, 1000),
    st.lists(st.text(' \t\n\r'), min_size=6, max_size=6),
    st.booleans(),
)
def test_white_space_and_a_missing_opening_tag_change_nothing(reason, thousandths, blanks, with_tag):
    """Every word and every reward survives any white space, with and without the opening tag."""
    a, b, c, d, e, f = blanks
    tag = '<think>' if with_tag else ''
    text = f'{a}{tag}{b}{reason.word}{c}</think>{d}{thousandths / 1000:.3f}{e}{f}'
    assert parse_reply(text) == Verdict(thousandths / 1000, reason)


@pytest.mark.parametrize(
    ('number', 'reward'),
    [
        ('0', 0.0), ('1', 1.0), ('0.5', 0.5), ('1.0', 1.0), ('0.37421', 0.37421),
        ('1.0004', 1.0), ('1.0005', 1.0), ('0.000', 0.0),
    ],
)  # fmt: skip
def test_plain_decimals_are_read_and_rounding_above_one_is_clamped(number: str, reward: float):
    """Half a unit of the third decimal above 1 is a rounding of 1."""
    assert parse_reply(f'<think>miss</think>{number}') == Verdict(reward, Reason.MISS)


@pytest.mark.parametrize(
    ('text', 'why'),
    [
        ('', 'the reply is empty'),
        (' \n', 'the reply is empty'),
        ('0.374', 'no </think>'),
        ('<think>correct 0.374', 'no </think>'),
        ('<think>great</think>0.3', f"unknown word 'great' (allowed: {WORDS})"),
        ('<think>Correct</think>0.3', f"unknown word 'Correct' (allowed: {WORDS})"),
        ('<think></think>0.3', f"unknown word '' (allowed: {WORDS})"),
        ('<think>miss fall</think>0.3', f"unknown word 'miss fall' (allowed: {WORDS})"),
        ('Sure! <think>miss</think>0.3', f"unknown word 'Sure! <think>miss' (allowed: {WORDS})"),
        ('<think><think>miss</think>0.3', f"unknown word '<think>miss' (allowed: {WORDS})"),
        ('<think>miss</think>', 'no reward after </think>'),
        ('<think>miss</think>\n\n', 'no reward after </think>'),
        ('<think>miss</think>1.322', 'reward 1.322 is outside [0, 1]'),
        ('<think>miss</think>1.00051', 'reward 1.00051 is outside [0, 1]'),
        ('<think>miss</think>10', 'reward 10 is outside [0, 1]'),
        ('<think>miss</think>2', 'reward 2 is outside [0, 1]'),
        ('<think>miss</think>0.5 and rising', "text after the reward: 'and rising'"),
        ('<think>miss</think>0.5\n0.6', "text after the reward: '0.6'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(text: str, why: str):
    """Each kind of malformed reply names its own fault."""
    assert parse_reply(text).why == why


@pytest.mark.parametrize(
    'number',
    ['nan', 'inf', '-0.1', '+0.5', '-0', '1e-1', '1E0', '.5', '1.', '0,5', '00.5', '01', '0x1', '0.5%',
     '0.5.', '1_0', '٠.٥', '０.５', '½', 'None', '0.5</think>0.5', '0.\n5'],
)  # fmt: skip
def test_only_plain_decimals_are_rewards(number: str):
    """Signs, exponents, other digits and every other way to write a number are malformed."""
    reply = parse_reply(f'<think>fall</think>{number}')
    assert isinstance(reply, MalformedReply)
    assert reply.why.endswith('is not a reward (a plain decimal number such as 0.374)')


@given(st.text())
def test_no_text_raises_or_looks_like_a_verdict_by_accident(text):
    """Any text gives a MalformedReply (none holds the closing tag), whose fields fit one log line."""
    reply = parse_reply(text)
    assert isinstance(reply, MalformedReply)
    assert (reply.text + reply.why).isprintable()


PIECES = st.sampled_from(
    [
        '<think>',
        '</think>',
        *(reason.word for reason in REASONS),
        '0',
        '1',
        '.',
        '374',
        '-',
        'e',
        ' ',
        '\n',
        '9',
        'nan',
    ]
)


@given(st.lists(PIECES, max_size=12).map(''.join))
def test_whatever_is_put_together_from_the_formats_pieces_is_sound(text):
    """A verdict's reward is in [0, 1] and its word is in the text; everything else says why not."""
    reply = parse_reply(text)
    if isinstance(reply, MalformedReply):
        assert reply.why
    else:
        assert 0.0 <= reply.reward <= 1.0
        assert reply.reason.word in text


@given(st.sampled_from(REASONS), st.integers(0, 1000), st.data())
def test_no_mutation_of_a_good_reply_gives_a_number_out_of_range(reason, thousandths, data):
    """Insert, delete or replace any character: never a reward outside [0, 1]."""
    text = format_reply(reason, thousandths / 1000)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = min(len(text), start + data.draw(st.integers(0, 2)))
        text = text[:start] + data.draw(st.text('0123456789.-+e \n<x', max_size=2)) + text[stop:]
    reply = parse_reply(text)
    assert isinstance(reply, MalformedReply) or 0.0 <= reply.reward <= 1.0


def test_long_and_dangerous_text_is_safe_in_a_log_line():
    """Control characters are escaped, and a reply of a megabyte is clipped; nothing takes long."""
    reply = parse_reply('<think>\x1b[31m\r\nmiss\u202e</think>0.5')
    assert reply.text == r'<think>\x1b[31m\r\nmiss\u202e</think>0.5'
    assert reply.why == rf"unknown word '\x1b[31m\r\nmiss\u202e' (allowed: {WORDS})"
    for text in ('a' * 10**6, '<think>' + ' ' * 10**6 + 'a</think>0.1', '<think>miss</think>' + '9' * 10**6):
        reply = parse_reply(text)
        assert isinstance(reply, MalformedReply)
        assert len(reply.text) == 200
        assert reply.text.endswith('...')
        assert len(reply.why) < 200


@pytest.mark.parametrize('reward', [-0.001, 1.001, math.nan, math.inf])
def test_format_reply_refuses_rewards_out_of_range(reward: float):
    """Training data can only hold rewards that the format allows."""
    with pytest.raises(ValueError, match=r'^reward is .* \(0 to 1 is allowed\)$'):
        format_reply(Reason.CORRECT, reward)


def test_format_reply_refuses_no_reason():
    """A reply must say a word."""
    with pytest.raises(ValueError, match='must name a reason'):
        format_reply(Reason.NONE, 0.5)
