"""The reply's format, token by token: what may come next, and when the reply is complete."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from densereward_ros.models.base import ModelError
from densereward_ros.types import REASONS

if TYPE_CHECKING:
    import torch

    from densereward_ros.models.loading import LoadedModel

# Each tag is one token, and the end of a reply is another. In a text that stands for a reply they
# are these characters, so that no spelling of a tag in plain letters is taken for it.
OPEN, CLOSE, END = '\ue000', '\ue001', '\ue002'

# Blanks between the parts are free, but no more than the model card's own reply has: so every
# reply ends before max_new_tokens, even spelled letter by letter.
_BLANK = r'[ \t\r\n]{0,2}'
_BYTES = {'Ġ': ' ', 'Ċ': '\n', 'č': '\r', 'ĉ': '\t'}  # how byte-level vocabularies write blanks
_ALPHABET = re.compile(r'[a-z0-9. \t\r\n]+')

_WORD = '|'.join(reason.word for reason in REASONS)
_START = rf'{_BLANK}(?:{OPEN}{_BLANK})?'
_HEAD = rf'{_START}(?:{_WORD}){_BLANK}{CLOSE}{_BLANK}'
_NUMBER = r'(?:0(?:\.[0-9]{1,3})?|1(?:\.0{1,3})?)'


def _beginnings(word: str) -> str:
    """A pattern for every beginning of a word, the empty one and the whole included."""
    pattern = ''
    for letter in reversed(word):
        pattern = f'(?:{letter}{pattern})?'
    return pattern


_PARTIAL_WORD = '|'.join(_beginnings(reason.word) for reason in REASONS)
_PREFIX = re.compile(
    rf'{_START}(?:{_PARTIAL_WORD})'
    rf'|{_START}(?:{_WORD}){_BLANK}'
    rf'|{_HEAD}(?:0\.?|0\.[0-9]{{1,3}}|1\.?|1\.0{{1,3}})?'
    rf'|{_HEAD}{_NUMBER}{_BLANK}{END}?'
)
_COMPLETE = re.compile(rf'{_HEAD}[01]\.[0-9]{{3}}')
_AT_WORD = re.compile(_START)


class ReplyFormat:
    """Knows for each token of a checkpoint's vocabulary what it adds to a reply."""

    def __init__(self, loaded: LoadedModel) -> None:
        """Raises ModelError for a vocabulary in which a tag is not one token, or a word has no beginning."""
        tokenizer = loaded.processor.tokenizer
        vocabulary = tokenizer.get_vocab()
        added = tokenizer.added_tokens_decoder
        self._text_of: dict[int, str] = {}
        for token, number in vocabulary.items():
            text = ''.join(_BYTES.get(character, character) for character in token)
            if number not in added and _ALPHABET.fullmatch(text):
                self._text_of[number] = text
        for tag, symbol in (('<think>', OPEN), ('</think>', CLOSE)):
            if tag not in vocabulary:
                raise ModelError(
                    f"{loaded.name} has no token '{tag}': its replies cannot be kept to the format"
                )
            self._text_of[vocabulary[tag]] = symbol
        for number in end_tokens(loaded.network):
            self._text_of[number] = END
        self._tokens = list(self._text_of)
        self._first_tokens = [self._first_token(reason.word) for reason in REASONS]

    def text(self, token: int) -> str | None:
        """What a token adds to the text of a reply; None for one that has no place in the format."""
        return self._text_of.get(token)

    def allows(self, text: str, token: int) -> bool:
        """Whether a well-formed reply can begin with this text and token."""
        added = self._text_of.get(token)
        return added is not None and _PREFIX.fullmatch(text + added) is not None

    def best_allowed(self, text: str, logits: torch.Tensor) -> int:
        """The most likely token of those that the format allows after a text. logits: (vocabulary,)."""
        for place in logits[self._tokens].argsort(descending=True, stable=True).tolist():
            if self.allows(text, self._tokens[place]):
                return self._tokens[place]
        raise AssertionError(f'the format allows nothing after {text!r}')

    @staticmethod
    def is_complete(text: str) -> bool:
        """Whether the third decimal is there, after which the format has nothing more."""
        return _COMPLETE.fullmatch(text) is not None

    def word_tokens(self, text: str) -> list[int] | None:
        """The first token of each word, in the order of REASONS, where a word may come next."""
        return self._first_tokens if _AT_WORD.fullmatch(text) else None

    def _first_token(self, word: str) -> int:
        """The token that a word begins with: the longest, as its tokeniser takes it at a line's start."""
        beginnings = {text: number for number, text in self._text_of.items() if word.startswith(text)}
        return beginnings[max(beginnings, key=len)]


def end_tokens(network: object) -> tuple[int, ...]:
    """The tokens that end a reply, as generate() reads them from the generation config."""
    ends = network.generation_config.eos_token_id
    return tuple(ends) if isinstance(ends, (list, tuple)) else (ends,)
