"""Memory: weights that do not fit are refused with the numbers, limits hold, and frames fit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from densereward_ros.models import checkpoint as checkpoints
from densereward_ros.models import loading, memory
from densereward_ros.models.base import ModelError, ModelOptions
from densereward_ros.models.checkpoint import Checkpoint
from densereward_ros.models.fast.engine import Shortcuts
from densereward_ros.models.fast.model import FastModel
from densereward_ros.models.reference import ReferenceModel
from densereward_ros.types import Window

GPU = torch.device('cuda:1')
SMALL = Checkpoint('small', Path(), parameters=2_400_000, weight_bytes=4_800_000)
LARGE = Checkpoint('large', Path(), parameters=4_437_815_808, weight_bytes=8_875_631_616)
NEEDED = 2 * LARGE.parameters


@pytest.fixture
def gpu(monkeypatch):
    """A GPU of 24 GB with 6 GB free, of which this process holds 1 GB; fractions collects the limits set."""
    told = SimpleNamespace(fractions=[], integrated=False)
    monkeypatch.setattr(torch.cuda, 'mem_get_info', lambda device: (6_000_000_000, 24_000_000_000))
    monkeypatch.setattr(torch.cuda, 'reset_peak_memory_stats', lambda device: None)
    monkeypatch.setattr(torch.cuda, 'memory_reserved', lambda device: 1_000_000_000)
    monkeypatch.setattr(torch.cuda, 'memory_allocated', lambda device: 900_000_000)
    monkeypatch.setattr(torch.cuda, 'max_memory_reserved', lambda device: 1_200_000_000)
    monkeypatch.setattr(
        torch.cuda, 'get_device_properties',
        lambda device: SimpleNamespace(is_integrated=told.integrated, total_memory=24_000_000_000))
    monkeypatch.setattr(
        torch.cuda, 'set_per_process_memory_fraction',
        lambda fraction, device: told.fractions.append((fraction, device)))
    return told


def refusal(function, *arguments) -> str:
    """The line of the ModelError that a call raises."""
    with pytest.raises(ModelError) as caught:
        function(*arguments)
    return str(caught.value)


def test_weights_that_do_not_fit_are_refused_with_the_numbers_and_the_options(gpu):
    """What is needed, what is free, and what can be done."""
    memory.check_memory(GPU, 4_800_000, SMALL, 0.0, 'bfloat16')
    assert refusal(memory.check_memory, GPU, NEEDED, LARGE, 0.0, 'bfloat16') == (
        'large needs 8.9 GB for its weights in bfloat16, but cuda:1 has 6.0 GB of 24.0 GB free: end what '
        'else uses the GPU, set quantization to int8 or int4, or choose another device'
    )
    memory.check_memory(torch.device('cpu'), NEEDED, LARGE, 0.0, 'bfloat16')


def test_a_limit_counts_as_the_size_of_the_gpu(gpu):
    """A GPU shared with a policy: what the limit leaves is what there is, and torch keeps to it."""
    memory.limit_memory(GPU, 3.0)
    assert gpu.fractions == [(0.125, GPU)]
    memory.check_memory(GPU, 1_900_000_000, SMALL, 3.0, 'bfloat16')
    assert refusal(memory.check_memory, GPU, 2_100_000_000, SMALL, 3.0, 'int8 and bfloat16') == (
        'small needs 2.1 GB for its weights in int8 and bfloat16, but gpu_memory leaves 2.0 GB of 3 GB: '
        'raise it, or set quantization to int8 or int4'
    )
    assert refusal(memory.limit_memory, GPU, 25.0) == 'gpu_memory is 25.0 GB, but cuda:1 has 24.0 GB'
    memory.limit_memory(torch.device('cpu'), 3.0)
    assert gpu.fractions == [(0.125, GPU)]


def test_a_limit_that_is_not_what_is_short_is_not_blamed(gpu):
    """Others use the GPU: raising the limit would not help."""
    assert refusal(memory.check_memory, GPU, NEEDED, LARGE, 12.0, 'bfloat16').endswith(
        'cuda:1 has 6.0 GB of 24.0 GB free: end what else uses the GPU, set quantization to int8 or int4, or '
        'choose another device')


def test_without_a_limit_that_of_an_earlier_configure_is_lifted(gpu):
    """The limit belongs to the process, and outlives a model."""
    memory.limit_memory(GPU, 0.0)
    assert gpu.fractions == [(1.0, GPU)]


def test_a_jetson_counts_the_memory_that_the_page_cache_would_give_back(gpu, monkeypatch):
    """CUDA's free memory leaves out the page cache, which holds the weights just downloaded."""
    gpu.integrated = True
    monkeypatch.setattr(memory, '_available_system_memory', lambda: 20_000_000_000)
    memory.check_memory(GPU, NEEDED, LARGE, 0.0, 'bfloat16')


