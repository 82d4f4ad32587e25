"""Loading: every weight arrives or there is an error; warnings are for what may still work."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Callable

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from densereward_ros.models import checkpoint as checkpoints
from densereward_ros.models import loading
from densereward_ros.models.base import ModelError, ModelOptions
from densereward_ros.models.sizes import human_bytes

EMBEDDINGS = 'model.language_model.embed_tokens.weight'


def nothing(line: str) -> None:
    """Progress that no test looks at."""


@pytest.fixture
def folder(random_checkpoint: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(random_checkpoint, tmp_path / 'copy'))


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    """Rewrite the weights file."""
    tensors = load_file(folder / 'model.safetensors')
    change(tensors)
    save_file(tensors, folder / 'model.safetensors', metadata={'format': 'pt'})


def change_config(folder: Path, name: str = 'config.json', **values) -> None:
    """Set top-level values of a JSON file."""
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def load(folder: Path, progress: Callable[[str], None] = nothing) -> loading.LoadedModel:
    """Load from a folder as open_model does, on the CPU."""
    return loading.load(checkpoints.check(folder, 'mine'), ModelOptions(device='cpu'), progress)


def line_of_refusal(folder: Path) -> str:
    """The one line with which loading is refused."""
    with pytest.raises(ModelError) as caught:
        load(folder)
    assert '\n' not in str(caught.value)
    return str(caught.value)


def test_a_good_checkpoint_loads_with_two_lines(folder, capfd):
    """What is loaded is said, nothing else is printed, and all weights are those of the file."""
    lines = []
    loaded = load(folder, lines.append)
    size = human_bytes(checkpoints.check(folder, 'mine').weight_bytes)
    assert lines[0] == f'loading mine ({size}) onto cpu'
    assert [line for line in lines[1:] if 'system prompt' not in line] == []
    assert capfd.readouterr() == ('', '')
    assert loaded.name == 'mine'
    assert loaded.system_prompt == (folder / 'system_prompt.txt').read_text().strip()
    assert not loaded.network.training
    state = loaded.network.state_dict()
    for name, tensor in load_file(folder / 'model.safetensors').items():
        assert torch.equal(state[name], tensor.float()), name
    assert state['lm_head.weight'].data_ptr() == state[EMBEDDINGS].data_ptr()


def test_nothing_is_asked_of_the_network_or_of_remote_code(folder, monkeypatch):
    """A local folder loads with every socket closed, and a config that names remote code runs none of it."""
    import socket

    def closed(*_, **__):
        raise AssertionError('a connection was tried')

    monkeypatch.setattr(socket.socket, 'connect', closed)
    monkeypatch.setattr(socket, 'getaddrinfo', closed)
    change_config(folder, auto_map={'AutoModelForImageTextToText': 'evil.Model', 'AutoConfig': 'evil.Config'})
    change_config(folder, 'tokenizer_config.json', auto_map={'AutoProcessor': 'evil.Processor'})
    (folder / 'evil.py').write_text('raise SystemExit("ran")')
    assert type(load(folder).network).__module__.startswith('transformers.')


def test_the_special_tokens_are_the_tokenizers(folder):
    """Image pads count as special; <think> does not, since the reply's text must keep it."""
    special = load(folder).special_tokens
    assert {'<|im_end|>', '<|image_pad|>'} <= set(special)
    assert '<think>' not in special


def test_missing_weights_are_an_error(folder):
    """transformers would only warn and roll dice for them."""
    change_weights(folder, lambda tensors: tensors.pop('model.language_model.norm.weight'))
    assert line_of_refusal(folder) == (
        'mine lacks 1 weight(s), which would be newly initialised (random): model.language_model.norm.weight'
    )


def test_a_head_that_is_neither_tied_nor_there_is_missing(folder):
    """tie_word_embeddings false without lm_head.weight would give a random head."""
    text = json.loads((folder / 'config.json').read_text())['text_config']
    change_config(folder, tie_word_embeddings=False, text_config={**text, 'tie_word_embeddings': False})
    assert line_of_refusal(folder) == (
        'mine lacks 1 weight(s), which would be newly initialised (random): lm_head.weight'
    )


