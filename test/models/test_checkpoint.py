"""Finding and checking a checkpoint: every refusal is one line, and nothing is loaded for it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from densereward_ros import share
from densereward_ros.models import checkpoint as checkpoints
from densereward_ros.models import download
from densereward_ros.models.base import ModelError


def nothing(line: str) -> None:
    """Progress that no test looks at."""


@pytest.fixture
def folder(random_checkpoint: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(random_checkpoint, tmp_path / 'copy'))


def split_weights(folder: Path) -> None:
    """Turn the one weights file into two shards and an index."""
    tensors = load_file(folder / 'model.safetensors')
    (folder / 'model.safetensors').unlink()
    names = sorted(tensors)
    shards = {'model-00001-of-00002.safetensors': names[::2], 'model-00002-of-00002.safetensors': names[1::2]}
    for shard, keys in shards.items():
        save_file({key: tensors[key] for key in keys}, folder / shard, metadata={'format': 'pt'})
    weight_map = {key: shard for shard, keys in shards.items() for key in keys}
    (folder / 'model.safetensors.index.json').write_text(json.dumps({'weight_map': weight_map}))


def line_of_refusal(folder: Path) -> str:
    """The one line with which the folder is refused, with the folder's name shortened."""
    with pytest.raises(ModelError) as caught:
        checkpoints.find(str(folder), 'main', nothing)
    line = str(caught.value)
    assert '\n' not in line
    return line.replace(str(folder), 'HERE')


def test_a_folder_is_found_and_measured_without_loading(random_checkpoint):
    """Parameters and bytes come from the safetensors header; the name is what the user wrote."""
    found = checkpoints.find(str(random_checkpoint), 'main', nothing)
    tensors = load_file(random_checkpoint / 'model.safetensors').values()
    assert found == checkpoints.Checkpoint(
        name=str(random_checkpoint),
        folder=random_checkpoint,
        parameters=sum(tensor.numel() for tensor in tensors),
        weight_bytes=sum(tensor.numel() * tensor.element_size() for tensor in tensors),
    )


def test_shards_are_added_up(folder):
    """A model in several files has the same size as in one."""
    whole = checkpoints.check(folder, 'mine')
    split_weights(folder)
    assert checkpoints.check(folder, 'mine') == whole


def test_a_home_folder_may_be_written_with_a_tilde(folder, monkeypatch):
    """A parameters file has no shell to expand it."""
    monkeypatch.setenv('HOME', str(folder.parent))
    assert checkpoints.find('~/copy', 'main', nothing).folder == folder


@pytest.mark.parametrize('model', ['/no/such/folder', './nothing', '~/nothing', 'one/two/three', 'plainword'])
def test_a_path_that_is_not_there(model):
    """A missing folder is never taken for a hub id."""
    with pytest.raises(ModelError) as caught:
        checkpoints.find(model, 'main', nothing)
    assert str(caught.value) == f"{model}: no such folder, and neither a hub id 'owner/name' nor 'tabletop'"


def test_a_file_is_no_checkpoint(folder):
    """Naming the weights file instead of its folder is a common slip."""
    path = folder / 'model.safetensors'
    assert (
        line_of_refusal(path) == 'HERE is a file (a checkpoint is a folder with config.json and the weights)'
    )


def test_a_folder_without_config(tmp_path):
    """Any other folder."""
    assert line_of_refusal(tmp_path) == 'HERE is not a checkpoint: HERE has no config.json'


@pytest.mark.parametrize(
    ('config', 'said'),
    [
        (
            {'model_type': 'llama', 'architectures': ['LlamaForCausalLM']},
            "model_type 'llama', architectures ['LlamaForCausalLM']",
        ),
        ({}, 'model_type None, architectures []'),
        (
            {'model_type': 'qwen3_vl', 'architectures': ['Qwen3VLForSequenceClassification']},
            "model_type 'qwen3_vl', architectures ['Qwen3VLForSequenceClassification']",
        ),
    ],
)  # fmt: skip
def test_another_kind_of_model(folder, config, said):
    """Only Qwen3-VL's generating architecture has been trained for these replies."""
    (folder / 'config.json').write_text(json.dumps(config))
    assert line_of_refusal(folder) == (
        f'HERE is not a Qwen3-VL checkpoint: its config.json says {said} '
        "('qwen3_vl' and 'Qwen3VLForConditionalGeneration' are needed)"
    )


