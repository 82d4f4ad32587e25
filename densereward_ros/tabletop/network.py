"""The forward pass of training: a Qwen3-VL model's weights, computed once for all that windows share.

It gives what the model's own forward gives (a test compares them), but the frames of a chunk go through the
vision part once, and the constant beginning of the prompt goes through the language model once a batch.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from densereward_ros.types import FRAMES_PER_WINDOW


class Network:
    """Computes with `model`'s weights. Every frame must have the same grid of patches, (rows, columns)."""

    def __init__(self, model, grid: tuple[int, int]) -> None:
        self.model = model
        self.vision = model.model.visual
        self.text = model.model.language_model
        self.merge = self.vision.spatial_merge_size
        self.rows, self.columns = grid[0] // self.merge, grid[1] // self.merge
        self._grid = grid
        image = self.rows * self.columns + 2  # with the token that opens and the one that closes it
        self.images_length = FRAMES_PER_WINDOW * image
        self.image_ends = torch.arange(image - 1, self.images_length, image)
        config = self.vision.config
        self._patch_shape = config.in_channels, config.temporal_patch_size, config.patch_size**2
        self._places = self._patch_places()
        self._mix = self._position_mix()
        self._rotary = self._vision_rotary()

    def see(self, pixels: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Merged features of frames, and the deepstack ones: each (frames, tokens, hidden).

        pixels: (frames, patches, values), as the processor gives them.
        """
        vision = self.vision
        hidden = self._embed_patches(pixels) + self._mix @ vision.pos_embed.weight
        deep = []
        for number, block in enumerate(vision.blocks):
            hidden = hidden + self._look(block.attn, block.norm1(hidden))
            hidden = hidden + block.mlp(block.norm2(hidden))
            if number in vision.deepstack_visual_indexes:
                merger = vision.deepstack_merger_list[vision.deepstack_visual_indexes.index(number)]
                deep.append(self._merged(merger, hidden))
        return self._merged(vision.merger, hidden), deep

    def read(
        self,
        prefix: torch.Tensor,
        texts: torch.Tensor,
        wanted: torch.Tensor,
        features: torch.Tensor,
        deep: list[torch.Tensor],
    ) -> torch.Tensor:
        """The last hidden states of the wanted tokens: (windows, wanted, hidden).

        prefix: ids of what comes before the first image, the same for all. texts: (windows, length), ids
        of what comes after the last image, padded on the right. wanted: (windows, wanted), which tokens,
        counted from the first image's first; the text begins at `images_length`.
        features, deep: (windows, 3, tokens, hidden), by `see`.
        """
        text = self.text
        positions, is_image, ids = self._layout(prefix, texts)
        head = len(prefix)
        hidden_prefix = text.embed_tokens(prefix)[None]
        hidden = text.embed_tokens(ids)
        hidden = hidden.index_copy(1, is_image, features.flatten(1, 2))
        cos, sin = text.rotary_emb(hidden_prefix, positions[:, None])
        total = positions.shape[1]
        mask = torch.ones(total - head, total, dtype=torch.bool).tril(head)
        before, after = (cos[:, :head], sin[:, :head]), (cos[:, head:], sin[:, head:])
        for number, layer in enumerate(text.layers):
            normed_prefix, normed = layer.input_layernorm(hidden_prefix), layer.input_layernorm(hidden)
            prefix_keys, prefix_values = self._keys(layer.self_attn, normed_prefix, before)
            keys, values = self._keys(layer.self_attn, normed, after)
            keys = torch.cat([prefix_keys.expand(len(keys), -1, -1, -1), keys], 2)
            values = torch.cat([prefix_values.expand(len(values), -1, -1, -1), values], 2)
            if number + 1 < len(text.layers):
                hidden_prefix = self._layer(
                    layer, hidden_prefix, normed_prefix, prefix_keys, prefix_values, before
                )
            else:  # nobody reads the other tokens any more
                row = torch.arange(len(wanted))[:, None]
                hidden, normed, mask = hidden[row, wanted], normed[row, wanted], mask[wanted][:, None]
                after = cos[0, head:][wanted][:, None], sin[0, head:][wanted][:, None]
            hidden = self._layer(layer, hidden, normed, keys, values, after, mask)
            if number < len(deep):  # never after the last layer: there are more layers than these
                hidden = hidden.index_add(1, is_image, deep[number].flatten(1, 2))
        return text.norm(hidden)

    def _layout(self, prefix: torch.Tensor, texts: torch.Tensor):
        """Positions (3, prefix and rest), where image tokens are in the rest, and the rest's ids."""
        config = self.model.config
        tokens = self.rows * self.columns
        image = (
            [config.vision_start_token_id] + [config.image_token_id] * tokens + [config.vision_end_token_id]
        )
        ids = torch.tensor(image * FRAMES_PER_WINDOW)
        is_image = torch.nonzero(ids == config.image_token_id)[:, 0]
        row = torch.arange(self.rows).repeat_interleave(self.columns)
        column = torch.arange(self.columns).repeat(self.rows)
        parts, at = [torch.arange(len(prefix)).expand(3, -1)], len(prefix)
        for _ in range(FRAMES_PER_WINDOW):
            start = at + 1
            parts.append(torch.full((3, 1), at))
            parts.append(torch.stack([torch.zeros(tokens, dtype=torch.long), row, column]) + start)
            at = start + max(self.rows, self.columns)
            parts.append(torch.full((3, 1), at))
            at += 1
        parts.append(at + torch.arange(texts.shape[1]).expand(3, -1))
        ids = torch.cat([ids.expand(len(texts), -1), texts], 1)
        return torch.cat(parts, 1), is_image, ids

    def _embed_patches(self, pixels: torch.Tensor) -> torch.Tensor:
        """A picture fills both time steps of its patches, so their weights may be added first."""
        projection = self.vision.patch_embed.proj
        weight = projection.weight.view(projection.weight.shape[0], *self._patch_shape).sum(2).flatten(1)
        one = pixels.view(*pixels.shape[:2], *self._patch_shape)[:, :, :, 0].flatten(2)
        return F.linear(one, weight, projection.bias)

    def _keys(self, attention, normed, rotary):
        count, length, _ = normed.shape
        keys = attention.k_norm(
            attention.k_proj(normed).view(count, length, -1, attention.head_dim)
        ).transpose(1, 2)
        values = attention.v_proj(normed).view(count, length, -1, attention.head_dim).transpose(1, 2)
        return _rotate(keys, *rotary), values

    def _layer(self, layer, hidden, normed, keys, values, rotary, mask=None):
        attention = layer.self_attn
        count, length, _ = normed.shape
        queries = attention.q_norm(attention.q_proj(normed).view(count, length, -1, attention.head_dim))
        queries = _rotate(queries.transpose(1, 2), *rotary)
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=mask is None)
        hidden = hidden + attention.o_proj(mixed.transpose(1, 2).reshape(count, length, -1))
        return hidden + layer.mlp(layer.post_attention_layernorm(hidden))

    def _look(self, attention, normed):
        count, length, _ = normed.shape
        queries, keys, values = (
            attention.qkv(normed).view(count, length, 3, attention.num_heads, -1).permute(2, 0, 3, 1, 4)
        )
        mixed = F.scaled_dot_product_attention(
            _rotate(queries, *self._rotary), _rotate(keys, *self._rotary), values
        )
        return attention.proj(mixed.transpose(1, 2).reshape(count, length, -1))

    def _merged(self, merger, hidden):
        return merger(hidden.reshape(-1, hidden.shape[-1])).view(len(hidden), self.rows * self.columns, -1)

    def _patch_places(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Row and column of each patch; the patches of a merged token follow one another."""
        rows, columns = self._grid
        order = torch.arange(rows * columns).view(
            rows // self.merge, self.merge, columns // self.merge, self.merge
        )
        order = order.permute(0, 2, 1, 3).flatten()
        return order // columns, order % columns

    def _position_mix(self) -> torch.Tensor:
        """Bilinear weights (patches, learnt positions): the learnt square stretched over the picture."""
        side = int(self.vision.pos_embed.weight.shape[0] ** 0.5)
        weights = []
        for places, count in zip(self._places, self._grid):
            at = torch.linspace(0, side - 1, count)[places]
            low = at.int().long()
            high = (low + 1).clip(max=side - 1)
            part = (at - low)[:, None]
            weights.append((1 - part) * F.one_hot(low, side) + part * F.one_hot(high, side))
        return (weights[0][:, :, None] * weights[1][:, None, :]).flatten(1)

    def _vision_rotary(self) -> tuple[torch.Tensor, torch.Tensor]:
        frequencies = self.vision.rotary_pos_emb.inv_freq
        angles = torch.cat([places[:, None] * frequencies for places in self._places], 1)
        angles = torch.cat([angles, angles], 1)
        return angles.cos(), angles.sin()


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary embedding; x: (batch, heads, length, size), cos and sin: (..., length, size)."""
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin
