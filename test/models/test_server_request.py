"""What is asked of a server: greedy, with the prompt and the pixels of a local model."""

from __future__ import annotations

import base64
import gc
import io
import re

import numpy as np
import pytest

from densereward_ros.models import served_files
from densereward_ros.models.base import ModelError, ModelOptions
from densereward_ros.models.prompt import build_messages
from densereward_ros.models.reply import format_reply
from densereward_ros.models.served_files import ServedFiles
from densereward_ros.models.server_request import REPLY_PATTERN, Pictures, chat, chat_of, settings
from densereward_ros.types import REASONS, Frame, ImageError, Window

FILES = ServedFiles('judge', 65536, 16777216)


def pixels(url: str) -> np.ndarray:
    """What a server decodes from a data URL."""
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition('base64,')[2]))))


def test_the_prompt_is_that_of_a_local_model(make_window):
    """System prompt, three pictures, oldest first, then the task, and nothing else."""
    pictures = Pictures(ModelOptions(), FILES)
    window = make_window()
    system, user = chat_of(window, 'judge', pictures)
    local_system, local_user = build_messages('judge', list(window.frames), window.task)
    assert system == local_system == {'role': 'system', 'content': 'judge'}
    assert [part['type'] for part in user['content']] == ['image_url'] * 3 + ['text']
    assert user['content'][3] == local_user['content'][3]
    urls = [part['image_url']['url'] for part in user['content'][:3]]
    assert urls == [pictures.url(frame) for frame in window.frames]
    assert len(set(urls)) == 3


@pytest.mark.parametrize(
    ('task', 'why'), [('', 'the task is empty'), (' ', 'is empty'), ('a<|im_end|>', 'holds')])
def test_a_task_is_refused_as_by_a_local_model(task, why):
    """Before anything is sent."""
    with pytest.raises(ValueError, match=why):
        chat('judge', ['data:'] * 3, task)


@pytest.mark.parametrize('max_pixels', [0, 70_000])
def test_png_carries_the_very_pixels_of_the_model_cards_procedure(make_window, max_pixels):
    """What the server's processor gets is what the local one gets; a budget of frames is the local rule's."""
    from PIL import Image
    from qwen_vl_utils import process_vision_info

    from densereward_ros.models.prompt import picture

    frame = make_window(480, 640).newest
    url = Pictures(ModelOptions(max_pixels=max_pixels), FILES).url(frame)
    shown = picture(Image.fromarray(frame.image), max_pixels or None)
    (wanted,), _ = process_vision_info([{'role': 'user', 'content': [shown]}])
    assert url.startswith('data:image/png;base64,')
    assert np.array_equal(pixels(url), np.asarray(wanted))


@pytest.mark.parametrize(('asked', 'budget'), [(0, None), (4096, 65536), (10**6, 10**6), (10**8, 16777216)])
def test_the_budget_keeps_to_what_the_processor_takes(asked, budget):
    """As loading does for a local model: no fewer pixels than its least, no more than its most."""
    assert FILES.budget(asked) == budget


def test_jpeg_is_smaller_and_nearly_the_same(make_window):
    """A better quality is nearer and larger."""
    frame = make_window(480, 640).newest
    exact = pixels(Pictures(ModelOptions(), FILES).url(frame)).astype(int)
    found = []
    for quality in (30, 95):
        url = Pictures(ModelOptions(image_format='jpeg', jpeg_quality=quality), FILES).url(frame)
        assert url.startswith('data:image/jpeg;base64,')
        found.append((len(url), float(np.abs(pixels(url) - exact).mean())))
    (small, far), (large, near) = found
    assert small < large < len(Pictures(ModelOptions(), FILES).url(frame))
    assert 0 < near < far < 5


def test_a_frame_is_encoded_once_and_forgotten_with_the_frame(make_window, monkeypatch):
    """It slides through three windows; and a long recording must not fill the memory."""
    pictures = Pictures(ModelOptions(), FILES)
    encoded = []
    encode = pictures._encode
    monkeypatch.setattr(pictures, '_encode', lambda frame: encoded.append(frame.stamp_ns) or encode(frame))
    window = make_window()
    chat_of(window, 'judge', pictures)
    chat_of(window, 'judge', pictures)
    assert encoded == [0, 1, 2]
    image = window.newest.image
    many = [Frame(stamp, stamp, lambda: image) for stamp in range(100)]
    for frame in many:
        pictures.url(frame)
    assert len(pictures._urls) == 64
    del many, frame
    gc.collect()
    assert len(pictures._urls) <= 3


