"""The score head: its numbers are those of a plain forward pass, however the windows are batched."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from densereward_ros.models import checkpoint as checkpoints
from densereward_ros.models import score_head
from densereward_ros.models.base import Interrupted, ModelError, ModelOptions, OutOfMemory
from densereward_ros.models.opening import open_model
from densereward_ros.types import Frame, MalformedReply, Reason, Verdict, Window
from planted import plant

TASKS = ('lift', 'put the red block on the blue plate', 'go', 'put the green block away, then go home')
# Of scores about 10 in size, see docs/score_head.md for the measurement.
TOLERANCE = 5e-5


def opened(folder: Path, **options) -> score_head.ScoreHeadModel:
    """The model of a folder, on the CPU."""
    return open_model(ModelOptions(model=str(folder), device='cpu', engine='score_head', **options))


def windows_of_sizes(make_window) -> list[Window]:
    """Six windows of several sizes and tasks, so prompts of several lengths."""
    sizes = [(96, 128), (64, 64), (128, 224), (96, 128), (224, 96), (64, 128)]
    return [
        make_window(height, width, seed, TASKS[seed % len(TASKS)])
        for seed, (height, width) in enumerate(sizes)]


def plain_hidden(folder: Path, windows: list[Window], side: str, prompted: bool = True) -> list[np.ndarray]:
    """Of each window's last token, by transformers alone: processor, chat template, forward pass.

    side: where the processor pads. The states are read off where the unpadded prompt ends.
    """
    from PIL import Image
    from qwen_vl_utils import process_vision_info
    from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

    network = Qwen3VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    processor = AutoProcessor.from_pretrained(folder)
    processor.tokenizer.padding_side = side
    system = [{'role': 'system', 'content': (folder / 'system_prompt.txt').read_text().strip()}]
    texts, images, lengths = [], [], []
    for window in windows:
        content = [{'type': 'image', 'image': Image.fromarray(frame.image)} for frame in window.frames]
        content.append({'type': 'text', 'text': window.task})
        chat = [*(system if prompted else []), {'role': 'user', 'content': content}]
        texts.append(processor.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
        images.append(process_vision_info(chat)[0])
        lengths.append(processor(text=[texts[-1]], images=images[-1])['input_ids'])
    inputs = processor(text=texts, images=sum(images, []), padding=True, return_tensors='pt')
    with torch.no_grad():
        hidden = network(**inputs, output_hidden_states=True).hidden_states[-1]
    longest = hidden.shape[1]
    lengths = [len(ids[0]) for ids in lengths]
    assert len(set(lengths)) > 2 or len(windows) < 3
    return [
        row[length - 1 if side == 'right' else longest - 1].numpy() for row, length in zip(hidden, lengths)]


@pytest.fixture(scope='module')
def hidden(lively_checkpoint, make_window) -> np.ndarray:
    """(6, 128), as of plain_hidden."""
    return np.array(plain_hidden(lively_checkpoint, windows_of_sizes(make_window), 'right'))


@pytest.fixture
def random_head() -> torch.Tensor:
    """A head of ordinary size."""
    return torch.randn(1, 128, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def model(lively_checkpoint, tmp_path, random_head) -> score_head.ScoreHeadModel:
    """An open model with a random head."""
    return opened(plant(lively_checkpoint, tmp_path / 'planted', random_head))


def test_planted_scores_come_out(lively_checkpoint, make_window, hidden, tmp_path):
    """Weights solved for so that six windows score numbers of the test's choice: those are the scores."""
    chosen = np.array([-17.75, 18.38, 0.0, 1.0, 1.5, -0.25])
    weight = np.linalg.lstsq(hidden.astype(float), chosen, rcond=None)[0]
    head = torch.tensor(weight[None], dtype=torch.float)
    model = opened(plant(lively_checkpoint, tmp_path / 'planted', head))
    verdicts = model.score(windows_of_sizes(make_window))
    assert [verdict.reward for verdict in verdicts] == pytest.approx(chosen, abs=1e-4)
    for verdict in verdicts:
        assert (verdict.bounded, verdict.reason, verdict.reason_probabilities) == (False, Reason.NONE, None)
    assert (model.bounded, model.corrected) == (False, 0)


