"""The prompt: system prompt, three images, task text, exactly as on the model card."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import TYPE_CHECKING, Any

from densereward_ros.models.base import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

SYSTEM_PROMPT_FILE = 'system_prompt.txt'
MAX_TASK_LENGTH = 500

# SHA-256 of the released system prompt (stripped, UTF-8), as one independent user reported it.
RELEASED_SHA256 = '7987b38ea84a3df789e6a9eb6fb551f805849d3662d6278bda2f5ffcb4d0b5bd'

# What a tokenizer or processor of the Qwen family takes for more than text: everything in <|...|>
# (the processor's own '<|placeholder|>' is in no vocabulary) and tags such as <think> or </tool_call>.
_TOKEN_LIKE = re.compile(r'<\||\|>|</?[A-Za-z_][\w-]*/?>')
_JOINERS = '\u200c\u200d'  # invisible, yet part of ordinary spelling in Persian and Indic scripts


def read_system_prompt(folder: Path) -> str:
    """The text of system_prompt.txt beside the weights, stripped. Raises ModelError."""
    path = folder / SYSTEM_PROMPT_FILE
    try:
        text = path.read_text(encoding='utf-8').strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f'cannot read {path}: {error}') from error
    if not text:
        raise ModelError(f'{path} is empty (the model was trained with a system prompt and needs it)')
    return text


def system_prompt_sha256(text: str) -> str:
    """The SHA-256 of a stripped system prompt, in hexadecimal."""
    return hashlib.sha256(text.encode('utf-8')).hexdigest()


def clean_task(text: str) -> str:
    """A task text without surrounding white space; empty stays empty. Needs no torch.

    Raises ValueError, in one clear line, for a text that is longer than 500 characters, has line
    breaks or other control or invisible characters, or looks like a chat-template token: such
    text could end the user's turn or stand for an image. Nothing else is changed, so that the
    tokens of the prompt are those of the model card's own procedure.
    """
    task = text.strip()
    if len(task) > MAX_TASK_LENGTH:
        raise ValueError(f'the task has {len(task)} characters (at most {MAX_TASK_LENGTH} are allowed)')
    for position, character in enumerate(task):
        if unicodedata.category(character) in ('Cc', 'Cf', 'Cs', 'Zl', 'Zp') and character not in _JOINERS:
            name = unicodedata.name(character, 'not printable')
            raise ValueError(
                f'the task holds U+{ord(character):04X} ({name}) at position {position} '
                '(one line of plain text is allowed)'
            )
    token = _TOKEN_LIKE.search(task)
    if token:
        raise ValueError(f"the task holds '{token.group()}' (chat-template tokens and tags are not allowed)")
    return task


def check_special_tokens(task: str, special_tokens: Iterable[str]) -> None:
    """Raise ValueError when a task holds one of a tokenizer's special tokens.

    clean_task knows the shape of the Qwen family's tokens; this knows the tokens of the
    checkpoint at hand, whatever they look like.
    """
    for token in special_tokens:
        if token in task:
            raise ValueError(
                f"the task holds '{token}', a special token of this model (plain text is allowed)"
            )


def build_messages(
    system_prompt: str, images: Sequence[Any], task: str, max_pixels: int | None = None
) -> list[dict]:
    """The chat of the model card: the system prompt, then the images, oldest first, and the task.

    With system_prompt '' it begins with the images.
    """
    pictures = [picture(image, max_pixels) for image in images]
    user = {'role': 'user', 'content': [*pictures, {'type': 'text', 'text': task}]}
    return [{'role': 'system', 'content': system_prompt}, user] if system_prompt else [user]


def picture(image: Any, max_pixels: int | None = None) -> dict:
    """An image of a chat; qwen_vl_utils makes it smaller where it has more than max_pixels."""
    budget = {'max_pixels': max_pixels} if max_pixels else {}
    return {'type': 'image', 'image': image, **budget}
