"""Passes of the language model as CUDA graphs: one launch in place of hundreds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from densereward_ros.models.fast.keyvalues import KeyValues
    from densereward_ros.models.fast.language import LanguagePass

# Few shapes, so that each is met again and again; a step is small beside what a pass costs anyway.
WIDTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_MAX_GRAPHS = 24

Run = Callable[[], 'torch.Tensor']


class Recorder:
    """Records what functions ask of the GPU, all in one pool of memory, since they run one at a time."""

    def __init__(self) -> None:
        import torch

        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, run: Run) -> Run:
        """Returns a function that asks for it again; its result is overwritten by its next call."""
        import torch

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            run()  # libraries set themselves up on a first call, which a recording cannot hold
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            output = run()

        def replay() -> torch.Tensor:
            graph.replay()
            return output

        return replay


@dataclass
class _Recorded:
    """A recorded pass and the tensors that it reads, which stay where they are."""

    inputs: tuple[torch.Tensor, ...]
    replay: Run


class GraphedPass:
    """A LanguagePass whose shapes are few and whose recordings are kept.

    The kernels are those of the pass as it is; only their launches are saved. Where a pass is short,
    as those of a reply are, launching its kernels takes a GPU longer than running them.
    """

    def __init__(self, language: LanguagePass, keyvalues: KeyValues, record: Callable[[Run], Run]) -> None:
        self._language = language
        self._keyvalues = keyvalues
        self._record = record
        self._generation = keyvalues.generation
        self._recorded: OrderedDict[tuple, _Recorded] = OrderedDict()

    def clear(self) -> None:
        """Drop all recordings and the memory that they hold."""
        self._recorded.clear()

    @staticmethod
    def width(tokens: int) -> int | None:
        """The number of tokens that a pass of so many is padded to; None for one that is too long."""
        return next((width for width in WIDTHS if width >= tokens), None)

    def __call__(
        self,
        embeddings: torch.Tensor,
        rotary: tuple[torch.Tensor, torch.Tensor],
        bias: torch.Tensor,
        deepstack: Sequence[torch.Tensor],
        first_row: int,
        slots: torch.Tensor,
    ) -> torch.Tensor:
        """As LanguagePass; valid until the next call. slots: (rows, tokens), which the tokens are kept in."""
        if self._generation != self._keyvalues.generation:  # the buffers have moved
            self.clear()
            self._generation = self._keyvalues.generation
        key = (first_row, *embeddings.shape[:2], len(deepstack))
        inputs = (slots, embeddings, *rotary, bias, *deepstack)
        known = self._recorded.get(key)
        if known is None:
            known = self._recorded[key] = self._new(inputs, first_row)
            if len(self._recorded) > _MAX_GRAPHS:
                self._recorded.popitem(last=False)
        else:
            self._recorded.move_to_end(key)
            for kept, new in zip(known.inputs, inputs, strict=True):
                kept.copy_(new)
        return known.replay()

    def _new(self, inputs: tuple[torch.Tensor, ...], first_row: int) -> _Recorded:
        kept = tuple(part.clone() for part in inputs)
        slots, embeddings, cosines, sines, bias, *deepstack = kept

        def run() -> torch.Tensor:
            with self._keyvalues.fixed(first_row, slots):
                return self._language(embeddings, (cosines, sines), bias, deepstack)

        return _Recorded(kept, self._record(run))