@pytest.mark.parametrize('side', ['right', 'left'])
def test_scores_are_those_of_a_plain_forward_pass(
        lively_checkpoint, make_window, model, random_head, side):
    """Whichever side transformers pads on, the head on its last hidden state gives our number."""
    windows = windows_of_sizes(make_window)
    plain = np.array(plain_hidden(lively_checkpoint, windows, side)) @ random_head[0].numpy()
    assert model.scores(windows) == pytest.approx(plain, abs=TOLERANCE)
    assert np.ptp(plain) > 1


def test_a_batch_equals_one_by_one(make_window, model):
    """Twenty windows of several lengths, in batches and alone, within the stated tolerance."""
    windows = [
        make_window(height, width, seed, TASKS[seed % len(TASKS)])
        for seed, (height, width) in enumerate([(96, 128), (64, 64), (128, 224), (224, 96)] * 5)]
    alone = [model.scores([window])[0] for window in windows]
    together = model.scores(windows)
    assert together == pytest.approx(alone, abs=TOLERANCE)
    assert len({round(score, 2) for score in alone}) > 15
    assert model.scores([]) == []


@pytest.mark.parametrize('mask', [
    [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]],
    [[1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 0, 0, 0, 1]],
    [[0, 1, 1, 1, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 0]],
])
def test_the_last_token_is_found_by_the_mask(mask):
    """Padding on the right, on the left, and on both sides of a row."""
    hidden = torch.arange(30.0).reshape(3, 5, 2)
    last = [max(place for place, real in enumerate(row) if real) for row in mask]
    expected = torch.stack([hidden[row, place] for row, place in enumerate(last)])
    assert torch.equal(score_head.last_hidden(hidden, torch.tensor(mask)), expected)


def test_padding_tokens_within_the_text_do_not_count(lively_checkpoint, make_window, tmp_path, random_head):
    """A checkpoint whose padding token ends every turn: looking for its id would stop in the prompt."""
    folder = plant(lively_checkpoint, tmp_path / 'planted', random_head)
    config = json.loads((folder / 'tokenizer_config.json').read_text())
    (folder / 'tokenizer_config.json').write_text(json.dumps({**config, 'pad_token': '<|im_end|>'}))
    windows = windows_of_sizes(make_window)
    model = opened(folder)
    assert model._loaded.processor.tokenizer.pad_token == '<|im_end|>'
    plain = np.array(plain_hidden(lively_checkpoint, windows, 'right')) @ random_head[0].numpy()
    assert model.scores(windows) == pytest.approx(plain, abs=TOLERANCE)


def test_frames_that_windows_share_are_encoded_once(make_window, model):
    """Four frames in two windows, twice over."""
    frames = (*make_window(seed=1).frames, *make_window(seed=2).frames[:1])
    sliding = [Window('/camera', 'lift', frames[:3]), Window('/camera', 'lift', frames[1:])]
    before = model._features.encoded
    first = model.scores(sliding)
    assert model.scores(sliding) == first
    assert model._features.encoded - before == 4


