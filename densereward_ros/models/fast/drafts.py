"""Guesses of what the model will reply, as a tree of tokens that one pass can verify."""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from densereward_ros.models.fast.reply_format import end_tokens
from densereward_ros.models.reply import format_reply
from densereward_ros.types import REASONS, Reason

if TYPE_CHECKING:
    from densereward_ros.models.loading import LoadedModel

ROOT = -1
_MAX_STREAMS = 64
_DIGITS = '0123456789'
_DECIMALS = 3

# How far the reward moves from one reply to the next, in thousandths, before a stream has shown
# it; how quickly that is learnt; and how little it is taken to be at least.
_FIRST_STEP, _LEARNING, _LEAST_STEP = 30.0, 0.2, 4.0
# The share of replies whose reward may be anything after the one before: a block lifted or dropped, a
# new episode.
_ANYWHERE = 0.3


@dataclass
class Tree:
    """Possible continuations of a reply. Node i is a token and its parent's index, ROOT at the beginning."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    _children: dict[tuple[int, int], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, path: Sequence[int]) -> None:
        """Add a continuation; what it shares with those before it is not added twice."""
        node = ROOT
        for token in path:
            child = self.child(node, token)
            if child is None:
                child = self._children[node, token] = len(self.tokens)
                self.tokens.append(token)
                self.parents.append(node)
            node = child

    def cost(self, path: Sequence[int]) -> int:
        """How many nodes add(path) would add."""
        node: int | None = ROOT
        for index, token in enumerate(path):
            node = self.child(node, token)
            if node is None:
                return len(path) - index
        return 0

    def child(self, node: int, token: int) -> int | None:
        """The node of a token that follows a node, if the tree has it."""
        return self._children.get((node, token))

    def depths(self) -> list[int]:
        """How many steps each node is away from the root; 0 for the first."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(depths[parent] + 1 if parent != ROOT else 0)
        return depths


