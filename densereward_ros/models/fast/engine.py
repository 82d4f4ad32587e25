"""Replies to windows by the shortest way that gives the tokens of greedy decoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from densereward_ros.models.base import ModelError
from densereward_ros.models.fast.costs import pass_cost
from densereward_ros.models.fast.decoding import Reply
from densereward_ros.models.fast.drafts import Drafter, ReplySpelling, Tree
from densereward_ros.models.fast.graphs import Run
from densereward_ros.models.fast.keyvalues import MAX_ROWS, KeyValues, Row
from densereward_ros.models.fast.prompts import Prompt, PromptReader
from densereward_ros.models.fast.reader import Passage, Reader
from densereward_ros.models.fast.reply_format import ReplyFormat, end_tokens
from densereward_ros.models.fast.vision import FeatureCache
from densereward_ros.types import FRAMES_PER_WINDOW

if TYPE_CHECKING:
    from densereward_ros.models.loading import LoadedModel
    from densereward_ros.types import Window

LONGEST_PASS = 1024  # tokens of a prompt that are read at once

# What a generation config may say that changes greedy decoding, and the values that say nothing.
_NEUTRAL = {
    'repetition_penalty': (None, 1.0),
    'encoder_repetition_penalty': (None, 1.0),
    'no_repeat_ngram_size': (None, 0),
    'encoder_no_repeat_ngram_size': (None, 0),
    'min_length': (None, 0),
    'min_new_tokens': (None, 0),
    'num_beams': (None, 1),
    'bad_words_ids': (None,),
    'sequence_bias': (None,),
    'suppress_tokens': (None,),
    'begin_suppress_tokens': (None,),
    'forced_bos_token_id': (None,),
    'forced_eos_token_id': (None,),
    'exponential_decay_length_penalty': (None,),
    'guidance_scale': (None, 1.0),
}


@dataclass(frozen=True)
class Shortcuts:
    """What the engine leaves out of the reference's work: all of it, unless a benchmark asks otherwise.

    features: encode each frame once. prefix: read again only what differs from the last prompt.
    drafts: guess replies. memory: guess the reply before rather than a template. tree: guess
    several numbers at once. format: keep to the format, which ends at the third decimal.
    """

    features: bool = True
    prefix: bool = True
    drafts: bool = True
    memory: bool = True
    tree: bool = True
    format: bool = True


EVERY_SHORTCUT = Shortcuts()


@dataclass
class Effort:
    """Work done.

    corrected: replies in which the format changed a token. tokens: read by the language model.
    """

    replies: int = 0
    corrected: int = 0
    passes: int = 0
    tokens: int = 0
    frames_encoded: int = 0

    def __sub__(self, other: Effort) -> Effort:
        return Effort(*(getattr(self, part.name) - getattr(other, part.name) for part in fields(self)))


class Engine:
    """Generates replies, and keeps between them what the next ones can use. For one thread.

    An exception leaves it usable: what a broken pass wrote is in no row's account.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        max_new_tokens: int,
        shortcuts: Shortcuts = EVERY_SHORTCUT,
        record: Callable[[Run], Run] | None = None,
    ) -> None:
        """record: makes recordings of passes, as graphs.Recorder does on a GPU; None does without.

        Raises ModelError for a checkpoint whose replies take more than greedy decoding."""
        network = loaded.network
        _check_greedy(loaded)
        self._max_new_tokens = max_new_tokens
        self._shortcuts = shortcuts
        self._replies = self._corrected = 0
        self._ends = end_tokens(network)
        self._format = ReplyFormat(loaded)
        self._prompts = PromptReader(loaded)
        self._features = FeatureCache(loaded, keep=shortcuts.features)
        self._keyvalues = KeyValues(network)
        self._reader = Reader(network, self._keyvalues, record)
        cost = pass_cost(network) if shortcuts.tree else 0.0
        self._drafter = Drafter(ReplySpelling(loaded), cost, shortcuts.memory, complete=not shortcuts.format)

    @property
    def effort(self) -> Effort:
        """The work done so far."""
        return Effort(
            self._replies, self._corrected, self._reader.passes, self._reader.tokens, self._features.encoded
        )

    @property
    def cache_bytes(self) -> int:
        """Memory that keys and values take."""
        return self._keyvalues.bytes

    def generate(self, windows: Sequence[Window], check: Callable[[], None]) -> list[Reply]:
        """A reply for each window. check is called before every pass and may raise to end the work."""
        return [reply for batch in _batches(windows) for reply in self._generate(batch, check)]

    def prepare(self, windows: Sequence[Window], check: Callable[[], None]) -> None:
        """Read what is known of windows to come: the frames that they have so far, oldest first."""
        for batch in _batches(windows):
            self._prepare(batch, check)

    def forget(self) -> None:
        """Drop everything that is kept between replies."""
        self._features.clear()
        self._keyvalues.clear()
        self._reader.forget()
        self._drafter.clear()

    def _generate(self, windows: Sequence[Window], check: Callable[[], None]) -> list[Reply]:
        replies = self._begin(windows, check)
        running = replies
        while running:
            check()
            passages = [reply.passage(self._guess(reply)) for reply in running]
            for reply, passage, logits in zip(running, passages, self._reader.logits(passages)):
                reply.advance(passage, logits)
            running = [reply for reply in running if not reply.done]
        self._finish(windows, replies)
        return replies

    def _prepare(self, windows: Sequence[Window], check: Callable[[], None]) -> None:
        prompts = self._read_prompts(windows)
        rows = self._keyvalues.rows_for(_streams(windows), [prompt.keys for prompt in prompts])
        for row, prompt in zip(rows, prompts):
            self._read_begin(row, prompt, check)
        unread = [(row, prompt) for row, prompt in zip(rows, prompts) if len(row.keys) < len(prompt)]
        if unread:
            check()
            self._read(unread)

    def _read_begin(self, row: Row, prompt: Prompt, check: Callable[[], None]) -> None:
        """Read a long prompt piece by piece, all but the last: a mask grows with the square of a pass."""
        while len(prompt) - len(row.keys) > LONGEST_PASS:
            check()
            self._read([(row, prompt.head(len(row.keys) + LONGEST_PASS))])

    def _read(self, prompts: Sequence[tuple[Row, Prompt]]) -> None:
        self._reader.read(
            [
                Passage(row, prompt, len(row.keys), np.ones(len(row.keys), bool), Tree())
                for row, prompt in prompts
            ]
        )
        for row, prompt in prompts:
            row.keys = prompt.keys

    def _begin(self, windows: Sequence[Window], check: Callable[[], None]) -> list[Reply]:
        for window in windows:
            if len(window.frames) != FRAMES_PER_WINDOW:
                raise ValueError(f'a window has {len(window.frames)} frames ({FRAMES_PER_WINDOW} are needed)')
        if not self._shortcuts.prefix:
            self._keyvalues.forget()
        prompts = self._read_prompts(windows)
        streams = _streams(windows)
        rows = self._keyvalues.rows_for(streams, [prompt.keys for prompt in prompts])
        for row, prompt in zip(rows, prompts):
            self._read_begin(row, prompt, check)
        return [
            Reply(stream, row, prompt, self._format, self._ends, self._max_new_tokens, self._shortcuts.format)
            for stream, row, prompt in zip(streams, rows, prompts)
        ]

    def _read_prompts(self, windows: Sequence[Window]) -> list[Prompt]:
        features = self._features.of(frame for window in windows for frame in window.frames)
        return [
            self._prompts.read(window.task, [features[frame] for frame in window.frames])
            for window in windows
        ]

    def _guess(self, reply: Reply) -> Tree:
        if self._shortcuts.drafts:
            return self._drafter.guess(reply.stream, reply.tokens)
        tree = Tree()
        tree.add(reply.tokens[-1:])
        return tree

    def _finish(self, windows: Sequence[Window], replies: Sequence[Reply]) -> None:
        self._replies += len(replies)
        self._corrected += sum(reply.corrected > 0 for reply in replies)
        for reply in replies:
            if reply.finite:
                self._drafter.learn(reply.stream, reply.tokens)
        if not all(reply.finite for reply in replies):
            # What is not a number spreads: with features, and with the slots that a batch's padding shows.
            self._keyvalues.clear()
            self._features.forget(frame for window in windows for frame in window.frames)


def _batches(windows: Sequence[Window]) -> list[Sequence[Window]]:
    """As many windows as are read together, so that memory stays within bounds."""
    return [windows[start : start + MAX_ROWS] for start in range(0, len(windows), MAX_ROWS)]


def _streams(windows: Sequence[Window]) -> list[Hashable]:
    """What tells the windows of a batch apart, and is the same for the next window of a camera and task."""
    seen: Counter[Hashable] = Counter()
    streams = []
    for window in windows:
        stream = (window.camera, window.task)
        streams.append((*stream, seen[stream]))
        seen[stream] += 1
    return streams


def _check_greedy(loaded: LoadedModel) -> None:
    config = loaded.network.generation_config
    for setting, neutral in _NEUTRAL.items():
        value = getattr(config, setting, None)
        if value not in neutral:
            raise ModelError(
                f'the generation config of {loaded.name} sets {setting} to {value!r}, which the fast engine '
                "does not follow: remove it there, or set engine to 'reference'"
            )