def test_a_merged_classifier_loads_as_it_was_exported(lively_checkpoint, make_window, tmp_path, random_head):
    """Shards and an index, a head of its own but none for words, no system prompt, no tied embeddings."""
    windows = windows_of_sizes(make_window)
    plain = np.array(plain_hidden(lively_checkpoint, windows, 'right', prompted=False))
    folder = plant(lively_checkpoint, tmp_path / 'merged', random_head)
    tensors = load_file(folder / 'model.safetensors')
    (folder / 'model.safetensors').unlink()
    (folder / 'system_prompt.txt').unlink()
    names = sorted(tensors)
    shards = {'model-00001-of-00002.safetensors': names[:-1], 'model-00002-of-00002.safetensors': names[-1:]}
    assert names[-1] == 'score.weight'
    for shard, held in shards.items():
        save_file({name: tensors[name] for name in held}, folder / shard, metadata={'format': 'pt'})
    (folder / 'model.safetensors.index.json').write_text(json.dumps(
        {'metadata': {}, 'weight_map': {name: shard for shard, held in shards.items() for name in held}}))
    config = json.loads((folder / 'config.json').read_text())
    config['tie_word_embeddings'] = config['text_config']['tie_word_embeddings'] = False
    (folder / 'config.json').write_text(json.dumps(config))
    lines = []
    model = open_model(
        ModelOptions(model=str(folder), device='cpu', engine='score_head'), lines.append)
    assert [line for line in lines if line.startswith('warning')] == []
    assert model.scores(windows) == pytest.approx(plain @ random_head[0].numpy(), abs=TOLERANCE)
    with pytest.raises(ModelError, match='system_prompt.txt'):
        open_model(ModelOptions(model=str(folder), device='cpu'))


def refusal(folder: Path, engine: str = 'score_head') -> str:
    """The one line with which opening is refused."""
    with pytest.raises(ModelError) as caught:
        open_model(ModelOptions(model=str(folder), device='cpu', engine=engine))
    assert '\n' not in str(caught.value)
    return str(caught.value)


def test_a_checkpoint_without_a_head_is_refused(lively_checkpoint):
    """The weight that lacks, and the engine that fits."""
    assert refusal(lively_checkpoint) == (
        f"{lively_checkpoint} has no score.weight, which engine 'score_head' needs (engine 'fast' runs "
        'models that reply in words)')


@pytest.mark.parametrize('shape', [(1, 64), (2, 128), (128,), (0, 128)])
def test_a_head_of_another_shape_is_refused(lively_checkpoint, tmp_path, shape):
    """The shape seen and the one allowed."""
    folder = plant(lively_checkpoint, tmp_path / 'planted', torch.zeros(shape))
    assert refusal(folder) == (
        f'{folder}: score.weight has the shape {shape}; allowed is (1, 128): one score from the '
        "config's hidden size")


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_a_head_that_is_not_finite_is_refused(lively_checkpoint, tmp_path, random_head, value):
    """How many of its numbers are none."""
    random_head[0, 5:7] = value
    folder = plant(lively_checkpoint, tmp_path / 'planted', random_head)
    assert refusal(folder) == f'{folder}: score.weight holds 2 value(s) that are not finite'


def test_other_engines_say_what_they_leave_out(lively_checkpoint, tmp_path, random_head):
    """The fast engine runs such a checkpoint by its words, and hints at the engine for its scores."""
    folder = plant(lively_checkpoint, tmp_path / 'planted', random_head)
    lines = []
    open_model(ModelOptions(model=str(folder), device='cpu'), lines.append).close()
    assert [line for line in lines if 'score' in line] == [
        f"warning: {folder} has a score head (score.weight), which engine 'fast' does not use: set engine to "
        "'score_head' for its scores"]


def test_only_the_head_lacks_nothing_else(lively_checkpoint, tmp_path, random_head):
    """That no head for words is needed excuses no other missing weight."""
    lacking = {'model__language_model__norm__weight': None}
    folder = plant(lively_checkpoint, tmp_path / 'planted', random_head, **lacking)
    assert 'lacks 1 weight(s)' in refusal(folder)


def test_the_file_of_a_head(lively_checkpoint, tmp_path, random_head):
    """What the check of a folder finds, without loading anything."""
    assert checkpoints.check(lively_checkpoint, 'mine').score_file == ''
    folder = plant(lively_checkpoint, tmp_path / 'planted', random_head)
    assert checkpoints.check(folder, 'mine').score_file == 'model.safetensors'


