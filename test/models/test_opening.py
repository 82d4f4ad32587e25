"""Opening a model: options are checked first, then packages, then files."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from densereward_ros.models import opening
from densereward_ros.models.base import ModelError, ModelOptions
from densereward_ros.models.opening import open_model


def refusal(**options) -> str:
    """The line with which open_model refuses."""
    with pytest.raises(ModelError) as caught:
        open_model(ModelOptions(**options))
    assert '\n' not in str(caught.value)
    return str(caught.value)


def test_the_defaults_are_the_released_model():
    """With no other argument the model is the published one, its main revision, on a GPU if there is one."""
    assert ModelOptions() == ModelOptions(
        model='densereward/densereward-3frame-thinking',
        revision='main',
        device='auto',
        dtype='auto',
        max_new_tokens=32,
        engine='fast',
    )


@pytest.mark.parametrize(
    ('options', 'line'),
    [
        ({'model': ' '}, "model is empty (a local folder, a hub id 'owner/name', or 'tabletop')"),
        ({'device': 'gpu'}, "device is 'gpu' ('auto', 'cpu', 'cuda' or 'cuda:N' are allowed)"),
        ({'engine': 'quick'}, "engine is 'quick' (fast, reference, score_head, server are allowed)"),
        ({'device': 'cuda:'}, "device is 'cuda:' ('auto', 'cpu', 'cuda' or 'cuda:N' are allowed)"),
        ({'device': 'cuda:-1'}, "device is 'cuda:-1' ('auto', 'cpu', 'cuda' or 'cuda:N' are allowed)"),
        ({'dtype': 'int8'}, "dtype is 'int8' (auto, bfloat16, float16, float32 are allowed)"),
        ({'quantization': 'fp8'}, "quantization is 'fp8' (none, int8, int4 are allowed)"),
        (
            {'quantization': 'int4', 'dtype': 'float32'},
            "quantization is 'int4' and dtype 'float32' (int4 needs bfloat16)",
        ),
        (
            {'max_pixels': 100},
            'max_pixels is 100 (0, for no budget of its own, or 4096 and more are allowed)',
        ),
        ({'gpu_memory': -1.0}, 'gpu_memory is -1.0 (0.0, for all, or a number of GB is allowed)'),
        (
            {'max_new_tokens': 31},
            'max_new_tokens is 31 (32 or more are needed: reason and reward must both fit)',
        ),
    ],
)  # fmt: skip
def test_options_that_no_model_can_honour(options, line):
    """The value seen and what is allowed."""
    assert refusal(**options) == line


def test_a_package_that_is_not_installed_is_named_with_its_interpreter(monkeypatch):
    """A node started by the wrong Python says which Python that is, before it downloads anything."""
    monkeypatch.setitem(sys.modules, 'torch', None)
    monkeypatch.setitem(sys.modules, 'qwen_vl_utils', None)
    assert refusal(model='/nowhere') == (
        f'torch, qwen-vl-utils not installed for {sys.executable}: '
        f"install with '{sys.executable} -m pip install torch qwen-vl-utils' "
        '(in a virtual environment; see the README)'
    )


def test_a_package_that_is_installed_but_broken_is_named(monkeypatch, random_checkpoint):
    """Mismatched torch and torchvision end in a RuntimeError at import, far from any helpful word."""
    real = opening.importlib.import_module

    def broken(name: str):
        if name == 'torchvision':
            raise RuntimeError('operator torchvision::nms does not exist\nmore')
        return real(name)

    monkeypatch.setattr(opening.importlib, 'import_module', broken)
    assert refusal(model=str(random_checkpoint)) == (
        f'torchvision is installed for {sys.executable} but cannot be imported: RuntimeError: operator '
        'torchvision::nms does not exist (torch and torchvision must be builds of the same release)'
    )


def test_preload_imports_ahead_and_leaves_complaints_to_opening(monkeypatch):
    """The node calls it before its first transition; a package that is missing must not end it there."""
    opening.preload()
    assert 'transformers.models.qwen3_vl.modeling_qwen3_vl' in sys.modules
    monkeypatch.setitem(sys.modules, 'torch', None)
    opening.preload()


def test_opening_tells_what_it_does(random_checkpoint):
    """Loading and warming up are each one line; the model carries the name the user gave."""
    lines = []
    model = open_model(ModelOptions(model=str(random_checkpoint), device='cpu'), lines.append)
    assert model.name == str(random_checkpoint)
    said = [line for line in lines if not line.startswith('warning: the system prompt')]
    assert re.fullmatch(rf'loading {re.escape(str(random_checkpoint))} \(\d MB\) onto cpu', said[0])
    assert said[1] == f'warming up {random_checkpoint}'
    assert said[2].startswith(f'{random_checkpoint} is ready: this process has used ')
    assert len(said) == 3


def test_cuda_graphs_on_a_cpu_are_a_warning_and_change_nothing(random_checkpoint):
    """One parameter file serves robots with and without a GPU."""
    lines = []
    open_model(ModelOptions(model=str(random_checkpoint), device='cpu', cuda_graphs=True), lines.append)
    assert 'warning: cuda_graphs has no effect on a CPU' in lines


def test_importing_it_imports_nothing_heavy():
    """The command line and the ROS node import it long before a model is wanted."""
    code = (
        'import sys, densereward_ros.models.opening; '
        'assert not {"torch", "transformers", "numpy", "rclpy"} & set(sys.modules)'
    )
    subprocess.run([sys.executable, '-c', code], check=True)
