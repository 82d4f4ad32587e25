"""One pass of the language model over the ends of several texts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from densereward_ros.models.fast.drafts import Tree
from densereward_ros.models.fast.masks import attention_mask, stack_masks
from densereward_ros.models.fast.prompts import Prompt
from densereward_ros.models.fast.versions import cache_argument

if TYPE_CHECKING:
    import torch

    from densereward_ros.models.fast.keyvalues import KeyValues, Row


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

    def __init__(self, network: Any, keyvalues: KeyValues) -> None:
        self.passes = 0
        self.tokens = 0
        self._network = network
        self._keyvalues = keyvalues
        self._cache_argument = cache_argument(network.model.language_model)

    def read(self, passages: Sequence[Passage]) -> torch.Tensor:
        """Fill the rows. Returns the last hidden states, (passages, tokens, hidden), padded on the right."""
        import torch

        device = self._network.device
        self._keyvalues.write([(passage.row, len(passage.past), len(passage)) for passage in passages])
        longest = max(map(len, passages))
        ids = np.zeros((len(passages), longest), np.int64)
        positions = np.zeros((3, len(passages), longest), np.int64)
        for place, passage in enumerate(passages):
            ids[place, : len(passage)] = passage.ids
            positions[:, place, : len(passage)] = passage.positions
        language = self._network.model.language_model
        embeddings = language.embed_tokens(torch.from_numpy(ids).to(device))
        mask = torch.from_numpy(stack_masks([passage.mask for passage in passages])).to(device)
        bias = torch.zeros(mask.shape, dtype=embeddings.dtype, device=device)
        bias.masked_fill_(~mask, torch.finfo(embeddings.dtype).min)
        output = language(
            inputs_embeds=embeddings,
            position_ids=torch.from_numpy(positions).to(device),
            attention_mask=bias,
            use_cache=True,
            **{self._cache_argument: self._keyvalues},
            **_pictures(passages, embeddings),
        )
        self.passes += 1
        self.tokens += sum(map(len, passages))
        return output.last_hidden_state

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


def _pictures(passages: Sequence[Passage], embeddings: torch.Tensor) -> dict[str, Any]:
    """Put the frames' features in the place of image tokens; the deepstack ones are for the model to add."""
    import torch

    is_picture = np.zeros(embeddings.shape[:2], bool)
    deepstack = []
    for place, passage in enumerate(passages):
        for at, features in passage.prompt.pictures:
            skipped = max(passage.start - at, 0)
            count = len(features.tokens) - skipped
            if count <= 0:
                continue
            here = slice(at + skipped - passage.start, at + skipped - passage.start + count)
            embeddings[place, here] = features.tokens[skipped:]
            is_picture[place, here] = True
            deepstack.append([layer[skipped:] for layer in features.deepstack])
    if not deepstack:
        return {}
    return {
        'visual_pos_masks': torch.from_numpy(is_picture).to(embeddings.device),
        'deepstack_visual_embeds': [torch.cat(layer) for layer in zip(*deepstack)],
    }
