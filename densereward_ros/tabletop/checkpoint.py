"""The demo checkpoint: a tiny Qwen3-VL with the released model's architecture, prompt form and reply form."""

from __future__ import annotations

import json
from pathlib import Path

from densereward_ros.tabletop.words import COLOURS, PHRASINGS

SYSTEM_PROMPT = """\
You watch a robot arm at a table. The user shows three pictures, oldest first, and names the task.
Say how far the task is done and what has just lowered the reward. Write nothing but
<think>
WORD
</think>

REWARD
where REWARD is a number from 0.000 to 1.000 with three decimals and WORD is
correct if all is well,
miss if the gripper closed on nothing,
collision if the robot bumped something,
fall if the held object dropped,
smooth if the motion stalled or shook,
failure for any other mishap.
"""

# The text around the user's words is that of Qwen3-VL: a prompt made for one fits the other.
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\\n' -}}
{%- if message['content'] is string -%}
{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}
{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
{%- elif part['type'] == 'text' -%}
{{- part['text'] -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""

# In the order of the released tokenizer. The plain ones survive skip_special_tokens there, and so here.
SPECIAL_TOKENS = (
    '<|endoftext|>',
    '<|im_start|>',
    '<|im_end|>',
    '<|object_ref_start|>',
    '<|object_ref_end|>',
    '<|box_start|>',
    '<|box_end|>',
    '<|quad_start|>',
    '<|quad_end|>',
    '<|vision_start|>',
    '<|vision_end|>',
    '<|vision_pad|>',
    '<|image_pad|>',
    '<|video_pad|>',
)
PLAIN_ADDED_TOKENS = (
    '<tool_call>',
    '</tool_call>',
    '<tool_response>',
    '</tool_response>',
    '<think>',
    '</think>',
)

TEXT_ENTRIES = 500
PATCH = 16
MERGE = 2
# Camera pictures of 128x96 pixels become 12 image tokens. A larger picture of that shape is scaled down to
# the same: this model has never seen any other size. The margin above 128 * 96 keeps the height from
# rounding down.
MIN_PIXELS = 1024
MAX_PIXELS = 128 * 104

# Qwen's own rule for cutting text into pieces: one digit is one token.
_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r'|\s*[\r\n]+|\s+(?!\S)|\s+'
)


def new_checkpoint(folder: str | Path, seed: int = 0) -> Path:
    """Write a complete checkpoint with seeded random weights, and return its folder.

    It loads with AutoProcessor and AutoModelForImageTextToText of transformers 4.57 and later.
    Raises OSError when the folder cannot be written.
    """
    import torch

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    ids = write_texts(folder)
    torch.manual_seed(seed)
    save_weights(build_model(ids), folder)
    return folder


def write_texts(folder: Path) -> dict[str, int]:
    """Write all but the weights; returns the id of each added token, and the size under `vocab_size`."""
    tokenizer = _train_tokenizer()
    tokenizer.save(str(folder / 'tokenizer.json'), pretty=False)
    ids = {token: tokenizer.token_to_id(token) for token in SPECIAL_TOKENS + PLAIN_ADDED_TOKENS}
    ids['vocab_size'] = tokenizer.get_vocab_size(with_added_tokens=True)
    picture = {
        'size': {'shortest_edge': MIN_PIXELS, 'longest_edge': MAX_PIXELS},
        'patch_size': PATCH,
        'temporal_patch_size': 2,
        'merge_size': MERGE,
        'image_mean': [0.5, 0.5, 0.5],
        'image_std': [0.5, 0.5, 0.5],
        'processor_class': 'Qwen3VLProcessor',
    }
    _write_json(
        folder / 'preprocessor_config.json', {**picture, 'image_processor_type': 'Qwen2VLImageProcessorFast'}
    )
    _write_json(
        folder / 'video_preprocessor_config.json',
        {**picture, 'video_processor_type': 'Qwen3VLVideoProcessor'},
    )
    _write_json(folder / 'chat_template.json', {'chat_template': CHAT_TEMPLATE})
    _write_json(
        folder / 'tokenizer_config.json',
        {
            'tokenizer_class': 'Qwen2Tokenizer',
            'eos_token': '<|im_end|>',
            'pad_token': '<|endoftext|>',
            'unk_token': None,
            'bos_token': None,
            'add_prefix_space': False,
            'model_max_length': 4096,
            'errors': 'replace',
            'clean_up_tokenization_spaces': False,
            'split_special_tokens': False,
            'added_tokens_decoder': {
                str(ids[token]): {
                    'content': token,
                    'lstrip': False,
                    'normalized': False,
                    'rstrip': False,
                    'single_word': False,
                    'special': token in SPECIAL_TOKENS,
                }
                for token in SPECIAL_TOKENS + PLAIN_ADDED_TOKENS
            },
        },
    )
    _write_json(folder / 'config.json', _config(ids))
    _write_json(
        folder / 'generation_config.json',
        {
            'do_sample': False,
            'eos_token_id': [ids['<|im_end|>'], ids['<|endoftext|>']],
            'pad_token_id': ids['<|endoftext|>'],
        },
    )
    (folder / 'system_prompt.txt').write_text(SYSTEM_PROMPT, encoding='utf-8')
    return ids


def build_model(ids: dict[str, int]):
    """A float32 model of the demo's size with fresh random weights, in training mode."""
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    return Qwen3VLForConditionalGeneration(Qwen3VLConfig.from_dict(_config(ids))).float().train()


def save_weights(model, folder: Path) -> None:
    """Write the weights alone, in bfloat16: a config saved by transformers 5 would not load in 4.57."""
    import torch
    from safetensors.torch import save_file

    tensors = {
        name: value.detach().to(torch.bfloat16).contiguous()
        for name, value in model.state_dict().items()
        if name != 'lm_head.weight'
    }  # tied to the embedding
    path = folder / 'model.safetensors'
    save_file(tensors, str(path), metadata={'format': 'pt'})
    path.chmod(0o644)  # safetensors makes it private to its owner


def _config(ids: dict[str, int]) -> dict:
    """config.json in the style of transformers 4.57, which every later version reads too."""
    return {
        'architectures': ['Qwen3VLForConditionalGeneration'],
        'model_type': 'qwen3_vl',
        'dtype': 'bfloat16',
        'tie_word_embeddings': True,
        'image_token_id': ids['<|image_pad|>'],
        'video_token_id': ids['<|video_pad|>'],
        'vision_start_token_id': ids['<|vision_start|>'],
        'vision_end_token_id': ids['<|vision_end|>'],
        'text_config': {
            'model_type': 'qwen3_vl_text',
            'dtype': 'bfloat16',
            'vocab_size': ids['vocab_size'],
            'hidden_size': 128,
            'intermediate_size': 256,
            'num_hidden_layers': 3,
            'num_attention_heads': 4,
            'num_key_value_heads': 4,
            'head_dim': 32,
            'hidden_act': 'silu',
            'max_position_embeddings': 4096,
            'rms_norm_eps': 1e-6,
            'initializer_range': 0.02,
            'attention_bias': False,
            'attention_dropout': 0.0,
            'use_cache': True,
            'tie_word_embeddings': True,
            'rope_theta': 10000.0,
            'rope_scaling': {'rope_type': 'default', 'mrope_interleaved': True, 'mrope_section': [6, 5, 5]},
            'eos_token_id': ids['<|im_end|>'],
            'pad_token_id': ids['<|endoftext|>'],
        },
        'vision_config': {
            'model_type': 'qwen3_vl',
            'dtype': 'bfloat16',
            'depth': 3,
            'hidden_size': 128,
            'intermediate_size': 256,
            'num_heads': 4,
            'in_channels': 3,
            'patch_size': PATCH,
            'temporal_patch_size': 2,
            'spatial_merge_size': MERGE,
            'out_hidden_size': 128,
            'num_position_embeddings': 64,
            'deepstack_visual_indexes': [0, 1],
            'hidden_act': 'gelu_pytorch_tanh',
            'initializer_range': 0.02,
        },
    }


def _train_tokenizer():
    """Byte-level BPE on every prompt and reply of the demo; the same on every machine."""
    from tokenizers import (
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        trainers,
    )

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior='isolated', invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TEXT_ENTRIES,
        min_frequency=1,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(_corpus(), trainer)
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in PLAIN_ADDED_TOKENS])
    return tokenizer


def _corpus() -> list[str]:
    """What the tokenizer must keep short: replies most of all, then tasks, then the system prompt."""
    from densereward_ros.types import REASONS

    tasks = [
        form.format(block=block, plate=plate) for form in PHRASINGS for block in COLOURS for plate in COLOURS
    ]
    plain_prompt = SYSTEM_PROMPT.replace('<think>', '').replace('</think>', '')
    # Qwen has one token each for a line break, a blank line, and every word of the vocabulary.
    replies = [text for reason in REASONS for text in (reason.word, '\n', '\n\n')] * 50
    return replies + tasks * 5 + ['system\n', 'user\n', 'assistant\n'] * 50 + [plain_prompt] * 10


def _write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2) + '\n', encoding='utf-8')
