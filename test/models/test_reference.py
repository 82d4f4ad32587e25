"""The reference path: token for token the model card's script, without memory of what came before."""

from __future__ import annotations

import gc
import resource
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from densereward_ros.models.base import Interrupted, ModelError, ModelOptions, OutOfMemory
from densereward_ros.models.opening import open_model
from densereward_ros.models.reference import ReferenceModel
from densereward_ros.types import Frame, ImageError, MalformedReply, Verdict, Window

pytestmark = pytest.mark.slow  # together they take most of a minute


@pytest.fixture(scope='module')
def model(lively_checkpoint: Path) -> ReferenceModel:
    """The lively checkpoint behind the public interface."""
    return open_model(ModelOptions(model=str(lively_checkpoint), engine='reference'))


def run_card(folder: Path, window: Window, tmp_path: Path):
    """The model card's procedure, from image files to text; returns inputs, new ids and text."""
    from qwen_vl_utils import process_vision_info
    from transformers import AutoModelForImageTextToText, AutoProcessor

    network = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
    processor = AutoProcessor.from_pretrained(folder)
    content = []
    for number, frame in enumerate(window.frames):
        path = tmp_path / f'{number}.png'
        Image.fromarray(frame.image).save(path)
        content.append({'type': 'image', 'image': f'file://{path}'})
    messages = [
        {'role': 'system', 'content': (folder / 'system_prompt.txt').read_text().strip()},
        {'role': 'user', 'content': [*content, {'type': 'text', 'text': window.task}]},
    ]
    text = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    images, videos = process_vision_info(messages)
    inputs = processor(text=[text], images=images, videos=videos, padding=True, return_tensors='pt')
    with torch.no_grad():
        output = network.generate(**inputs, max_new_tokens=32, do_sample=False)
    new = output[:, inputs.input_ids.shape[1] :]
    return inputs, new, processor.batch_decode(new, skip_special_tokens=True)[0].strip()


@pytest.mark.parametrize(
    ('height', 'width', 'image_tokens'), [(96, 128, 12), (224, 224, 49), (301, 225, 70), (480, 640, 300)]
)
def test_the_cards_script_gives_the_same_tokens(
    model, lively_checkpoint, make_window, tmp_path, height, width, image_tokens
):
    """Same prompt ids, same pixels to the last bit, same reply; for sizes that do and do not divide."""
    window = make_window(height, width, seed=height, task='Put the bowl on the plate, 3 cm from l’assiette')
    expected_inputs, expected_ids, expected_text = run_card(lively_checkpoint, window, tmp_path)
    inputs = model.encode(window)
    assert set(inputs) == set(expected_inputs)
    for name, tensor in inputs.items():
        assert torch.equal(tensor, expected_inputs[name]), name
    image_token = model._loaded.network.config.image_token_id
    assert int((inputs['input_ids'] == image_token).sum()) == 3 * image_tokens
    ids = model.generate(inputs)
    assert torch.equal(ids, expected_ids)
    assert model.reply(window) == expected_text


def test_the_compared_replies_depend_on_the_pictures_and_the_task(model, make_window):
    """The comparisons here would prove little if the random model said the same to everything."""
    replies = {
        model.reply(make_window(seed=seed, task=task)) for seed in range(3) for task in ('one', 'another')
    }
    assert len(replies) == 6


def test_a_small_window_after_a_large_one_is_as_if_alone(lively_checkpoint, model, make_window):
    """No M-RoPE offset, cache or other state survives a reply (transformers #43952)."""
    small, large = (
        make_window(96, 128, seed=1),
        make_window(480, 640, seed=2, task='a longer task than the other one'),
    )
    fresh = open_model(ModelOptions(model=str(lively_checkpoint), engine='reference'))
    alone = fresh.generate(fresh.encode(small))
    model.reply(large)
    assert torch.equal(model.generate(model.encode(small)), alone)
    model.reply(large)
    assert torch.equal(model.generate(model.encode(small)), alone)


def test_score_gives_one_verdict_a_window_in_order(model, make_window, monkeypatch):
    """Texts go through the reply parser; a malformed one takes its place in the list."""
    texts = iter(['<think>\nmiss\n</think>\n\n0.250', 'nonsense'])
    monkeypatch.setattr(model, 'decode', lambda tokens: next(texts))
    first, second = model.score([make_window(), make_window()])
    assert (first.reward, first.reason.word, first.bounded) == (0.25, 'miss', True)
    assert second == MalformedReply('nonsense', 'no </think>')
    assert model.score([]) == []


def test_a_random_model_gives_only_malformed_replies(model, make_window):
    """Garbage from a network never raises and never looks like a reward."""
    replies = model.score([make_window(seed=seed) for seed in range(3)])
    assert [type(reply) for reply in replies] == [MalformedReply] * 3


def test_greedy_decoding_warns_of_nothing(lively_checkpoint, make_window, tmp_path, caplog):
    """A generation_config that samples (as the base model's does) neither samples nor warns."""
    import json
    import logging
    import shutil

    folder = tmp_path / 'sampling'
    shutil.copytree(lively_checkpoint, folder)
    config = json.loads((folder / 'generation_config.json').read_text())
    config.update(do_sample=True, temperature=0.7, top_p=0.8, top_k=20)
    (folder / 'generation_config.json').write_text(json.dumps(config))
    logging.getLogger('transformers').propagate = True
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, logger='transformers'):
        warnings.simplefilter('error')
        sampling = open_model(ModelOptions(model=str(folder), engine='reference'))
        replies = {sampling.reply(make_window(seed=3)) for _ in range(3)}
    assert len(replies) == 1
    assert [record.getMessage() for record in caplog.records] == []


def test_the_reply_is_limited_to_max_new_tokens(lively_checkpoint, make_window):
    """32 tokens by default; an option allows more."""
    window = make_window(seed=4)
    for limit in (32, 40):
        options = ModelOptions(model=str(lively_checkpoint), engine='reference', max_new_tokens=limit)
        model = open_model(options)
        model._loaded.network.generation_config.eos_token_id = None  # never ends by itself
        assert model.generate(model.encode(window)).shape == (1, limit)


def test_a_window_that_cannot_be_judged_is_named(model, make_window):
    """An empty task, a token in the task, an impossible image: one clear line each."""
    with pytest.raises(ValueError, match=r'^the task is empty \(say in words what the robot is to do\)$'):
        model.score([make_window(task=' ')])
    with pytest.raises(ValueError, match=r"^the task holds '<\|' "):
        model.score([make_window(task='done<|im_end|>')])
    line = np.zeros((1, 300, 3), np.uint8)
    window = Window('/camera', 'task', tuple(Frame(i, i, lambda: line) for i in range(3)))
    with pytest.raises(ImageError) as caught:
        model.score([window])
    assert str(caught.value) == 'image is 300x1 pixels (one side may be at most 200 times the other)'

    def broken():
        raise ImageError('unknown encoding')

    with pytest.raises(ImageError, match='unknown encoding'):
        model.score([Window('/camera', 'task', tuple(Frame(i, i, broken) for i in range(3)))])


def test_interrupt_ends_a_running_reply_and_stays_until_resume(model, make_window):
    """A node that shuts down does not wait for a long reply, nor for one that is about to start."""
    raised = []

    def endless() -> None:
        try:
            while True:
                model.score([make_window(480, 640)])
        except Interrupted as error:
            raised.append(error)

    worker = threading.Thread(target=endless)
    worker.start()
    time.sleep(0.3)
    began = time.monotonic()
    model.interrupt()
    worker.join(timeout=10)
    assert time.monotonic() - began < 2
    assert len(raised) == 1
    with pytest.raises(Interrupted):
        model.score([make_window()])
    model.resume()
    assert len(model.score([make_window()])) == 1


def test_interrupt_ends_generate_after_the_token_it_is_at(model, make_window, monkeypatch):
    """generate() itself stops: no second token is made once the event is set."""
    inputs = model.encode(make_window())
    network = model._loaded.network
    passes = []

    def count_and_interrupt(*_) -> None:
        passes.append(1)
        model.interrupt()

    handle = network.register_forward_hook(count_and_interrupt)
    try:
        with pytest.raises(Interrupted):
            model.generate(inputs)
    finally:
        handle.remove()
        model.resume()
    assert len(passes) == 1


def test_close_frees_the_network(lively_checkpoint):
    """After close nothing holds the weights, score says so, and closing twice is harmless."""
    import weakref

    model = open_model(ModelOptions(model=str(lively_checkpoint), engine='reference'))
    network = weakref.ref(model._loaded.network)
    model.close()
    gc.collect()
    assert network() is None
    model.close()
    with pytest.raises(ModelError, match=r'lively is closed$'):
        model.score([Window('/camera', 'task', ())])


def test_out_of_gpu_memory_is_one_line(model, make_window, monkeypatch):
    """torch's error, with its paragraph of advice, becomes a ModelError."""

    def exhausted(**_):
        raise torch.cuda.OutOfMemoryError('CUDA out of memory. Tried to allocate 2 GiB.\nSee the docs.')

    monkeypatch.setattr(model._loaded.network, 'generate', exhausted)
    with pytest.raises(OutOfMemory) as caught:
        model.score([make_window()])
    assert str(caught.value) == (
        f'{model.name} ran out of GPU memory: OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.'
    )


def test_a_model_that_cannot_run_fails_at_warm_up(model, monkeypatch):
    """A GPU that torch has no kernels for shows when opening, not at the first reward."""

    def broken(**_):
        raise RuntimeError('no kernel image is available\nfor this device')

    monkeypatch.setattr(model._loaded.network, 'generate', broken)
    with pytest.raises(
        ModelError, match='was loaded but cannot run: RuntimeError: no kernel image is available$'
    ):
        model.warm_up()


@pytest.mark.slow
def test_memory_stays_flat(model, make_window):
    """Many replies leave no tensors behind and do not grow the process (Qwen3-VL #1863)."""
    windows = [make_window(96, 128, seed=seed) for seed in range(4)]

    def tensors() -> int:
        gc.collect()
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())

    for _ in range(4):
        model.score(windows)
    before, peak = tensors(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(10):
        model.score(windows)
    assert tensors() <= before
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 10_000  # kB


@pytest.mark.parametrize(
    ('dtype', 'expected'), [('auto', torch.float32), ('bfloat16', torch.bfloat16), ('float16', torch.float16)]
)
def test_dtype_is_as_told_and_float32_on_a_cpu_by_default(lively_checkpoint, make_window, dtype, expected):
    """The weights really have the format, whatever the checkpoint was saved in, and a reply comes out."""
    model = open_model(ModelOptions(model=str(lively_checkpoint), engine='reference', dtype=dtype))
    assert {parameter.dtype for parameter in model._loaded.network.parameters()} == {expected}
    assert isinstance(model.score([make_window()])[0], (MalformedReply, Verdict))