@pytest.mark.parametrize(
    ('text', 'said'),
    [('{', 'cannot read HERE/config.json: '), ('[]', 'HERE/config.json is not a JSON object')],
)
def test_a_broken_config(folder, text, said):
    """JSON errors name the file."""
    (folder / 'config.json').write_text(text)
    assert line_of_refusal(folder).startswith(said)


@pytest.mark.parametrize(
    'name',
    [
        'system_prompt.txt',
        'tokenizer.json',
        'preprocessor_config.json',
        'chat_template.json',
        'model.safetensors',
    ],
)
def test_a_missing_file_is_named(folder, name):
    """Each file that a reply needs."""
    (folder / name).unlink()
    assert line_of_refusal(folder) == f'HERE is not complete: {name} missing in HERE'


def test_a_chat_template_may_lie_in_other_files(folder):
    """Newer checkpoints have chat_template.jinja, older ones a line in tokenizer_config.json."""
    template = json.loads((folder / 'chat_template.json').read_text())['chat_template']
    (folder / 'chat_template.json').rename(folder / 'chat_template.jinja')
    assert checkpoints.missing_files(folder) == []
    (folder / 'chat_template.jinja').unlink()
    config = json.loads((folder / 'tokenizer_config.json').read_text())
    (folder / 'tokenizer_config.json').write_text(json.dumps({**config, 'chat_template': template}))
    assert checkpoints.missing_files(folder) == []


def test_a_missing_shard_is_named(folder):
    """An interrupted copy of a large model."""
    split_weights(folder)
    (folder / 'model-00002-of-00002.safetensors').unlink()
    assert line_of_refusal(folder) == 'HERE is not complete: model-00002-of-00002.safetensors missing in HERE'


def test_pickled_weights_are_refused(folder):
    """A pickle runs code when it is loaded; beside safetensors it is ignored."""
    torch.save({}, folder / 'pytorch_model.bin')
    assert checkpoints.check(folder, 'mine').parameters > 0
    (folder / 'model.safetensors').unlink()
    assert line_of_refusal(folder) == (
        'HERE holds its weights as pickle (pytorch_model.bin), which can run code when it is loaded: '
        'only safetensors are read'
    )


@pytest.mark.parametrize('shard', ['../other.safetensors', '/etc/passwd', 'model.bin'])
def test_an_index_cannot_point_elsewhere(folder, shard):
    """Only safetensors files beside the index are read."""
    (folder / 'model.safetensors').unlink()
    (folder / 'model.safetensors.index.json').write_text(json.dumps({'weight_map': {'a': shard}}))
    assert line_of_refusal(folder) == (
        f"HERE/model.safetensors.index.json names '{shard}' (only .safetensors files beside it are read)"
    )


def test_an_empty_index(folder):
    """An index without a map."""
    (folder / 'model.safetensors').unlink()
    (folder / 'model.safetensors.index.json').write_text('{}')
    assert line_of_refusal(folder) == (
        'HERE/model.safetensors.index.json names no weights (a weight_map is needed)'
    )


def test_a_git_lfs_pointer_is_recognised(folder):
    """A clone without LFS has files of 130 bytes in the place of weights."""
    (folder / 'model.safetensors').write_text(
        'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n'
    )
    assert line_of_refusal(folder) == (
        "HERE/model.safetensors is a Git LFS pointer, not the weights: run 'git lfs pull' there"
    )