class ReplySpelling:
    """The tokens of well-formed replies, where every reply is the same number of tokens.

    So it is with Qwen's vocabulary: words and digits are one token each. For another vocabulary
    `regular` is false, and drafts are plain texts. digits: the tokens of the ten digits.
    hundredths: for 0.00 to 1.00 the tokens of the number, to its second decimal.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        self._tokenizer = loaded.processor.tokenizer
        self.end = end_tokens(loaded.network)
        template = self.spell(Reason.CORRECT, 0.5)
        self._digits = {digit: self._only_token(digit) for digit in _DIGITS}
        self.digits = frozenset(self._digits.values())
        self._numbers = {token: digit for digit, token in self._digits.items()}
        self._point = self._only_token('.')
        self.number_at = len(template) - 2 - _DECIMALS
        self.regular = all(
            len(reply := self.spell(reason, reward)) == len(template)
            and reply[self.number_at :] == self.number(round(reward * 1000))
            for reason in REASONS
            for reward in (0.0, 0.374, 0.5, 1.0)
        )
        self.hundredths = [tuple(self.number(10 * part)[:-1]) for part in range(101)]

    def spell(self, reason: Reason, reward: float) -> list[int]:
        """The tokens of a reply, without the one that ends it."""
        return self._tokenizer(format_reply(reason, reward))['input_ids']

    def number(self, thousandths: int) -> list[int]:
        """The tokens of a reward, in thousandths."""
        whole, decimals = divmod(thousandths, 1000)
        return [self._digits[str(whole)], self._point, *(self._digits[digit] for digit in f'{decimals:03d}')]

    def thousandths(self, reply: Sequence[int]) -> int | None:
        """The reward of a well-formed reply, None for any other."""
        number = reply[self.number_at :]
        if not self.regular or len(number) < 2 + _DECIMALS or number[1] != self._point:
            return None
        digits = [self._numbers.get(token) for token in (number[0], *number[2 : 2 + _DECIMALS])]
        return None if None in digits else int(''.join(digits))  # type: ignore[arg-type]

    def _only_token(self, text: str) -> int:
        tokens = self._tokenizer(text)['input_ids']
        return tokens[0] if len(tokens) == 1 else -1


@dataclass
class _Stream:
    """What is known of the replies of one stream. step: of the reward between replies, in thousandths."""

    reply: list[int]
    step: float = _FIRST_STEP


class Drafter:
    """Guesses replies from the one before in the same stream.

    As far as the number the guess is that reply. Of the number's own many continuations it takes
    those that are likely enough to be worth their tokens, since a token costs less than the pass
    that it may save.
    """

    def __init__(
        self, spelling: ReplySpelling, pass_cost: float, remember: bool = True, complete: bool = False
    ) -> None:
        """pass_cost: of a further pass, in tokens of this one; 0 guesses one reply and no tree.

        complete: guess to the very end. Where the third decimal ends a reply it need not be guessed,
        since nothing follows it.
        """
        self._spelling = spelling
        self._pass_cost = pass_cost
        self._remember = remember
        self._complete = complete
        self._template = spelling.spell(Reason.CORRECT, 0.5)
        self._streams: OrderedDict[Hashable, _Stream] = OrderedDict()

    def guess(self, stream: Hashable, reply: Sequence[int]) -> Tree:
        """Continuations of what is certain of a reply; its last token, if there is one, is the first node."""
        known = self._streams.get(stream) or _Stream(self._template)
        certain = len(reply)
        draft = [*reply, *known.reply[certain:]]
        while len(draft) > certain and draft[-1] in self._spelling.end:
            del draft[-1]  # what comes after the end is of no interest
        begin = max(certain - 1, 0)
        tree = Tree()
        if certain:
            tree.add(draft[begin:certain])
        last = self._spelling.thousandths(known.reply)
        if last is None or not self._fits(reply):
            tree.add(draft[begin:])
            return tree
        number = self._spelling.number_at
        tree.add(draft[begin : None if self._complete else number + 1 + _DECIMALS])
        if self._pass_cost:
            for group in self._worthwhile(last, known.step, tuple(reply[number:])):
                paths = [[*draft[:number], *digits][begin:] for digits, _ in group]
                gain = self._pass_cost * sum(chance for _, chance in group)
                if gain > len(paths) + tree.cost(paths[0][:-1]):
                    for path in paths:
                        tree.add(path)
        return tree

    def learn(self, stream: Hashable, reply: Sequence[int]) -> None:
        """A reply is complete: the next one of its stream is likely to be much the same."""
        if not self._remember:
            return
        known = self._streams.setdefault(stream, _Stream(self._template))
        self._streams.move_to_end(stream)
        before, now = self._spelling.thousandths(known.reply), self._spelling.thousandths(reply)
        if before is not None and now is not None:
            step = min(abs(now - before), 3 * _FIRST_STEP)  # a jump says nothing of the steps
            known.step = max(known.step + _LEARNING * (step - known.step), _LEAST_STEP)
        known.reply = list(reply)
        if len(self._streams) > _MAX_STREAMS:
            self._streams.popitem(last=False)

    def clear(self) -> None:
        """Forget all replies."""
        self._streams.clear()

    def _fits(self, reply: Sequence[int]) -> bool:
        """Whether a number still follows where the drafts have it."""
        number = reply[self._spelling.number_at :]
        digits = [*number[:1], *number[2:]]
        return len(number) <= 1 + _DECIMALS and all(digit in self._spelling.digits for digit in digits)

    def _worthwhile(
        self, last: int, step: float, begun: tuple[int, ...]
    ) -> Iterator[list[tuple[tuple[int, ...], float]]]:
        """Numbers to their second decimal that are worth a token each, with their chances.

        Those that share the first decimal come together, since its token serves them all.
        begun: what is certain of the number. last: the reward before, in thousandths.
        """
        chances = {}
        for hundredths, digits in enumerate(self._spelling.hundredths):
            if digits[: len(begun)] == begun:
                away = abs(10 * hundredths + 5 - last)
                near = 5 / step * math.exp(-away / step)
                chances[digits] = (1 - _ANYWHERE) * near + _ANYWHERE / 101
        total = sum(chances.values())
        worth = [
            (digits, chance / total) for digits, chance in chances.items() if chance * self._pass_cost > total
        ]
        for _, group in itertools.groupby(worth, key=lambda candidate: candidate[0][:-1]):
            yield list(group)
