"""The format lets through every well-formed reply, and nothing else."""

from __future__ import annotations

import pytest
import torch

from densereward_ros.models.fast.reply_format import ReplyFormat
from densereward_ros.models.reply import format_reply, parse_reply
from densereward_ros.types import REASONS, Verdict


@pytest.fixture(scope='module')
def reply_format(lively) -> ReplyFormat:
    """The format in the demo checkpoint's vocabulary."""
    return ReplyFormat(lively(0))


@pytest.fixture(scope='module')
def tokenizer(lively):
    """The demo checkpoint's tokenizer."""
    return lively(0).processor.tokenizer


def refused_at(reply_format: ReplyFormat, tokens: list[int]) -> int | None:
    """The index of the first token that the format does not allow."""
    text = ''
    for place, token in enumerate(tokens):
        if not reply_format.allows(text, token):
            return place
        text += reply_format.text(token)
    return None


def test_every_reply_of_the_card_is_let_through(reply_format, tokenizer):
    """All words with rewards over the whole range: no token of them is ever corrected, nor the end."""
    end = tokenizer.convert_tokens_to_ids('<|im_end|>')
    for reason in REASONS:
        for thousandths in range(0, 1001, 7 if reason == 1 else 125):
            tokens = tokenizer(format_reply(reason, thousandths / 1000))['input_ids']
            assert refused_at(reply_format, [*tokens, end]) is None


@pytest.mark.parametrize(
    'text',
    [
        'miss\n</think>\n\n0.374',
        '<think>fall</think>0.5',
        '<think> smooth </think> 1',
        '<think>\nmiss\n</think>\n\n1.0',
    ],
)
def test_what_the_parser_tolerates_is_let_through(reply_format, tokenizer, text):
    """A missing opening tag, other blanks and fewer decimals are not corrected."""
    assert isinstance(parse_reply(text), Verdict)
    end = tokenizer.convert_tokens_to_ids('<|im_end|>')
    assert refused_at(reply_format, [*tokenizer(text)['input_ids'], end]) is None


@pytest.mark.parametrize(
    ('begun', 'refused'),
    [
        ('<think>\nmiss\n</think>\n\n1.', '3'),  # a trained model has written 1.322
        ('<think>\nmiss\n</think>\n\n1', '0'),
        ('<think>\nmiss\n</think>\n\n', '2'),
        ('<think>\nmiss\n</think>\n\n', '-'),
        ('<think>\nmiss\n</think>\n\n0.', '<|im_end|>'),
        ('<think>\nmiss\n', '<|im_end|>'),
        ('<think>\n', 'd'),
        ('<think>\n', '</think>'),
        ('', '<|im_end|>'),
        ('', '0'),
        ('', '<|image_pad|>'),
        ('<think>\nmiss\n</think>\n\n0.374', '5'),
    ],
)
def test_what_leads_nowhere_is_refused(reply_format, tokenizer, begun, refused):
    """Rewards above 1, unknown words, missing parts and tokens of no text."""
    tokens = tokenizer(begun)['input_ids'] if begun else []
    token = tokenizer(refused)['input_ids'][0]
    assert refused_at(reply_format, [*tokens, token]) == len(tokens)


def test_any_logits_make_a_well_formed_reply_in_time(reply_format, tokenizer):
    """Greedy decoding of noise under the format ends within 32 tokens and parses."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(100):
        text, tokens = '', []
        while not reply_format.is_complete(text):
            token = reply_format.best_allowed(text, torch.rand(len(tokenizer), generator=generator))
            tokens.append(token)
            if token == tokenizer.convert_tokens_to_ids('<|im_end|>') or token == tokenizer.pad_token_id:
                break
            text += reply_format.text(token)
        assert len(tokens) <= 32
        assert isinstance(parse_reply(tokenizer.decode(tokens, skip_special_tokens=True)), Verdict)


def test_the_allowed_token_with_the_highest_logit_is_taken(reply_format, tokenizer):
    """Only the model's order among allowed tokens counts."""
    logits = torch.zeros(len(tokenizer))
    logits[tokenizer.convert_tokens_to_ids('<|im_start|>')] = 9.0
    logits[tokenizer('fall')['input_ids'][0]] = 5.0
    logits[tokenizer('miss')['input_ids'][0]] = 4.0
    assert reply_format.best_allowed('\ue000\n', logits) == tokenizer('fall')['input_ids'][0]
