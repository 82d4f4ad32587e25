"""Attention masks for passes that read several possible continuations of a text at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def ancestors(parents: Sequence[int]) -> np.ndarray:
    """Which tokens of a tree each token may attend to: itself and its ancestors, bool (tokens, tokens).

    parents: for each token the index of the one before it, which comes earlier; below zero at a root.
    """
    count = len(parents)
    seen = np.eye(count, dtype=bool)
    for token, parent in enumerate(parents):
        if parent >= 0:
            seen[token] |= seen[parent]
    return seen


def attention_mask(past: np.ndarray, prompt: int, parents: Sequence[int]) -> np.ndarray:
    """The mask of one row, bool (queries, slots).

    past: bool, for each slot already filled whether it belongs to the text. The queries are
    `prompt` further tokens of the text, and after these a tree of possible continuations.
    """
    tree = len(parents)
    mask = np.zeros((prompt + tree, len(past) + prompt + tree), bool)
    mask[:, : len(past)] = past
    mask[:prompt, len(past) : len(past) + prompt] = np.tri(prompt, dtype=bool)
    mask[prompt:, len(past) : len(past) + prompt] = True
    mask[prompt:, len(past) + prompt :] = ancestors(parents)
    return mask


def stack_masks(masks: Sequence[np.ndarray], least: tuple[int, int] = (0, 0)) -> np.ndarray:
    """Masks of several rows as one, (rows, 1, queries, slots), padded on the right.

    A padding query attends to the first slot, since attending to nothing gives no number.
    least: queries and slots, at least.
    """
    queries, slots = (max(least[axis], *(mask.shape[axis] for mask in masks)) for axis in (0, 1))
    stacked = np.zeros((len(masks), 1, queries, slots), bool)
    for row, mask in zip(stacked[:, 0], masks):
        row[: mask.shape[0], : mask.shape[1]] = mask
        row[mask.shape[0] :, 0] = True
    return stacked
