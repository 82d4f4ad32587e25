"""The language model's keys and values, kept between replies: a row of slots for each stream of windows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

MAX_ROWS = 8
_SLOTS = 256  # buffers grow by multiples of this

_EMPTY = np.empty(0, np.int64)


class Row:
    """The slots of one stream.

    number: its place in the buffers. keys: of the prompt tokens whose slots are valid. Those beyond
    hold tokens of the running reply, and nothing of use once it has ended.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.keys = _EMPTY


def common_prefix(one: np.ndarray, other: np.ndarray) -> int:
    """In how many leading elements two arrays agree."""
    length = min(len(one), len(other))
    differing = np.flatnonzero(one[:length] != other[:length])
    return int(differing[0]) if len(differing) else length


class KeyValues:
    """Stands in for transformers' cache: the attention layers write into buffers that outlive the pass.

    A row is filled by prompts. Whatever a new prompt shares with what is there, be it the system
    prompt, frames that were read ahead or all but the task, is not computed again.
    """

    def __init__(self, network: Any) -> None:
        config = network.config.text_config
        self._layers = config.num_hidden_layers
        self._heads = config.num_key_value_heads
        self._head_size = (
            getattr(config, 'head_dim', None) or config.hidden_size // config.num_attention_heads
        )
        self._dtype, self._device = network.dtype, network.device
        self._rows: OrderedDict[Hashable, Row] = OrderedDict()
        self._capacity = (0, 0)
        self._buffers: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._writing: Sequence[tuple[Row, int, int]] = ()
        self._fixed: tuple[int, torch.Tensor] | None = None
        self.generation = 0  # changes when the buffers are others

    @property
    def slots(self) -> int:
        """How many slots a row has."""
        return self._capacity[1]

    @property
    def bytes(self) -> int:
        """Memory that the buffers take."""
        return sum(part.nbytes for layer in self._buffers for part in layer)

    def clear(self) -> None:
        """Forget everything and free the buffers."""
        self._rows.clear()
        self._buffers, self._capacity = [], (0, 0)
        self.generation += 1

    def forget(self) -> None:
        """Use nothing again of what is there; the buffers stay."""
        for row in self._rows.values():
            row.keys = _EMPTY

    def rows_for(self, streams: Sequence[Hashable], prompts: Sequence[np.ndarray]) -> list[Row]:
        """The row of each stream, all different, holding as much of its prompt as is known anywhere.

        At most MAX_ROWS streams.
        """
        for stream in streams:
            if stream in self._rows:
                self._rows.move_to_end(stream)  # before a new stream takes the oldest row
        rows = [self._row(stream) for stream in streams]
        self._reserve(max(row.number for row in self._rows.values()) + 1, max(map(len, prompts)))
        for row, prompt in zip(rows, prompts):
            shared = common_prefix(row.keys, prompt)
            best, most = max(
                ((other, common_prefix(other.keys, prompt)) for other in self._rows.values()),
                key=lambda candidate: candidate[1],
            )
            if most > shared:
                for part in (part for layer in self._buffers for part in layer):
                    part[row.number, :, shared:most] = part[best.number, :, shared:most]
            row.keys = prompt[: max(shared, most)]
        return rows

    def write(self, writing: Sequence[tuple[Row, int, int]], width: int = 0) -> None:
        """Say where the next pass belongs: for each row of its batch, the row, first slot and tokens.

        width: tokens of a padded pass, which has the slots after its own for its padding.
        """
        self._reserve(self._capacity[0], max(start + max(count, width) for _, start, count in writing))
        self._writing = writing

    @contextmanager
    def fixed(self, first_row: int, slots: torch.Tensor) -> Iterator[None]:
        """Passes within see neighbouring rows with all their slots, and write into `slots`, (rows, tokens).

        Nothing of them depends on numbers that the CPU knows, so that a recording stays true.
        """
        self._fixed = first_row, slots
        try:
            yield
        finally:
            self._fixed = None

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store (batch, heads, tokens, size), return all there is to attend to; called by each layer."""
        if self._fixed is not None:
            first, slots = self._fixed
            rows = [buffer[first : first + len(slots)] for buffer in self._buffers[layer]]
            for row, new in zip(rows, (keys, values)):
                for place in range(len(slots)):
                    row[place].index_copy_(1, slots[place], new[place])
            return rows[0], rows[1]
        length = max(start + count for _, start, count in self._writing)
        numbers = [row.number for row, _, _ in self._writing]
        whole = []
        for buffer, new in zip(self._buffers[layer], (keys, values)):
            for place, (row, start, count) in enumerate(self._writing):
                buffer[row.number, :, start : start + count] = new[place, :, :count]
            in_order = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            chosen = slice(numbers[0], numbers[0] + len(numbers)) if in_order else numbers
            whole.append(buffer[chosen][:, :, :length])
        return whole[0], whole[1]

    def get_seq_length(self, layer: int = 0) -> int:
        """Asked by the language model, which makes no use of the answer when mask and positions are given."""
        return max(start for _, start, _ in self._writing)

    def _row(self, stream: Hashable) -> Row:
        """The row of a stream; when there are too many, that of the least recently used one."""
        if stream not in self._rows:
            if len(self._rows) < MAX_ROWS:
                self._rows[stream] = Row(len(self._rows))
            else:
                # Its contents stay for now: another stream's system prompt is this one's too.
                self._rows[stream] = self._rows.popitem(last=False)[1]
        self._rows.move_to_end(stream)
        return self._rows[stream]

    def _reserve(self, rows: int, slots: int) -> None:
        import torch

        slots = -(-slots // _SLOTS) * _SLOTS
        if rows <= self._capacity[0] and slots <= self._capacity[1]:
            return
        rows, slots = max(rows, self._capacity[0]), max(slots, self._capacity[1])
        if not self._buffers:
            empty = torch.empty(0, self._heads, 0, self._head_size, dtype=self._dtype, device=self._device)
            self._buffers = [(empty, empty)] * self._layers
        for layer, parts in enumerate(self._buffers):  # one after the other, to need little at once
            self._buffers[layer] = (_grown(parts[0], rows, slots), _grown(parts[1], rows, slots))
        self._capacity = (rows, slots)
        self.generation += 1


def _grown(buffer: torch.Tensor, rows: int, slots: int) -> torch.Tensor:
    """A copy with more room, which holds zeros: padding may be looked at, but must be finite."""
    grown = buffer.new_zeros(rows, buffer.shape[1], slots, buffer.shape[3])
    grown[: buffer.shape[0], :, : buffer.shape[2]] = buffer
    return grown