def test_a_picture_that_the_card_refuses_is_refused():
    """Before anything is sent."""
    frame = Frame(0, 0, lambda: np.zeros((2, 500, 3), np.uint8))
    with pytest.raises(ImageError, match='500x2 pixels'):
        Pictures(ModelOptions(), FILES).url(frame)
    with pytest.raises(ValueError, match='2 frames'):
        chat_of(Window('/c', 'x', (frame, frame)), 'judge', Pictures(ModelOptions(), FILES))


@pytest.mark.parametrize(('kind', 'version', 'constraint'), [
    ('vllm', '0.11.0', {'structured_outputs': {'regex': REPLY_PATTERN}}),
    ('vllm', '0.19.2rc1', {'structured_outputs': {'regex': REPLY_PATTERN}}),
    ('vllm', '1.0', {'structured_outputs': {'regex': REPLY_PATTERN}}),
    ('vllm', '', {'structured_outputs': {'regex': REPLY_PATTERN}}),
    ('vllm', '0.10.2', {'guided_regex': REPLY_PATTERN}),
    ('vllm', '0.8.5.post1', {'guided_regex': REPLY_PATTERN}),
    ('sglang', '', {'regex': REPLY_PATTERN}),
])
def test_each_kind_is_constrained_in_its_own_words(kind, version, constraint):
    """First with all there is, then with less, at last with what every server takes."""
    wished = settings(kind, version, True, 32)
    assert [(one.constrained, one.probabilities) for one in wished] == [
        (True, True), (True, False), (False, True), (False, False), (False, False)]
    for one in wished:
        assert (constraint.items() <= one.extra.items()) is one.constrained
        assert ('logprobs' in one.standard) is one.probabilities
    assert wished[0].extra['repetition_penalty'] == 1.0
    assert wished[-1].extra == {}
    assert not any(one.constrained for one in settings(kind, version, False, 32))


def test_every_request_is_greedy_in_so_many_words():
    """A server's defaults sample; a server of unknown kind gets nothing that is not OpenAI's."""
    wished = settings('', '', True, 48)
    assert [one.extra for one in wished] == [{}, {}, {}]
    for one in wished:
        assert {'temperature': 0.0, 'top_p': 1.0, 'max_tokens': 48, 'seed': 0}.items() <= one.standard.items()
    assert wished[0].standard['n'] == 1 and wished[0].standard['top_logprobs'] == 20
    assert wished[-1].standard.keys() == {'temperature', 'top_p', 'max_tokens', 'seed'}


def test_the_pattern_is_the_model_cards_reply():
    """Every reply that the card can write, and none that parse_reply would refuse."""
    for reason in REASONS:
        for reward in (0.0, 0.374, 1.0):
            assert re.fullmatch(REPLY_PATTERN, format_reply(reason, reward))
    for text in ('<think>\nfall\n</think>\n\n1.322', '<think>\nwin\n</think>\n\n0.5', 'fall 0.374'):
        assert not re.fullmatch(REPLY_PATTERN, text)


def test_the_system_prompt_is_the_checkpoints(repository, tmp_path):
    """Of the model's name, or of another checkpoint where the server calls it otherwise."""
    text = (repository / 'models' / 'tabletop' / 'system_prompt.txt').read_text().strip()
    told = []
    for options in (
            ModelOptions(model='tabletop'), ModelOptions(model=str(repository / 'models' / 'tabletop')),
            ModelOptions(model='our-reward', server_checkpoint='tabletop')):
        files = served_files.read(options, told.append)
        assert (files.system_prompt, files.least, files.most) == (text, 1024, 13312)
    assert told == []
    (tmp_path / 'system_prompt.txt').write_text('another\n')
    assert served_files.read(ModelOptions(model=str(tmp_path)), told.append) == ServedFiles('another')
    assert len(told) == 1 and told[0].startswith('warning: the system prompt of')


@pytest.mark.parametrize(('name', 'why'), [
    ('our-reward', 'no such folder, and no hub id'), ('/nowhere/model', 'no such folder'),
    ('owner/model', 'LocalEntryNotFoundError|OfflineModeIsEnabled|HTTPError|Error')])
def test_a_name_without_a_prompt_says_what_to_set(monkeypatch, tmp_path, name, why):
    """A served name need not be a checkpoint's."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', True)
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(tmp_path))
    with pytest.raises(ModelError, match=rf'no system prompt for {name} \(.*({why}).*\): set server_check'):
        served_files.read(ModelOptions(model=name), print)
