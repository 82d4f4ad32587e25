"""The language model's layers over embeddings, all passes in this one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from densereward_ros.models.fast.versions import cache_argument

if TYPE_CHECKING:
    import torch

    from densereward_ros.models.fast.keyvalues import KeyValues


class LanguagePass:
    """What transformers' Qwen3VLTextModel does, with mask and positions given.

    Its own forward picks image tokens by a boolean mask, whose size the GPU has to tell the CPU, and
    which no CUDA graph can hold; here the vision tower's deepstack features come as whole tensors.
    """

    def __init__(self, network: Any, keyvalues: KeyValues | None) -> None:
        """keyvalues: None keeps none."""
        self._language = network.model.language_model
        self._cache = {cache_argument(self._language): keyvalues}

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Token ids (rows, tokens) as embeddings (rows, tokens, hidden)."""
        return self._language.embed_tokens(ids)

    def rotary(self, embeddings: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of positions (3, rows, tokens)."""
        return self._language.rotary_emb(embeddings, positions)

    def __call__(
        self,
        embeddings: torch.Tensor,
        rotary: tuple[torch.Tensor, torch.Tensor],
        bias: torch.Tensor | None,
        deepstack: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        """The last hidden states, (rows, tokens, hidden).

        bias: added to attention scores, (rows, 1, tokens, slots); None for each token to attend to itself
        and all before it. deepstack: added to what the first layers give, each of the embeddings' shape.
        """
        hidden = embeddings
        for number, layer in enumerate(self._language.layers):
            hidden = layer(hidden, attention_mask=bias, position_embeddings=rotary, **self._cache)
            if number < len(deepstack):
                hidden = hidden + deepstack[number]
        return self._language.norm(hidden)
