"""A reply in the making: greedy decoding along a tree of guesses."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from densereward_ros.models.fast.drafts import ROOT, Tree
from densereward_ros.models.fast.reader import Passage

if TYPE_CHECKING:
    import torch

    from densereward_ros.models.fast.keyvalues import Row
    from densereward_ros.models.fast.prompts import Prompt
    from densereward_ros.models.fast.reply_format import ReplyFormat


class Reply:
    """Greedy decoding of one reply; what was guessed right is had in the same pass.

    tokens: so far. done: whether the reply is complete. corrected: how many tokens the format
    changed. word_probabilities: of the six words, in the order of REASONS, where the model chose
    one. finite: false when the model computed something that is no number; then there is no reply.
    """

    def __init__(
        self,
        stream: Hashable,
        row: Row,
        prompt: Prompt,
        reply_format: ReplyFormat,
        ends: tuple[int, ...],
        max_tokens: int,
        constrain: bool,
    ) -> None:
        self.stream = stream
        self.row = row
        self.prompt = prompt
        self.tokens: list[int] = []
        self.done = False
        self.corrected = 0
        self.finite = True
        self.word_probabilities: tuple[float, ...] | None = None
        self._format = reply_format
        self._ends = ends
        self._max_tokens = max_tokens
        self._constrain = constrain
        self._text: str | None = ''  # in the alphabet of the format; None once it has left that
        # At least one token is read, since the reply begins with what the model says after the last.
        self._start = min(len(row.keys), len(prompt) - 1)
        self._past = np.ones(self._start, bool)

    def passage(self, tree: Tree) -> Passage:
        """What to read next: the rest of the prompt, if it is not read yet, and guesses of what follows."""
        return Passage(
            self.row, self.prompt, self._start, self._past, tree, depth=max(len(self.tokens) - 1, 0)
        )

    def advance(self, passage: Passage, logits: torch.Tensor) -> None:
        """Follow the model's choices through the tree as far as it foresaw them. logits: by Reader.logits."""
        best, index = logits.max(-1)
        highest, chosen = best.tolist(), index.tolist()
        tree, first = passage.tree, len(logits) - len(passage.tree)
        # On the first pass the walk begins before the tree, later at its only root, the last certain token.
        node = ROOT if first else 0
        followed = np.zeros(len(tree), bool)
        while not self.done:
            if node != ROOT:
                followed[node] = True
            at = node + first
            if not math.isfinite(highest[at]):
                self.finite, self.done = False, True
                return
            token = self._choose(chosen[at], logits[at])
            child = tree.child(node, token)
            if child is None:
                break
            node = child
        self.row.keys = self.prompt.keys
        self._past = np.concatenate([self._past, np.ones(passage.prompt_tokens, bool), followed])
        self._start = len(self.prompt)

    def _choose(self, token: int, logits: torch.Tensor) -> int:
        """Take the model's choice, or what the format allows in its place."""
        if self._constrain and not self._format.allows(self._text, token):
            token = self._format.best_allowed(self._text, logits)
            self.corrected += 1
        if self._text is not None:
            self._note_word(token, logits)
            added = self._format.text(token)
            self._text = None if added is None else self._text + added
        self.tokens.append(token)
        self.done = (
            token in self._ends
            or len(self.tokens) >= self._max_tokens
            or (self._constrain and self._format.is_complete(self._text))
        )
        return token

    def _note_word(self, token: int, logits: torch.Tensor) -> None:
        words = self._format.word_tokens(self._text)
        if words and token in words and len(set(words)) == len(words):
            self.word_probabilities = tuple(logits[words].softmax(-1).tolist())
