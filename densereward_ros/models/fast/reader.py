"""One pass of the language model over the ends of several texts at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from densereward_ros.models.fast.drafts import Tree
from densereward_ros.models.fast.graphs import GraphedPass, Run
from densereward_ros.models.fast.language import LanguagePass
from densereward_ros.models.fast.masks import attention_mask, stack_masks
from densereward_ros.models.fast.prompts import Prompt

if TYPE_CHECKING:
    import torch

    from densereward_ros.models.fast.keyvalues import KeyValues, Row

PADDING = -1  # the rotary position of tokens that are none


@dataclass
class Passage:
    """What to read for one row: the prompt from `start` on, then a tree of continuations.

    past: bool, for each slot that is filled whether it belongs to the text. depth: how many
    tokens of the reply come before the tree.
    """

    row: Row
    prompt: Prompt
    start: int
    past: np.ndarray
    tree: Tree
    depth: int = 0

    @property
    def prompt_tokens(self) -> int:
        """How many tokens of the prompt are read."""
        return len(self.prompt) - self.start

    def __len__(self) -> int:
        return self.prompt_tokens + len(self.tree)

    @property
    def ids(self) -> np.ndarray:
        """Token ids, (tokens,)."""
        return np.concatenate([self.prompt.ids[self.start :], np.asarray(self.tree.tokens, np.int64)])

    @property
    def positions(self) -> np.ndarray:
        """Rotary positions, (3, tokens)."""
        reply = self.prompt.next_position + self.depth + np.asarray(self.tree.depths(), np.int64)
        return np.concatenate(
            [self.prompt.positions[:, self.start :], np.broadcast_to(reply, (3, len(reply)))], 1
        )

    @property
    def mask(self) -> np.ndarray:
        """Which slots each token attends to, (tokens, slots)."""
        return attention_mask(self.past, self.prompt_tokens, self.tree.parents)


class Reader:
    """Reads passages into the rows of a KeyValues, and tells what follows them."""

    def __init__(
        self, network: Any, keyvalues: KeyValues, record: Callable[[Run], Run] | None = None
    ) -> None:
        """record: makes recordings of passes; None for a machine that has no use for them."""
        self.passes = 0
        self.tokens = 0
        self._network = network
        self._keyvalues = keyvalues
        self._language = LanguagePass(network, keyvalues)
        self._graphs = record and GraphedPass(self._language, keyvalues, record)

    def forget(self) -> None:
        """Drop the recordings."""
        if self._graphs:
            self._graphs.clear()

    def read(self, passages: Sequence[Passage]) -> torch.Tensor:
        """Fill the rows. Returns the last hidden states, (passages, tokens, hidden), padded on the right."""
        import torch

        device = self._network.device
        width = self._graphed_width(passages)
        longest = width or max(map(len, passages))
        self._keyvalues.write([(passage.row, len(passage.past), len(passage)) for passage in passages], width)
        ids = np.zeros((len(passages), longest), np.int64)
        positions = np.full((3, len(passages), longest), PADDING, np.int64)
        for place, passage in enumerate(passages):
            ids[place, : len(passage)] = passage.ids
            positions[:, place, : len(passage)] = passage.positions
        embeddings = self._language.embed(torch.from_numpy(ids).to(device))
        rotary = self._language.rotary(embeddings, torch.from_numpy(positions).to(device))
        deepstack = _add_pictures(passages, embeddings)
        least = (width, self._keyvalues.slots) if width else (0, 0)
        mask = torch.from_numpy(stack_masks([passage.mask for passage in passages], least)).to(device)
        bias = torch.zeros(mask.shape, dtype=embeddings.dtype, device=device)
        bias.masked_fill_(~mask, torch.finfo(embeddings.dtype).min)
        self.passes += 1
        self.tokens += sum(map(len, passages))
        if not width:
            return self._language(embeddings, rotary, bias, deepstack)
        starts = np.array([len(passage.past) for passage in passages])
        slots = torch.from_numpy(starts[:, None] + np.arange(width)).to(device)
        return self._graphs(embeddings, rotary, bias, deepstack, passages[0].row.number, slots)

    def logits(self, passages: Sequence[Passage]) -> list[torch.Tensor]:
        """Read passages. Returns float32 logits of what follows, (1 + nodes, vocabulary) for each.

        The first are those after the prompt, the others those after each node of the tree. Where
        nothing of the prompt is read there are no first ones.
        """
        import torch

        hidden = self.read(passages)
        wanted = [
            hidden[place, max(passage.prompt_tokens - 1, 0) : len(passage)]
            for place, passage in enumerate(passages)
        ]
        logits = self._network.lm_head(torch.cat(wanted)).float()
        return list(logits.split([len(part) for part in wanted]))

    def _graphed_width(self, passages: Sequence[Passage]) -> int:
        """How many tokens the pass is padded to; 0 where it is not recorded but done as it is."""
        numbers = [passage.row.number for passage in passages]
        if not self._graphs or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            return 0
        return self._graphs.width(max(map(len, passages))) or 0


def _add_pictures(passages: Sequence[Passage], embeddings: torch.Tensor) -> list[torch.Tensor]:
    """Put the frames' features in the place of image tokens; returns what the layers are to add there."""
    deepstack: list[torch.Tensor] = []
    for place, passage in enumerate(passages):
        for at, features in passage.prompt.pictures:
            seen = slice(max(passage.start - at, 0), min(len(passage.prompt) - at, len(features.tokens)))
            if seen.start >= seen.stop:
                continue
            here = slice(at + seen.start - passage.start, at + seen.stop - passage.start)
            embeddings[place, here] = features.tokens[seen]
            if not deepstack:
                deepstack = [embeddings.new_zeros(embeddings.shape) for _ in features.deepstack]
            for layer, added in zip(deepstack, features.deepstack):
                layer[place, here] = added[seen]
    return deepstack
