"""Bradley-Terry score heads on Qwen3-VL: one number for a window, which only its order gives a meaning."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from densereward_ros.models.base import ModelError, out_of_memory
from densereward_ros.models.checkpoint import SCORE_WEIGHT, Checkpoint
from densereward_ros.models.fast.language import LanguagePass
from densereward_ros.models.fast.prompts import Prompt, PromptReader
from densereward_ros.models.fast.vision import FeatureCache
from densereward_ros.models.local import LocalModel
from densereward_ros.types import FRAMES_PER_WINDOW, MalformedReply, Reason, Verdict, Window

if TYPE_CHECKING:
    import torch

    from densereward_ros.models.loading import LoadedModel

BATCH = 8  # windows that are read together, so that memory stays within bounds


def head_for(engine: str, found: Checkpoint, progress: Callable[[str], None]) -> torch.nn.Linear | None:
    """The head that an engine needs, None for one that needs none; warns of one that is left out.

    Raises ModelError for a checkpoint without a usable one.
    """
    if engine == 'score_head':
        return read_head(found)
    if found.score_file:
        progress(
            f"warning: {found.name} has a score head ({SCORE_WEIGHT}), which engine '{engine}' does not use: "
            "set engine to 'score_head' for its scores"
        )
    return None


def read_head(found: Checkpoint) -> torch.nn.Linear:
    """The head of a checkpoint: float32, without bias, hidden size to one score. Raises ModelError."""
    import torch
    from safetensors import SafetensorError, safe_open

    if not found.score_file:
        raise ModelError(
            f"{found.name} has no {SCORE_WEIGHT}, which engine 'score_head' needs (engine 'fast' runs models "
            'that reply in words)'
        )
    try:
        with safe_open(found.folder / found.score_file, framework='pt') as file:
            weight = file.get_tensor(SCORE_WEIGHT).float()
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f'{found.name}: {SCORE_WEIGHT} cannot be read from {found.score_file}: {error}'
        ) from error
    config = json.loads((found.folder / 'config.json').read_text(encoding='utf-8'))
    hidden = config.get('text_config', {}).get('hidden_size')
    if weight.shape != (1, hidden):
        raise ModelError(
            f'{found.name}: {SCORE_WEIGHT} has the shape {tuple(weight.shape)}; allowed is (1, {hidden}): '
            "one score from the config's hidden size"
        )
    if broken := int((~weight.isfinite()).sum()):
        raise ModelError(f'{found.name}: {SCORE_WEIGHT} holds {broken} value(s) that are not finite')
    head = torch.nn.Linear(weight.shape[1], 1, bias=False)
    with torch.no_grad():
        head.weight.copy_(weight)
    return head


def last_hidden(hidden: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """The hidden state of each row's last token that is none of padding, (rows, width).

    hidden: (rows, tokens, width). attention_mask: (rows, tokens), 0 at padding, on whichever side. It alone
    tells: the padding token may well stand in a text, and so may any other.
    """
    import torch

    tokens = attention_mask.shape[1]
    back = attention_mask.bool().flip(1).int().argmax(1)  # the first of the largest
    return hidden[torch.arange(len(hidden), device=hidden.device), tokens - 1 - back]


class ScoreHeadModel(LocalModel):
    """A RewardModel that reads the prompt of the other models and scores it by its last hidden state.

    That is where a reply would begin. A verdict is not bounded and gives no reason. Scores of a batch and
    one by one differ by rounding. Frames that windows share go through the vision tower once.
    """

    bounded = False

    def __init__(self, loaded: LoadedModel, head: torch.nn.Linear) -> None:
        """loaded: with the engine 'score_head'. head: as of read_head."""
        super().__init__(loaded)
        self.corrected = 0  # there is no format to keep to
        # In float32 on every device: bfloat16 would round a score of 17 to a multiple of 0.125.
        self._head = head.to(loaded.network.device)
        self._prompts = PromptReader(loaded)
        self._features = FeatureCache(loaded)
        self._language = LanguagePass(loaded.network, None)

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """See RewardModel.score."""
        return [_verdict(score) for score in self.scores(windows)]

    def scores(self, windows: Sequence[Window]) -> list[float]:
        """One number for each window, not finite where the model computed none. Raises as score does."""
        if not windows:
            return []
        with self._running():
            scores = self._head(self._states(windows))[:, 0].tolist()
            self._check_running()
        if not all(map(math.isfinite, scores)):
            self._features.clear()  # they may be the reason, and would stay it
        return scores

    def states(self, windows: Sequence[Window]) -> torch.Tensor:
        """What a head is fitted to: the last hidden states, float32 (windows, hidden size), at least one.

        Raises as score does.
        """
        with self._running():
            return self._states(windows)

    def prepare(self, windows: Sequence[Window]) -> None:
        """See RewardModel.prepare: nothing is left to do, since frames keep their features anyway."""

    def _release(self) -> None:
        del self._head, self._features, self._language, self._prompts

    def _states(self, windows: Sequence[Window]) -> torch.Tensor:
        import torch

        for window in windows:
            if len(window.frames) != FRAMES_PER_WINDOW:
                raise ValueError(f'a window has {len(window.frames)} frames ({FRAMES_PER_WINDOW} are needed)')
        states = []
        for start in range(0, len(windows), BATCH):
            batch = windows[start : start + BATCH]
            self._check_running()
            features = self._features.of(frame for window in batch for frame in window.frames)
            self._check_running()
            states.append(last_hidden(*self._read([
                self._prompts.read(window.task, [features[frame] for frame in window.frames])
                for window in batch
            ])))
        return torch.cat(states).float()

    def _read(self, prompts: Sequence[Prompt]) -> tuple[torch.Tensor, torch.Tensor]:
        """The last hidden states of prompts, (rows, tokens, width), and the attention mask.

        Padding stands on the right, where no token of a causal model attends to it.
        """
        import torch

        device = self._open().network.device
        shape = len(prompts), max(map(len, prompts))
        ids, mask = np.zeros(shape, np.int64), np.zeros(shape, bool)
        positions = np.zeros((3, *shape), np.int64)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt)] = prompt.ids
            mask[row, : len(prompt)] = True
            positions[:, row, : len(prompt)] = prompt.positions
        embeddings = self._language.embed(torch.from_numpy(ids).to(device))
        deepstack = [torch.zeros_like(embeddings) for _ in prompts[0].pictures[0][1].deepstack]
        for row, prompt in enumerate(prompts):
            for at, seen in prompt.pictures:
                here = slice(at, at + len(seen.tokens))
                embeddings[row, here] = seen.tokens
                for layer, added in zip(deepstack, seen.deepstack):
                    layer[row, here] = added
        rotary = self._language.rotary(embeddings, torch.from_numpy(positions).to(device))
        hidden = self._language(embeddings, rotary, None, deepstack)
        return hidden, torch.from_numpy(mask).to(device)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """The model is open, nobody has interrupted it, and memory that ran out is given back."""
        import torch

        self._open()
        self._check_running()
        try:
            with torch.inference_mode():
                yield
        except torch.cuda.OutOfMemoryError as error:
            self._features.clear()
            raise out_of_memory(self.name, error) from error


def _verdict(score: float) -> Verdict | MalformedReply:
    if math.isfinite(score):
        return Verdict(score, Reason.NONE, bounded=False)
    return MalformedReply('', 'the model computed something that is not a finite number')
