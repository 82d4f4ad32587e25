"""The model's reply: text to verdict, and back."""

from __future__ import annotations

import re
from decimal import Decimal

from densereward_ros.text import one_line
from densereward_ros.types import REASON_OF_WORD, MalformedReply, Reason, Verdict

_MAX_TEXT = 200
_MAX_QUOTE = 60
_OPENING_TAG = '<think>'
_CLOSING_TAG = '</think>'

# ASCII throughout: a full-width digit or a no-break space is not what the model was trained to write.
_NUMBER = re.compile(r'(?:0|[1-9][0-9]*)(?:\.[0-9]+)?')
_WHITE = ' \t\r\n\f\v'

# The reward is written with three decimals, so a value that lies outside [0, 1] by no more than
# half a unit of the last one is a rounding of 1 and is clamped. Anything further outside is not:
# a trained model has been seen to write 1.322, which says that it has lost the thread, and a
# controller should rather get no reward than a confident 1.
_ROUNDING = Decimal('0.0005')


def parse_reply(text: str) -> Verdict | MalformedReply:
    """Read '<think>WORD</think> REWARD', the reply format of the model card.

    White space is free and the opening tag may be missing; everything else is strict. The reward
    of a Verdict lies in [0, 1]. A MalformedReply carries the text, escaped and clipped to be safe
    in one log line, and a precise reason. Never raises.
    """
    head, tag, tail = text.partition(_CLOSING_TAG)
    if not text.strip(_WHITE):
        return _malformed(text, 'the reply is empty')
    if not tag:
        return _malformed(text, f'no {_CLOSING_TAG}')
    word = head.strip(_WHITE).removeprefix(_OPENING_TAG).strip(_WHITE)
    reason = REASON_OF_WORD.get(word)
    if reason is None:
        return _malformed(text, f'unknown word {_quote(word)} (allowed: {", ".join(REASON_OF_WORD)})')
    number = tail.strip(_WHITE)
    if not number:
        return _malformed(text, f'no reward after {_CLOSING_TAG}')
    if not _NUMBER.fullmatch(number):
        return _malformed(text, _why_no_number(number))
    reward = Decimal(number)
    if reward > 1 + _ROUNDING:
        return _malformed(text, f'reward {one_line(number, _MAX_QUOTE)} is outside [0, 1]')
    return Verdict(reward=min(float(reward), 1.0), reason=reason)


def format_reply(reason: Reason, reward: float) -> str:
    """The reply that says this, exactly as the model card writes it. reward: in [0, 1].

    Raises ValueError for Reason.NONE and for a reward outside [0, 1] or NaN.
    """
    if reason is Reason.NONE:
        raise ValueError('a reply must name a reason; Reason.NONE is none')
    if not 0 <= reward <= 1:
        raise ValueError(f'reward is {reward} (0 to 1 is allowed)')
    return f'{_OPENING_TAG}\n{reason.word}\n{_CLOSING_TAG}\n\n{reward:.3f}'


def _why_no_number(number: str) -> str:
    """What is wrong with the text after the closing tag."""
    start = _NUMBER.match(number)
    if start and number[start.end()] in _WHITE:
        return f'text after the reward: {_quote(number[start.end() :].strip(_WHITE))}'
    return f'{_quote(number)} is not a reward (a plain decimal number such as 0.374)'


def _malformed(text: str, why: str) -> MalformedReply:
    return MalformedReply(text=one_line(text, _MAX_TEXT), why=why)


def _quote(text: str) -> str:
    return f"'{one_line(text, _MAX_QUOTE)}'"
