"""What is asked of a server: the prompt of the model card, greedy, with the pictures as data URLs."""

from __future__ import annotations

import base64
import io
import re
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from densereward_ros.models.card_size import card_size
from densereward_ros.models.prompt import build_messages, clean_task
from densereward_ros.models.reference import checked_image
from densereward_ros.types import FRAMES_PER_WINDOW, REASONS, Frame, Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from densereward_ros.models.base import ModelOptions
    from densereward_ros.models.served_files import ServedFiles

# The reply as the model card writes it; every server's regular expressions know this much.
REPLY_PATTERN = (
    r'<think>\n(' + '|'.join(reason.word for reason in REASONS) + r')\n</think>\n\n(0\.[0-9]{3}|1\.000)'
)
# As many as OpenAI's API allows: the six words should be among them.
TOP_TOKENS = 20
# A window needs three frames a camera; whoever keeps more alive does not thereby keep their pictures.
_MAX_PICTURES = 64
# Fast rather than small: at its own default zlib takes longer than many a reply.
_PNG_LEVEL = 1
# The first vLLM with structured_outputs; the next one has dropped guided_regex.
_STRUCTURED_OUTPUTS = (0, 11)


@dataclass(frozen=True)
class Settings:
    """What one request asks for beside the prompt. standard: of OpenAI's API; extra: of the server's own."""

    constrained: bool
    probabilities: bool
    standard: dict
    extra: dict


def settings(kind: str, version: str, constrain: bool, max_new_tokens: int) -> list[Settings]:
    """From all that could be wished for to what every server knows; after one that is refused comes the next.

    kind: 'vllm', 'sglang', or '' for any other. version: the server's, '' where it does not tell.
    """
    # Temperature 0 alone would leave a server's other defaults in force, which sample.
    greedy = {'temperature': 0.0, 'top_p': 1.0, 'max_tokens': max_new_tokens, 'seed': 0}
    single = {**greedy, 'n': 1}
    probable = {**single, 'logprobs': True, 'top_logprobs': TOP_TOKENS}
    # The generation config of a checkpoint may hold a penalty, which these two servers apply.
    own = {'repetition_penalty': 1.0}
    extra = {'vllm': own, 'sglang': {**own, 'separate_reasoning': False}}.get(kind, {})
    wished = [Settings(False, True, probable, extra), Settings(False, False, single, extra)]
    if constrain and (constraint := _constraint(kind, version)):
        wished = [
            Settings(True, True, probable, {**extra, **constraint}),
            Settings(True, False, single, {**extra, **constraint}),
            *wished,
        ]
    # transformers serve refuses even n: 1.
    return [*wished, Settings(False, False, greedy, {})]


class Pictures:
    """Data URLs of frames, made once for all the windows that a frame slides through."""

    def __init__(self, options: ModelOptions, files: ServedFiles) -> None:
        self._png = options.image_format == 'png'
        self._quality = options.jpeg_quality
        self._max_pixels = files.budget(options.max_pixels)
        self._urls: weakref.WeakKeyDictionary[Frame, str] = weakref.WeakKeyDictionary()

    def url(self, frame: Frame) -> str:
        """Raises ImageError for a picture that the model card's procedure cannot take."""
        if frame not in self._urls:
            self._urls[frame] = self._encode(frame)
            while len(self._urls) > _MAX_PICTURES:
                del self._urls[next(iter(self._urls))]
        return self._urls[frame]

    def _encode(self, frame: Frame) -> str:
        from PIL import Image

        image = checked_image(frame)
        rows, columns = card_size(*image.shape[:2], self._max_pixels)
        # The server's processor does the rest, as the local one does after this same step.
        picture, buffer = Image.fromarray(image).resize((columns, rows)), io.BytesIO()
        if self._png:
            picture.save(buffer, 'PNG', compress_level=_PNG_LEVEL)
        else:
            picture.save(buffer, 'JPEG', quality=self._quality)
        name = 'png' if self._png else 'jpeg'
        return f'data:image/{name};base64,{base64.b64encode(buffer.getvalue()).decode()}'


def chat(system_prompt: str, urls: Sequence[str], task: str) -> list[dict]:
    """The messages for pictures and a task. Raises ValueError as prompt.clean_task, and for no task."""
    task = clean_task(task)
    if not task:
        raise ValueError('the task is empty (say in words what the robot is to do)')
    system, user = build_messages(system_prompt, urls, task)
    content = [
        {'type': 'image_url', 'image_url': {'url': part['image']}} if part['type'] == 'image' else part
        for part in user['content']
    ]
    return [system, {**user, 'content': content}]


def chat_of(window: Window, system_prompt: str, pictures: Pictures) -> list[dict]:
    """The messages for a window. Raises ImageError and ValueError."""
    if len(window.frames) != FRAMES_PER_WINDOW:
        raise ValueError(f'a window has {len(window.frames)} frames ({FRAMES_PER_WINDOW} are needed)')
    return chat(system_prompt, [pictures.url(frame) for frame in window.frames], window.task)


def _constraint(kind: str, version: str) -> dict:
    if kind == 'sglang':
        return {'regex': REPLY_PATTERN}
    if kind == 'vllm':
        numbers = tuple(int(number) for number in re.findall(r'\d+', version)[:2])
        if numbers and numbers < _STRUCTURED_OUTPUTS:
            return {'guided_regex': REPLY_PATTERN}
        return {'structured_outputs': {'regex': REPLY_PATTERN}}
    return {}