def test_available_memory_is_read_from_the_kernel():
    """Some hundred megabytes to some terabytes, in bytes."""
    assert 10**8 < memory._available_system_memory() < 10**14


def test_the_peak_is_told_in_one_line(gpu):
    """For the log at the end of loading."""
    assert memory.peak(GPU) == (
        '1.2 GB of GPU memory used at most, 900 MB now, of 24.0 GB on cuda:1')
    assert memory.peak(GPU, 3.0).endswith('of 24.0 GB on cuda:1, of which gpu_memory allows 3 GB')
    assert memory.peak(torch.device('cpu')).startswith('this process has used ')


def test_the_released_model_takes_what_the_arithmetic_says():
    """147 kB of keys and values a token; with features and vision about 0.4 MB, 1024 pixels each."""
    text = SimpleNamespace(
        num_hidden_layers=36, num_key_value_heads=8, head_dim=128, hidden_size=2560, num_attention_heads=32)
    vision = SimpleNamespace(
        deepstack_visual_indexes=[5, 11, 17], in_channels=3, temporal_patch_size=2, patch_size=16,
        hidden_size=1024, intermediate_size=4096, spatial_merge_size=2)
    network = SimpleNamespace(
        dtype=torch.bfloat16, config=SimpleNamespace(text_config=text, vision_config=vision))
    pixels = memory.pixels_that_fit(network, 3_000_000_000)
    token = 147_456 + 4 * 2560 * 2 + 4 * (4 * 1536 + (8 * 1024 + 2 * 4096) * 2)
    assert pixels == int(0.5 * 3e9 / 3 / token) * 1024
    assert 1.4e6 < pixels < 1.8e6  # beside the weights 3 GB hold three frames of 1600x1000


def load(folder: Path, lines: list[str], **options) -> loading.LoadedModel:
    """Load a checkpoint on the CPU."""
    options = ModelOptions(device='cpu', **options)
    return loading.load(checkpoints.check(folder, 'mine'), options, lines.append)


def image_tokens(loaded: loading.LoadedModel, window: Window) -> int:
    """The image tokens of the reference's prompt."""
    ids = ReferenceModel(loaded, 32).encode(window)['input_ids']
    return int((ids == loaded.network.config.image_token_id).sum())


def test_a_pixel_budget_makes_large_frames_smaller_and_no_others(lively_checkpoint, make_window):
    """The same for both engines; without one it is the model card's processing."""
    plain, budgeted = load(lively_checkpoint, []), load(lively_checkpoint, [], max_pixels=4096)
    small, large = make_window(64, 64), make_window(96, 128)
    assert image_tokens(plain, small) == image_tokens(budgeted, small) == 3 * 4
    assert image_tokens(plain, large) == 3 * 12
    assert image_tokens(budgeted, large) == 3 * 2
    reference = ReferenceModel(budgeted, 32)
    reply = reference.generate(reference.encode(large))[0].tolist()
    assert FastModel(budgeted, 32, Shortcuts(format=False)).generate([large])[0].tokens == reply


def test_frames_are_kept_to_what_fits_into_memory_and_a_warning_says_so(lively_checkpoint, monkeypatch):
    """A 4K camera cannot exhaust a small machine."""
    lines: list[str] = []
    monkeypatch.setattr(memory, '_available_system_memory', lambda: 40_000_000)
    loaded = load(lively_checkpoint, lines)
    assert loaded.max_pixels < 3840 * 2160
    assert [line for line in lines if line.startswith('warning')] == [
        f'warning: frames of more than {loaded.max_pixels / 1e6:.2g} megapixels are made smaller, for three '
        'of them to fit into memory']
    assert load(lively_checkpoint, [], max_pixels=4096).max_pixels == 4096


def test_the_processors_own_bounds_are_no_budget_of_ours(lively_checkpoint, tmp_path, monkeypatch):
    """What it makes smaller anyway needs no warning; what it would enlarge again is not made smaller."""
    folder = Path(shutil.copytree(lively_checkpoint, tmp_path / 'bounded'))
    file = folder / 'preprocessor_config.json'
    config = json.loads(file.read_text())
    file.write_text(json.dumps({**config, 'size': {'shortest_edge': 8192, 'longest_edge': 16384}}))
    lines: list[str] = []
    monkeypatch.setattr(memory, '_available_system_memory', lambda: 40_000_000)
    assert load(folder, lines).max_pixels is None
    assert [line for line in lines if 'smaller' in line] == []
    assert load(folder, lines, max_pixels=4096).max_pixels == 8192
    assert 'warning: max_pixels is 4096, and this model takes 8192 at least' in lines
    monkeypatch.setattr(memory, '_available_system_memory', lambda: 1000)
    assert load(folder, lines).max_pixels == 8192
