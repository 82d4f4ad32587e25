"""Weights in 8 and 4 bits: the language model's alone, in less memory, with replies that still make sense."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

from densereward_ros.models import checkpoint as checkpoints
from densereward_ros.models import loading
from densereward_ros.models.base import ModelError, ModelOptions
from densereward_ros.models.checkpoint import Checkpoint
from densereward_ros.models.opening import open_model
from densereward_ros.models.quantization import bytes_of_weights, quantize
from densereward_ros.types import Verdict

needs_torchao = pytest.mark.skipif(
    importlib.util.find_spec('torchao') is None, reason='torchao, which is optional, is not installed')


@needs_torchao
@pytest.mark.parametrize(('kind', 'dtype'), [('int8', 'auto'), ('int8', 'bfloat16'), ('int4', 'auto')])
def test_only_the_language_model_is_quantized_and_verdicts_come(kind, dtype, make_window):
    """Vision tower, embeddings and head keep their format."""
    options = ModelOptions(model='tabletop', device='cpu', dtype=dtype, quantization=kind)
    found = checkpoints.find('tabletop', 'main', lambda line: None)
    network = loading.load(found, options, lambda line: None).network
    plain = torch.bfloat16 if kind == 'int4' or dtype == 'bfloat16' else torch.float32
    for name, weight in network.named_parameters():
        linear = '.layers.' in name and name.endswith('proj.weight') and 'language_model' in name
        assert (type(weight.data) is torch.Tensor) is not linear, name
        assert weight.dtype == plain, name
    (verdict,) = open_model(options).score([make_window()])
    assert isinstance(verdict, Verdict)


@needs_torchao
def test_int8_is_closer_than_chance(make_window):
    """On the demo checkpoint the rewards move by some hundredths at most."""
    windows = [make_window(seed=seed) for seed in range(5)]
    full = open_model(ModelOptions(model='tabletop', device='cpu')).score(windows)
    small = open_model(ModelOptions(model='tabletop', device='cpu', quantization='int8')).score(windows)
    assert max(abs(one.reward - other.reward) for one, other in zip(full, small)) < 0.05


def test_the_bytes_of_the_weights(tmp_path):
    """The released shape: 3.6 of its 4.4 billion weights are the language model's linear layers."""
    text = {
        'hidden_size': 2560, 'num_attention_heads': 32, 'num_key_value_heads': 8, 'head_dim': 128,
        'num_hidden_layers': 36, 'intermediate_size': 9728}
    (tmp_path / 'config.json').write_text(json.dumps({'text_config': text}))
    large = Checkpoint('large', tmp_path, parameters=4_437_815_808, weight_bytes=0)
    linear = 36 * (2560 * 128 * 80 + 3 * 2560 * 9728)
    full = 2 * large.parameters
    assert bytes_of_weights(large, torch.bfloat16, 'none') == full
    assert bytes_of_weights(large, torch.bfloat16, 'int8') == full - linear
    assert bytes_of_weights(large, torch.bfloat16, 'int4') == pytest.approx(full - linear * (1.5 - 4 / 128))


def test_without_torchao_it_is_refused_with_the_command(monkeypatch):
    """Before anything is loaded."""
    monkeypatch.setitem(sys.modules, 'torchao', None)
    monkeypatch.delitem(sys.modules, 'torchao.quantization', raising=False)
    with pytest.raises(ModelError) as caught:
        open_model(ModelOptions(model='tabletop', device='cpu', quantization='int8'))
    assert 'quantization needs torchao, which is not installed' in str(caught.value)
    assert f"{sys.executable} -m pip install torchao==0.13.0'" in str(caught.value)
    assert '\n' not in str(caught.value)


@needs_torchao
def test_out_of_memory_is_not_taken_for_a_fault_of_torchao(monkeypatch, random_checkpoint: Path):
    """It is a RuntimeError, too; the advice to quantise less would be the wrong one."""
    import torchao.quantization

    def run_out(*_, **__):
        raise torch.cuda.OutOfMemoryError('CUDA out of memory')

    found = checkpoints.check(random_checkpoint, 'mine')
    network = loading.load(found, ModelOptions(device='cpu'), lambda line: None).network
    monkeypatch.setattr(torchao.quantization, 'quantize_', run_out)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        quantize(network, 'int8', torch.device('cpu'))


@needs_torchao
def test_what_torchao_cannot_do_here_is_one_line(monkeypatch, random_checkpoint: Path):
    """A GPU that is too old, for example."""
    import torchao.quantization

    def refuse(*_, **__):
        raise RuntimeError('int4 needs compute capability 8.0\nmore')

    monkeypatch.setattr(torchao.quantization, 'quantize_', refuse)
    found = checkpoints.check(random_checkpoint, 'mine')
    network = loading.load(found, ModelOptions(device='cpu'), lambda line: None).network
    with pytest.raises(ModelError) as caught:
        quantize(network, 'int4', torch.device('cpu'))
    assert str(caught.value) == (
        'torchao cannot make int4 weights on cpu: RuntimeError: int4 needs compute capability 8.0 '
        "(set quantization to 'none')")