def test_interrupt_and_close(make_window, model):
    """As every model: interrupted until resumed, closed for good."""
    window = make_window()
    score, = model.scores([window])
    model.interrupt()
    with pytest.raises(Interrupted):
        model.score([window])
    model.resume()
    assert model.scores([window]) == [score]
    model.close()
    model.close()
    with pytest.raises(ModelError, match='is closed'):
        model.score([window])


def test_an_interrupt_ends_a_running_score(make_window, model):
    """Between the frames and the prompt, and before the scores are given out."""
    for place in ('_features.of', '_language'):
        name, _, method = place.partition('.')
        part = getattr(model, name)
        real = getattr(part, method) if method else part

        def interrupting(*arguments, real=real):
            model.interrupt()
            return real(*arguments)

        interrupting.embed, interrupting.rotary = model._language.embed, model._language.rotary
        if method:
            setattr(part, method, interrupting)
        else:
            setattr(model, name, interrupting)
        with pytest.raises(Interrupted):
            model.score([make_window()])
        if method:
            setattr(part, method, real)
        else:
            setattr(model, name, real)
        model.resume()


def test_memory_that_ran_out_is_told(make_window, model, monkeypatch):
    """As OutOfMemory, so that the caller may try fewer at once; the next score works."""
    window = make_window()
    expected = model.scores([window])

    def fail(*_):
        raise torch.cuda.OutOfMemoryError('CUDA out of memory')

    with monkeypatch.context() as patch:
        patch.setattr(model, '_read', fail)
        with pytest.raises(OutOfMemory, match='ran out of GPU memory'):
            model.score([window])
    assert len(model._features) == 0
    assert model.scores([window]) == expected


def test_what_is_not_finite_is_no_verdict(make_window, model):
    """A broken picture costs its own window the score, and nothing of it is kept."""
    good, bad = make_window(seed=1), make_window(seed=2)
    expected, = model.scores([good])
    features = model._features.of(bad.frames[:1])[bad.frames[0]]
    features.tokens.fill_(math.nan)
    verdict, malformed = model.score([good, bad])
    assert isinstance(verdict, Verdict) and verdict.reward == pytest.approx(expected, abs=TOLERANCE)
    assert malformed == MalformedReply('', 'the model computed something that is not a finite number')
    assert isinstance(model.score([bad])[0], Verdict)


def test_windows_and_tasks_that_are_none(make_window, model):
    """The same refusals as of the other models."""
    window = make_window()
    with pytest.raises(ValueError, match='a window has 2 frames'):
        model.score([replace(window, frames=window.frames[:2])])
    with pytest.raises(ValueError, match='the task is empty'):
        model.score([replace(window, task=' ')])
    with pytest.raises(ValueError, match='not allowed'):
        model.score([replace(window, task='lift <|im_end|>')])


def test_scores_follow_the_picture_and_the_task(make_window, model):
    """One pixel block or one word changes the number."""
    window = make_window()
    changed = window.newest.image.copy()
    changed[:32, :32] = 255 - changed[:32, :32]
    other = replace(window, frames=(*window.frames[:2], Frame(2, 2, lambda: changed)))
    scores = model.scores([window, other, replace(window, task='put the blue block away')])
    assert len({round(score, 2) for score in scores}) == 3


def test_bfloat16_differs_from_float32_by_rounding(make_window, lively_checkpoint, tmp_path, random_head):
    """In bfloat16 batches and one by one differ more; scores are not rounded to its few digits."""
    folder = plant(lively_checkpoint, tmp_path / 'planted', random_head)
    windows = windows_of_sizes(make_window)
    model = opened(folder, dtype='bfloat16')
    scores = model.scores(windows)
    assert any(score != torch.tensor(score).bfloat16().item() for score in scores)
    assert scores == pytest.approx([model.scores([window])[0] for window in windows], abs=1.0)
