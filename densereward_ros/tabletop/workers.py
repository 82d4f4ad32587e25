"""Work that several processes share, each with the model opened once."""

from __future__ import annotations

import functools
import multiprocessing
import time
from typing import Any, Callable, Iterator, Sequence, TypeVar

Item = TypeVar('Item')
Result = TypeVar('Result')
_REPORT_S = 10.0


def work_through(
    work: Callable[[Any, Item], Result],
    items: Sequence[Item],
    folder: str,
    engine: str,
    processes: int,
    report: Callable[[str], None],
) -> Iterator[Result]:
    """Yield work(model, item) for each item, in any order; each process has one core and a model of its own.

    work: a function of a module. With one process everything happens in this one. report: hears every few
    seconds how many episodes are done, and how long the rest will take. Raises ModelError.
    """
    report(f'scoring {len(items)} episodes with {folder}')
    start = last = time.monotonic()
    do = functools.partial(_do, work, folder, engine)
    for done, result in enumerate(_results(do, items, processes), 1):
        yield result
        if time.monotonic() - last > _REPORT_S:
            last = time.monotonic()
            left_s = (last - start) / done * (len(items) - done)
            report(f'{done} of {len(items)} episodes, about {left_s / 60:.1f} minutes left')


def _results(do: Callable[[Item], Result], items: Sequence[Item], processes: int) -> Iterator[Result]:
    if processes == 1:
        yield from map(do, items)
        return
    with multiprocessing.get_context('spawn').Pool(processes) as pool:
        yield from pool.imap_unordered(do, items)


def _do(work: Callable[[Any, Item], Result], folder: str, engine: str, item: Item) -> Result:
    return work(_model(folder, engine), item)


@functools.cache
def _model(folder: str, engine: str) -> Any:
    """Not in a pool's initializer: when that raises, the pool starts processes for ever."""
    import torch

    from densereward_ros.models.base import ModelOptions
    from densereward_ros.models.opening import open_model

    torch.set_num_threads(1)
    return open_model(ModelOptions(model=folder, device='cpu', engine=engine))
