"""The demo checkpoint's files: made untrained, and as committed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from densereward_ros.models.reply import format_reply
from densereward_ros.tabletop.checkpoint import SYSTEM_PROMPT, new_checkpoint
from densereward_ros.tabletop.words import COLOURS, PHRASINGS
from densereward_ros.types import REASONS

FILES = {
    'chat_template.json',
    'config.json',
    'generation_config.json',
    'model.safetensors',
    'preprocessor_config.json',
    'system_prompt.txt',
    'tokenizer.json',
    'tokenizer_config.json',
    'video_preprocessor_config.json',
}


@pytest.fixture(scope='module')
def tokenizer(random_checkpoint: Path):
    """The checkpoint's own tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(random_checkpoint)


@pytest.fixture(scope='module')
def committed(repository: Path) -> Path:
    """The checkpoint that ships with the package."""
    return repository / 'models' / 'tabletop'


def test_a_new_checkpoint_is_complete_and_small(random_checkpoint):
    """Everything that a Qwen3-VL checkpoint needs, in less than 12 MB."""
    assert {path.name for path in random_checkpoint.iterdir()} == FILES
    assert sum(path.stat().st_size for path in random_checkpoint.iterdir()) < 12e6


def test_the_same_seed_gives_the_same_files(random_checkpoint, tmp_path):
    """Weights and tokenizer, byte for byte; another seed gives other weights and the same texts."""
    again, other = new_checkpoint(tmp_path / 'again', 0), new_checkpoint(tmp_path / 'other', 1)
    for name in FILES:
        expected = (random_checkpoint / name).read_bytes()
        assert (again / name).read_bytes() == expected, name
        assert ((other / name).read_bytes() == expected) == (name != 'model.safetensors'), name


def test_the_config_loads_in_old_transformers(random_checkpoint):
    """Rotary settings in the style of 4.57: what 5.x writes itself, 4.57 cannot read."""
    config = json.loads((random_checkpoint / 'config.json').read_text())
    text = config['text_config']
    assert 'rope_parameters' not in text
    assert sum(text['rope_scaling']['mrope_section']) == text['head_dim'] // 2
    assert config['vision_config']['model_type'] == 'qwen3_vl'
    assert len(config['vision_config']['deepstack_visual_indexes']) < text['num_hidden_layers']


@pytest.mark.parametrize('reason', REASONS)
def test_replies_have_the_released_models_token_structure(tokenizer, reason):
    """Eleven tokens: tag, break, word, break, tag, blank line, digit, point, three digits."""
    ids = tokenizer(format_reply(reason, 0.374))['input_ids']
    pieces = [tokenizer.decode([i]) for i in ids]
    assert pieces == ['<think>', '\n', reason.word, '\n', '</think>', '\n\n', '0', '.', '3', '7', '4']
    assert tokenizer.decode(ids, skip_special_tokens=True) == format_reply(reason, 0.374)


def test_tasks_are_short(tokenizer):
    """A colour is one token, and so is every other word."""
    for form in PHRASINGS:
        for colour in COLOURS:
            task = form.format(block=colour, plate=colour)
            assert len(tokenizer(task)['input_ids']) == len(task.split())


def test_any_text_survives_the_tokenizer(tokenizer):
    """Byte level: nothing is unknown."""
    text = 'grüße die Tasse 茶 – schnell!'
    assert tokenizer.decode(tokenizer(text)['input_ids']) == text


def test_the_system_prompt_states_words_and_format():
    """It names all six words and shows the reply's form."""
    assert '<think>\nWORD\n</think>\n\nREWARD' in SYSTEM_PROMPT
    for reason in REASONS:
        assert f'\n{reason.word} ' in SYSTEM_PROMPT


def test_the_committed_checkpoint_is_what_this_code_writes(committed, random_checkpoint):
    """All its files, at most 12 MB; everything but the weights is what new_checkpoint writes today."""
    assert {path.name for path in committed.iterdir()} == FILES
    assert sum(path.stat().st_size for path in committed.iterdir()) <= 12e6
    for name in FILES - {'model.safetensors'}:
        assert (committed / name).read_bytes() == (random_checkpoint / name).read_bytes(), name


def test_the_committed_checkpoint_loads_without_missing_weights(committed):
    """No weight is missing, unexpected or of another shape, and all are numbers."""
    import torch
    from transformers import AutoModelForImageTextToText

    model, report = AutoModelForImageTextToText.from_pretrained(
        committed, dtype=torch.float32, output_loading_info=True
    )
    assert not any(report.values()), report
    assert all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters())
