"""Prompts as tokens, each with a key that says what stands there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from densereward_ros.models.base import ModelError
from densereward_ros.models.fast.positions import rope_positions
from densereward_ros.models.prompt import build_messages, check_special_tokens, clean_task
from densereward_ros.types import FRAMES_PER_WINDOW

if TYPE_CHECKING:
    from densereward_ros.models.fast.vision import Features
    from densereward_ros.models.loading import LoadedModel

_MAX_TASKS = 64
_SERIAL_SHIFT = 24  # more image tokens than any frame has


@dataclass(frozen=True, eq=False)
class Prompt:
    """A prompt, or the beginning of one.

    ids: (tokens,), an image token's being that of the image pad. keys: (tokens,), equal in two
    prompts exactly where the same text token or the same token of the same frame stands.
    positions: (3, tokens). next_position: where the reply begins. pictures: for each frame, the
    index of its first token and its features.
    """

    ids: np.ndarray
    keys: np.ndarray
    positions: np.ndarray
    next_position: int
    pictures: tuple[tuple[int, Features], ...]

    def __len__(self) -> int:
        return len(self.ids)

    def head(self, length: int) -> Prompt:
        """The first tokens, for reading ahead; no reply can begin after them."""
        pictures = tuple((at, seen) for at, seen in self.pictures if at < length)
        return replace(
            self, ids=self.ids[:length], keys=self.keys[:length], positions=self.positions[:, :length],
            pictures=pictures)


class PromptReader:
    """Makes prompts. The text of a task is tokenised once."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._loaded = loaded
        self._image_token: int = loaded.network.config.image_token_id
        self._texts: OrderedDict[str, list[np.ndarray]] = OrderedDict()

    def read(self, task: str, pictures: Sequence[Features]) -> Prompt:
        """The prompt for three frames, oldest first; for fewer its beginning, up to the first one missing.

        Raises ValueError for a task that the reference refuses.
        """
        texts = self._text_around_pictures(task)[: len(pictures) + 1]
        ids, keys, spans, starts, length = [], [], [], [], 0
        for number, text in enumerate(texts):
            ids.append(text)
            keys.append(text)
            spans.append(len(text))
            length += len(text)
            if number < len(pictures):
                seen = pictures[number]
                count = seen.rows * seen.columns
                ids.append(np.full(count, self._image_token))
                # Below zero, where no token id is, and different for every token of every frame.
                keys.append(-1 - ((seen.serial << _SERIAL_SHIFT) + np.arange(count)))
                spans.append((seen.rows, seen.columns))
                starts.append(length)
                length += count
        positions, next_position = rope_positions(spans)
        return Prompt(
            np.concatenate(ids), np.concatenate(keys), positions, next_position, tuple(zip(starts, pictures))
        )

    def _text_around_pictures(self, task: str) -> list[np.ndarray]:
        """Token ids before the first picture, between two, and after the last."""
        task = clean_task(task)
        if not task:
            raise ValueError('the task is empty (say in words what the robot is to do)')
        if task not in self._texts:
            self._texts[task] = self._tokenise(task)
            if len(self._texts) > _MAX_TASKS:
                self._texts.popitem(last=False)
        self._texts.move_to_end(task)
        return self._texts[task]

    def _tokenise(self, task: str) -> list[np.ndarray]:
        check_special_tokens(task, self._loaded.special_tokens)
        processor = self._loaded.processor
        messages = build_messages(self._loaded.system_prompt, [None] * FRAMES_PER_WINDOW, task)
        text = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        # A special token splits the text wherever it stands, so that one pad for each picture gives the
        # same tokens around it as the many pads that the processor writes.
        ids = np.asarray(processor.tokenizer(text)['input_ids'])
        pads = np.flatnonzero(ids == self._image_token)
        if len(pads) != FRAMES_PER_WINDOW:
            raise ModelError(f'the chat template makes {len(pads)} pictures of {FRAMES_PER_WINDOW}')
        parts = np.split(ids, pads)
        return [parts[0], *(part[1:] for part in parts[1:])]
