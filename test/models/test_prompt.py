"""The prompt: the card's messages, and tasks that cannot be more than text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from transformers import AutoProcessor

from densereward_ros.models.base import ModelError
from densereward_ros.models.prompt import (
    build_messages,
    check_special_tokens,
    clean_task,
    read_system_prompt,
    system_prompt_sha256,
)


@pytest.fixture(scope='module')
def processor(random_checkpoint: Path):
    """A Qwen3-VL processor with its tokenizer."""
    return AutoProcessor.from_pretrained(random_checkpoint)


ORDINARY = [
    'put the black bowl on the plate',
    'Stack the cup (the red one) at > 5 cm, < 10 cm & "gently"; 100%',
    "pose l'assiette à côté du bol",
    '把黑色的碗放在盘子上',
    'می‌خواهم',  # spelt with a zero-width non-joiner
    'a|b <- c -> d',
]


@pytest.mark.parametrize('task', ORDINARY)
def test_ordinary_tasks_pass_unchanged(task: str):
    """Punctuation, other scripts and comparison signs are text like any other."""
    assert clean_task(task) == task


def test_outer_white_space_goes():
    """A trailing line break from a file or a shell is not part of the task; nothing stays nothing."""
    assert clean_task('  stack the cup\n') == 'stack the cup'
    assert clean_task(' \n ') == ''


AT_1 = ' at position 1 (one line of plain text is allowed)'


@pytest.mark.parametrize(
    ('task', 'line'),
    [
        ('a\nb', 'the task holds U+000A (not printable)' + AT_1),
        ('a\x00b', 'the task holds U+0000 (not printable)' + AT_1),
        (
            'a\u202eb',
            'the task holds U+202E (RIGHT-TO-LEFT OVERRIDE)' + AT_1,
        ),
        ('a\u2028b', 'the task holds U+2028 (LINE SEPARATOR)' + AT_1),
        ('a\ud800b', 'the task holds U+D800 (not printable)' + AT_1),
        ('stop<|im_end|>', "the task holds '<|' (chat-template tokens and tags are not allowed)"),
        ('<|placeholder|>', "the task holds '<|' (chat-template tokens and tags are not allowed)"),
        ('im_end|>', "the task holds '|>' (chat-template tokens and tags are not allowed)"),
        ('</think>1', "the task holds '</think>' (chat-template tokens and tags are not allowed)"),
        ('<tool_call>', "the task holds '<tool_call>' (chat-template tokens and tags are not allowed)"),
        ('x' * 501, 'the task has 501 characters (at most 500 are allowed)'),
    ],
)  # fmt: skip
def test_what_is_refused_is_named_in_one_line(task: str, line: str):
    """Every refusal names the offending part and what is allowed."""
    with pytest.raises(ValueError) as caught:
        clean_task(task)
    assert str(caught.value) == line


def test_clean_task_needs_no_torch():
    """The ROS node calls it for each task that arrives; it must not pull in the model's packages."""
    code = (
        'import sys; from densereward_ros.models.prompt import clean_task; clean_task("a"); '
        'assert not {"torch", "transformers", "numpy", "rclpy"} & set(sys.modules), sorted(sys.modules)'
    )
    subprocess.run([sys.executable, '-c', code], check=True)


def test_every_token_of_a_tokenizer_is_refused(processor):
    """All added tokens of a Qwen tokenizer, special or not, are caught by their shape alone."""
    tokenizer = processor.tokenizer
    assert {'<|im_end|>', '<|image_pad|>', '<think>'} <= set(tokenizer.get_added_vocab())
    for token in tokenizer.get_added_vocab():
        with pytest.raises(ValueError, match='not allowed'):
            clean_task(f'put the{token}bowl')


SNIPPETS = st.sampled_from(
    [
        '<',
        '|',
        '>',
        '<|',
        '|>',
        'im_end',
        'image_pad',
        'think',
        '/',
        'tool_call',
        ' ',
        '\u0338',
        '＜',
        '｜',
        'a',
        '{{',
        '}}',
        '%}',
    ]
)


@given(st.lists(SNIPPETS, max_size=8).map(''.join))
@example('<\u0338|im_end|\u0338>')
def test_no_accepted_task_becomes_a_special_token(processor, task):
    """Whatever clean_task lets through adds only plain tokens between <|vision_end|> and <|im_end|>."""
    try:
        task = clean_task(task)
    except ValueError:
        return
    messages = build_messages('be brief', ['x', 'y', 'z'], task)
    text = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = processor.tokenizer(text)['input_ids']
    added = processor.tokenizer.get_added_vocab()
    special = [token for token in processor.tokenizer.convert_ids_to_tokens(ids) if token in added]
    image = ['<|vision_start|>', '<|image_pad|>', '<|vision_end|>']
    assert special == [
        '<|im_start|>', '<|im_end|>', '<|im_start|>', *image * 3, '<|im_end|>', '<|im_start|>',
    ]  # fmt: skip


def test_a_checkpoints_own_special_tokens_are_refused():
    """A tokenizer whose special tokens look like words is protected too."""
    check_special_tokens('put the bowl', ['[IMG]'])
    with pytest.raises(ValueError) as caught:
        check_special_tokens('put the [IMG]bowl', ['[IMG]'])
    assert (
        str(caught.value) == "the task holds '[IMG]', a special token of this model (plain text is allowed)"
    )


def test_the_messages_are_those_of_the_card():
    """System prompt, then a user turn of three images, oldest first, and the task."""
    assert build_messages('S', ['a', 'b', 'c'], 'T') == [
        {'role': 'system', 'content': 'S'},
        {
            'role': 'user',
            'content': [
                {'type': 'image', 'image': 'a'},
                {'type': 'image', 'image': 'b'},
                {'type': 'image', 'image': 'c'},
                {'type': 'text', 'text': 'T'},
            ],
        },
    ]


def test_the_system_prompt_is_read_as_stripped_utf8(tmp_path: Path):
    """The hash is that of the stripped text, so a final line break does not count."""
    (tmp_path / 'system_prompt.txt').write_bytes('\n Grüße\n\n'.encode())
    assert read_system_prompt(tmp_path) == 'Grüße'
    assert system_prompt_sha256('abc') == 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'


@pytest.mark.parametrize(
    ('content', 'line'),
    [(None, r'^cannot read .*system_prompt\.txt'), (b' \n', 'is empty'), (b'\xff', 'cannot read')],
)
def test_a_useless_system_prompt_is_an_error(tmp_path: Path, content: bytes | None, line: str):
    """Missing, empty and undecodable files each give one line that names the file."""
    if content is not None:
        (tmp_path / 'system_prompt.txt').write_bytes(content)
    with pytest.raises(ModelError, match=line) as caught:
        read_system_prompt(tmp_path)
    assert '\n' not in str(caught.value)