def test_a_tied_head_may_be_stored_twice_but_not_differently(folder):
    """An equal copy is harmless; another one is read differently by each version of transformers."""
    change_weights(folder, lambda tensors: tensors.update({'lm_head.weight': tensors[EMBEDDINGS].clone()}))
    assert load(folder).network is not None
    change_weights(folder, lambda tensors: tensors.update({'lm_head.weight': tensors[EMBEDDINGS] * 2}))
    assert line_of_refusal(folder) == (
        'mine holds an lm_head.weight that differs from the embeddings, but its config says '
        'tie_word_embeddings: set that to false in config.json, or remove the tensor'
    )


def test_weights_of_another_shape_are_named(folder):
    """A config of another size is an error that shows where."""
    key = 'model.language_model.layers.1.mlp.up_proj.weight'
    change_weights(folder, lambda tensors: tensors.update({key: tensors[key][:-1].clone()}))
    assert line_of_refusal(folder) == f'mine has 1 weight(s) of another shape than its config: {key}'


def test_weights_without_a_place_are_an_error_inside_the_network(folder):
    """A layer more than the config says was trained and would silently be left out."""
    text = json.loads((folder / 'config.json').read_text())['text_config']
    change_config(folder, text_config={**text, 'num_hidden_layers': 2})
    line = line_of_refusal(folder)
    assert line.startswith(
        'mine has 11 weight(s) that its config has no place for: model.language_model.layers.2.'
    )
    assert line.endswith(', ...')


def test_other_unexpected_weights_are_a_warning(folder):
    """A head for values beside the language model does not change the reply."""
    change_weights(folder, lambda tensors: tensors.update({'v_head.weight': torch.zeros(1, 128)}))
    lines = []
    load(folder, lines.append)
    assert 'warning: mine has 1 weight(s) that a reply does not use: v_head.weight' in lines


def test_an_impossible_config_is_one_line(folder):
    """Whatever transformers raises, the name and the first line of it remain."""
    vision = json.loads((folder / 'config.json').read_text())['vision_config']
    change_config(folder, vision_config={**vision, 'hidden_size': 'many'})
    assert line_of_refusal(folder).startswith('cannot load mine: ')


def test_a_broken_processor_is_one_line(folder):
    """The weights may be good and the tokenizer not."""
    (folder / 'tokenizer.json').write_text('{}')
    assert line_of_refusal(folder).startswith('cannot load the processor of mine: ')


def test_an_unknown_system_prompt_is_a_warning(folder, monkeypatch):
    """Neither the released prompt nor the demo's: the rewards may be off, but the user may know better."""
    (folder / 'system_prompt.txt').write_text('abc\n')
    lines = []
    load(folder, lines.append)
    assert [line for line in lines if line.startswith('warning')] == [
        'warning: the system prompt of mine differs from the released one (SHA-256 ba7816bf8f01..., '
        '7987b38ea84a... expected): rewards may be off'
    ]


def test_the_demos_own_system_prompt_is_no_warning(folder, monkeypatch):
    """The demo checkpoint, and models trained like it, have a prompt of their own."""
    monkeypatch.setattr(checkpoints, 'tabletop_folder', lambda: folder)
    lines = []
    load(folder, lines.append)
    assert [line for line in lines if line.startswith('warning')] == []


@pytest.mark.parametrize(
    ('version', 'warned'), [('2.9.0+cu128', True), ('2.9.1', True), ('2.8.0', False), ('2.10.0', False)]
)
def test_torch_2_9_is_a_warning(folder, monkeypatch, version, warned):
    """Its Conv3d is slow, and Qwen3-VL's patch embedding is one."""
    monkeypatch.setattr(torch, '__version__', version)
    lines = []
    loading._check_patch_embedding(load_network(folder), lines.append)
    assert (
        lines
        == [
            f'warning: torch {version} is slow in the vision patch embedding (a Conv3d regression of 2.9): '
            'use 2.8, or 2.10 and newer'
        ]
        * warned
    )


def load_network(folder: Path):
    """The network alone."""
    return transformers.Qwen3VLForConditionalGeneration.from_pretrained(folder)
