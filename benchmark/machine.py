"""What the machine could do at best: the floor below which no engine can go."""

from __future__ import annotations

import resource
import time
from typing import Any

import torch

_MATRIX = 1024
_READ_BYTES = 256 * 2**20
_REPEATS = 5


def wait(device: torch.device) -> None:
    """Let the GPU finish what was asked of it."""
    if device.type == 'cuda':
        torch.cuda.synchronize(device)


def matmul_rate(dtype: torch.dtype, device: torch.device) -> float:
    """Floating-point operations a second of a large linear layer."""
    side = _MATRIX * (8 if device.type == 'cuda' else 1)
    tokens, weights = (torch.rand(side, side, dtype=dtype, device=device) for _ in range(2))
    return 2 * side**3 / _best_time(lambda: torch.nn.functional.linear(tokens, weights), device)


def read_rate(dtype: torch.dtype, device: torch.device) -> float:
    """Bytes of weights a second that a product with one vector reads."""
    columns = 4096
    size = _READ_BYTES * (8 if device.type == 'cuda' else 1)
    weights = torch.ones(size // columns // dtype.itemsize, columns, dtype=dtype, device=device)
    token = torch.ones(1, columns, dtype=dtype, device=device)
    return size / _best_time(lambda: torch.nn.functional.linear(token, weights), device)


def peak_memory(device: torch.device) -> int:
    """Bytes: of the GPU's memory where there is one, of this process otherwise."""
    if device.type == 'cuda':
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def weights_of(network: Any) -> tuple[int, int]:
    """Weights that each token is multiplied with, and each patch."""
    language = sum(weight.numel() for weight in network.model.language_model.layers.parameters())
    vision = sum(weight.numel() for weight in network.model.visual.blocks.parameters())
    return language + network.lm_head.weight.numel(), vision


def _best_time(work: Any, device: torch.device) -> float:
    times = []
    for _ in range(_REPEATS + 1):
        wait(device)
        started = time.perf_counter()
        work()
        wait(device)
        times.append(time.perf_counter() - started)
    return min(times[1:])
