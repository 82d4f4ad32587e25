"""A server's answer as a verdict: its text, wherever a reasoning parser has put it, and probabilities."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from densereward_ros.models.reply import parse_reply
from densereward_ros.types import REASONS, MalformedReply, Reason, Verdict

_CLOSING_TAG = '</think>'
# Where the word begins, in the text of the tokens before it.
_AT_WORD = re.compile(r'\s*(?:<think>\s*)?')
# What a parser leaves of a reply when it takes both tags for the reasoning's own.
_BARE = re.compile(r'\s*(?:<think>)?\s*(\S+)\s+(\S+)\s*')
# The words that are not among the tokens listed have no more than what those leave of 1. Below this it
# changes no verdict, and counts as nothing; above it, nobody can say which word has it.
_UNLISTED = 0.005


class NoCompletion(ValueError):
    """An answer that is no chat completion; the text says what is missing."""


def read_answer(answer: Any) -> Verdict | MalformedReply:
    """The verdict of a chat completion, as JSON knows it. Raises NoCompletion for anything else.

    The verdict carries probabilities of the six words where the answer lists the likeliest tokens at the
    word, and all six of them or all but half a percent of probability; None otherwise.
    """
    choice = _first_choice(answer)
    verdict = parse_reply(reply_text(choice['message']))
    if isinstance(verdict, Verdict):
        probabilities = word_probabilities(choice.get('logprobs'), verdict.reason)
        return replace(verdict, reason_probabilities=probabilities)
    return verdict


def reply_text(message: dict) -> str:
    """What the model wrote: a reasoning parser on the server may have moved the think block, or all of it."""
    content = message.get('content') or ''
    reasoning = message.get('reasoning_content') or message.get('reasoning') or ''
    if not isinstance(content, str) or not isinstance(reasoning, str):
        raise NoCompletion('a message without text')
    if not reasoning or _CLOSING_TAG in content:
        return content
    if _CLOSING_TAG in reasoning:
        return reasoning + content
    if not content.strip() and (bare := _BARE.fullmatch(reasoning)):
        reasoning, content = bare.groups()
    return f'{reasoning}{_CLOSING_TAG}{content}'


def word_probabilities(logprobs: Any, reason: Reason) -> tuple[float, ...] | None:
    """Of the six words, in the order of REASONS, among each other; None where they cannot be told.

    logprobs: a choice's, in the format of OpenAI's API, or anything.
    """
    try:
        listed = _listed_at_word(logprobs['content'], reason)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if listed is None:
        return None
    first = [_longest_beginning(word.word, listed) for word in REASONS]
    found = [token for token in first if token is not None]
    unlisted = 1 - sum(listed.values())
    if len(set(found)) < len(found) or (len(found) < len(REASONS) and unlisted > _UNLISTED):
        return None
    shares = [0.0 if token is None else listed[token] for token in first]
    total = sum(shares)
    # The listed word must be the one that the reply has: a server that counts otherwise is not understood.
    if not total > 0 or shares[REASONS.index(reason)] < max(shares):
        return None
    return tuple(share / total for share in shares)


def _first_choice(answer: Any) -> dict:
    if not isinstance(answer, dict):
        raise NoCompletion('no JSON object')
    if answer.get('error'):
        raise NoCompletion(f'an error: {answer["error"]}')
    choices = answer.get('choices')
    if not isinstance(choices, list) or not choices:
        raise NoCompletion('no choices')
    if not isinstance(choices[0], dict) or not isinstance(choices[0].get('message'), dict):
        raise NoCompletion('a choice without a message')
    return choices[0]


def _listed_at_word(tokens: list, reason: Reason) -> dict[str, float] | None:
    """The probabilities that are listed where the word begins, by the text of the token."""
    text = ''
    for entry in tokens:
        token = entry['token']
        if token and reason.word.startswith(token) and _AT_WORD.fullmatch(text):
            entries = [entry, *entry['top_logprobs']]
            return {one['token']: math.exp(min(float(one['logprob']), 0.0)) for one in entries}
        text += token
    return None


def _longest_beginning(word: str, tokens: dict[str, float]) -> str | None:
    """As a tokeniser takes it: of the tokens listed, the longest with which the word begins."""
    return max((token for token in tokens if token and word.startswith(token)), key=len, default=None)
