"""Device and number format: chosen before loading, refused in one line."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from densereward_ros.models import placement
from densereward_ros.models.base import ModelError
from densereward_ros.models.checkpoint import Checkpoint

SMALL = Checkpoint('small', Path(), parameters=2_400_000, weight_bytes=4_800_000)
LARGE = Checkpoint('large', Path(), parameters=4_437_815_808, weight_bytes=8_875_631_616)


@pytest.fixture
def no_gpu(monkeypatch):
    """A machine without a GPU and a torch without CUDA."""
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: 0)
    monkeypatch.setattr(torch, '__version__', '2.8.0+cpu')
    monkeypatch.setattr(torch.version, 'cuda', None)


@pytest.fixture
def two_gpus(monkeypatch):
    """A machine with two GPUs of 24 GB, of which the current one has 6 GB free."""
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: 2)
    monkeypatch.setattr(torch.cuda, 'current_device', lambda: 1)
    monkeypatch.setattr(torch.cuda, 'mem_get_info', lambda device: (6_000_000_000, 24_000_000_000))
    monkeypatch.setattr(
        torch.cuda, 'get_device_properties', lambda device: SimpleNamespace(is_integrated=False)
    )


def refusal(function, *arguments) -> str:
    """The line of the ModelError that a call raises."""
    with pytest.raises(ModelError) as caught:
        function(*arguments)
    return str(caught.value)


def test_without_a_gpu_a_small_model_runs_on_the_cpu_and_a_large_one_is_refused(no_gpu):
    """auto never makes a robot wait a minute a reply; 'cpu' says that one knows."""
    assert placement.choose_device('auto', SMALL) == torch.device('cpu')
    assert placement.choose_device('cpu', LARGE) == torch.device('cpu')
    assert refusal(placement.choose_device, 'auto', LARGE) == (
        'large has 4.4 billion parameters and torch 2.8.0+cpu (built without CUDA) sees no CUDA GPU: '
        "use a machine with a GPU, or set device to 'cpu' to accept many seconds a reply"
    )


def test_cuda_without_a_gpu_names_what_torch_sees(no_gpu, monkeypatch):
    """A CPU build of torch and a missing driver are different faults."""
    assert refusal(placement.choose_device, 'cuda', SMALL) == (
        "device is 'cuda', but torch 2.8.0+cpu (built without CUDA) sees no CUDA GPU"
    )
    monkeypatch.setattr(torch, '__version__', '2.8.0+cu128')
    monkeypatch.setattr(torch.version, 'cuda', '12.8')
    assert refusal(placement.choose_device, 'cuda:1', SMALL) == (
        "device is 'cuda:1', but torch 2.8.0+cu128 (built for CUDA 12.8) sees no CUDA GPU"
    )


def test_with_gpus_the_current_one_is_taken_unless_another_is_named(two_gpus):
    """One whole device each time: nothing is spread or offloaded."""
    assert placement.choose_device('auto', LARGE) == torch.device('cuda:1')
    assert placement.choose_device('cuda', LARGE) == torch.device('cuda:1')
    assert placement.choose_device('cuda:0', LARGE) == torch.device('cuda:0')
    assert placement.choose_device('cpu', SMALL) == torch.device('cpu')
    assert refusal(placement.choose_device, 'cuda:2', SMALL) == (
        "device is 'cuda:2', but torch sees 2 GPU(s): cuda:0 to cuda:1"
    )


def test_dtypes():
    """bfloat16 on a GPU, float32 on the CPU, or what was asked for."""
    assert placement.choose_dtype('auto', torch.device('cuda:0')) == torch.bfloat16
    assert placement.choose_dtype('auto', torch.device('cpu')) == torch.float32
    assert placement.choose_dtype('float16', torch.device('cpu')) == torch.float16
    assert placement.choose_dtype('auto', torch.device('cpu'), 'int4') == torch.bfloat16
