"""Work that several processes share, each with the model opened once."""

from __future__ import annotations

import functools
import multiprocessing
from typing import Any, Callable, Iterable, Iterator, TypeVar

Item = TypeVar('Item')
Result = TypeVar('Result')


def work_through(
    work: Callable[[Any, Item], Result], items: Iterable[Item], folder: str, engine: str, processes: int
) -> Iterator[Result]:
    """Yield work(model, item) for each item, in any order; each process has one core and a model of its own.

    work: a function of a module. With one process everything happens in this one. Raises ModelError.
    """
    if processes == 1:
        _open(folder, engine)
        yield from map(functools.partial(_do, work), items)
        return
    context = multiprocessing.get_context('spawn')
    with context.Pool(processes, _open, (folder, engine)) as pool:
        yield from pool.imap_unordered(functools.partial(_do, work), items)


_model = None


def _open(folder: str, engine: str) -> None:
    """Runs once in each process."""
    global _model
    import torch

    from densereward_ros.models.base import ModelOptions
    from densereward_ros.models.opening import open_model

    torch.set_num_threads(1)
    _model = open_model(ModelOptions(model=folder, device='cpu', engine=engine))


def _do(work, item):
    return work(_model, item)