def test_weights_cut_short_are_recognised(folder):
    """A copy that ran out of disk; sizes of both are named."""
    path = folder / 'model.safetensors'
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert line_of_refusal(folder) == (
        f'HERE/model.safetensors is cut short: {len(whole) - 1} of {len(whole)} bytes (fetch it again)'
    )
    for size in (0, 7, 100):
        path.write_bytes(whole[:size])
        assert line_of_refusal(folder) == (
            f'HERE/model.safetensors is not a safetensors file, or is cut short ({size} bytes)'
        )
    path.write_bytes((4).to_bytes(8, 'little') + b'oops')
    assert line_of_refusal(folder).startswith('HERE/model.safetensors has a broken safetensors header: ')


def test_an_adapter_must_be_merged_first(folder):
    """transformers would load it where peft is installed and leave it out where it is not."""
    (folder / 'adapter_config.json').write_text('{}')
    assert line_of_refusal(folder) == (
        'HERE holds a LoRA adapter (adapter_config.json): merge it into the weights first'
    )


def test_the_demo_checkpoint_is_found_by_name():
    """The name `tabletop` needs no path, and the folder is complete."""
    found = checkpoints.find('tabletop', 'main', nothing)
    assert found.name == 'tabletop'
    assert found.parameters < 10_000_000


@pytest.mark.parametrize('place', ['prefix', 'sys.prefix', 'ament'])
def test_the_demo_checkpoint_is_found_where_it_was_installed(tmp_path, monkeypatch, random_checkpoint, place):
    """In the module's prefix (colcon), in the interpreter's (pip), or in one of AMENT_PREFIX_PATH."""
    prefix = tmp_path / 'prefix'
    module = tmp_path / 'elsewhere/densereward_ros/share.py'
    if place == 'prefix':
        module = prefix / 'lib/python3.12/site-packages/densereward_ros/share.py'
    monkeypatch.setattr(share, '__file__', str(module))
    monkeypatch.setattr(sys, 'prefix', str(prefix if place == 'sys.prefix' else tmp_path / 'python'))
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/opt/none:{prefix}' if place == 'ament' else '')
    with pytest.raises(
        ModelError, match=r"^the demo checkpoint 'tabletop' is not there \(looked in .*again$"
    ):
        checkpoints.tabletop_folder()
    folder = prefix / 'share/densereward_ros/models/tabletop'
    shutil.copytree(random_checkpoint, folder)
    assert checkpoints.tabletop_folder() == folder


def test_a_complete_cached_model_is_used_without_the_hub(folder, monkeypatch):
    """A robot without a network starts from its cache; a revision shows in the name."""
    monkeypatch.setattr(download, 'cached_folder', lambda model, revision: folder)
    monkeypatch.setattr(download, 'download', None)
    assert checkpoints.find('owner/name', 'main', nothing).name == 'owner/name'
    assert checkpoints.find('owner/name', 'v2', nothing).name == 'owner/name@v2'


def test_an_incomplete_cached_model_is_downloaded(folder, random_checkpoint, monkeypatch):
    """What a broken-off download left is completed, not loaded."""
    (folder / 'tokenizer.json').unlink()
    asked = []
    monkeypatch.setattr(download, 'cached_folder', lambda model, revision: folder)
    monkeypatch.setattr(download, 'download', lambda *request: asked.append(request) or random_checkpoint)
    assert checkpoints.find('owner/name', 'v2', nothing).folder == random_checkpoint
    assert asked == [('owner/name', 'v2', nothing)]


def test_checking_needs_no_torch(random_checkpoint):
    """A wrong path is told before the seconds that importing torch takes."""
    code = (
        'import sys; from pathlib import Path; from densereward_ros.models import checkpoint; '
        'checkpoint.check(Path(sys.argv[1]), "mine"); '
        'assert not {"torch", "transformers", "numpy", "rclpy"} & set(sys.modules)'
    )
    subprocess.run([sys.executable, '-c', code, str(random_checkpoint)], check=True)
