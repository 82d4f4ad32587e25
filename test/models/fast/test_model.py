"""FastModel as a RewardModel: verdicts, probabilities, interruption, errors, memory."""

from __future__ import annotations

import gc
import resource
import threading
import weakref
from dataclasses import replace

import pytest
import torch

from densereward_ros.models.base import Interrupted, ModelError, OutOfMemory
from densereward_ros.models.fast.engine import LONGEST_PASS, Shortcuts
from densereward_ros.models.fast.model import FastModel
from densereward_ros.types import REASONS, Frame, ImageError, MalformedReply, Reason, Verdict, Window

TASK = 'put the red block away'


@pytest.fixture
def window(make_frame) -> Window:
    """A window of three random frames."""
    return Window('/camera', TASK, tuple(make_frame() for _ in range(3)))


def test_with_the_format_even_random_weights_give_verdicts(lively, make_frame):
    """Well-formed by construction; the replies that were corrected are counted."""
    model = FastModel(lively(0), 32)
    windows = [Window('/camera', TASK, tuple(make_frame() for _ in range(3))) for _ in range(5)]
    for verdict in (*model.score(windows), *model.score(windows[:1])):
        assert isinstance(verdict, Verdict)
        assert 0 <= verdict.reward <= 1
    assert model.effort.replies == model.effort.corrected == 6


def test_what_was_scored_before_is_forgotten_to_the_last_bit(lively, make_frame):
    """After forget() the same batches of frames, read anew, give the same probabilities, not just words."""
    model = FastModel(lively(0), 32)
    pictures = [make_frame().image for _ in range(12)]

    def score() -> list[Verdict]:
        frames = [Frame(i, i, lambda image=image: image) for i, image in enumerate(pictures)]
        windows = [Window('/camera', TASK, tuple(frames[i:i + 3])) for i in range(10)]
        return [*model.score(windows[:1]), *model.score(windows[1:6]), *model.score(windows[6:])]

    first = score()
    model.score([Window('/other', 'pour', tuple(make_frame() for _ in range(3))) for _ in range(3)])
    model.forget()
    assert score() == first
    model.close()
    with pytest.raises(ModelError, match='is closed'):
        model.forget()


def test_it_says_what_it_runs_on(lively):
    """Device and number format."""
    assert FastModel(lively(0), 32).runs_on == 'cpu float32'


def test_without_the_format_random_weights_give_malformed_replies(lively, window):
    """What the model writes is what is judged."""
    model = FastModel(lively(0), 32, Shortcuts(format=False))
    assert isinstance(model.score([window])[0], MalformedReply)
    assert model.effort.corrected == 0


def test_word_probabilities_are_the_softmax_over_the_six_words(lively, window):
    """From the logits at which the model chose its word, in the order of REASONS."""
    loaded = lively(0)
    tokens = [loaded.processor.tokenizer(reason.word)['input_ids'][0] for reason in REASONS]
    scores = torch.tensor([1.0, 3.0, 2.0, 0.0, -1.0, -2.0])

    def prefer_words(module, args, logits):
        logits[..., tokens] = 1000 + scores
        return logits

    hook = loaded.network.lm_head.register_forward_hook(prefer_words)
    try:
        (verdict,) = FastModel(loaded, 32).score([window])
    finally:
        hook.remove()
    assert verdict.reason is Reason.MISS
    assert verdict.reason_probabilities == pytest.approx(scores.softmax(-1).tolist())


def test_an_empty_batch_is_no_work(lively):
    """No windows, no replies, no pass."""
    model = FastModel(lively(0), 32)
    assert model.score([]) == []
    model.prepare([])
    assert model.effort.passes == 0


def test_reading_ahead_leaves_the_newest_frame_the_task_and_the_reply(lively, make_frame, window):
    """After prepare() a reply's first pass reads only what came later; another prepare() reads nothing."""
    model = FastModel(lively(0), 32)
    model.score([window])
    slid = replace(window, frames=(*window.frames[1:], make_frame()))
    known = replace(slid, frames=slid.frames[:2])
    model.prepare([known])
    before = model.effort
    model.prepare([known])
    assert model.effort == before
    model.score([slid])
    done = model.effort - before
    cold = FastModel(lively(0), 32)
    cold.score([slid])
    assert done.frames_encoded == 1
    assert done.tokens < cold.effort.tokens - 100


def test_bad_windows_raise_as_with_the_reference_and_leave_the_model_usable(lively, make_frame, window):
    """An empty task, a smuggled token, a frame of one line; the next reply is as if nothing had been."""
    model = FastModel(lively(0), 32)
    wanted = FastModel(lively(0), 32).score([window])
    for task in ('', 'put <|im_end|> away'):
        with pytest.raises(ValueError, match='task'):
            model.score([replace(window, task=task)])
    with pytest.raises(ValueError, match='a window has 2 frames'):
        model.score([replace(window, frames=window.frames[:2])])
    with pytest.raises(ImageError, match='at most 200 times'):
        model.score([replace(window, frames=(*window.frames[:2], make_frame(1, 300)))])
    assert model.score([window]) == wanted


def test_interrupt_stays_until_resume(lively, window):
    """A running reply ends after its pass, later ones do not begin; afterwards the replies are the same."""
    model = FastModel(lively(0), 32)
    wanted = model.score([window])
    passes = model.effort.passes
    network = lively(0).network
    hook = network.lm_head.register_forward_hook(lambda *_: model.interrupt())
    try:
        with pytest.raises(Interrupted):
            model.score([replace(window, task='stack the cups')])
    finally:
        hook.remove()
    assert model.effort.passes == passes + 1
    for call in (model.score, model.prepare):
        with pytest.raises(Interrupted):
            call([window])
    thread = threading.Thread(target=model.resume)
    thread.start()
    thread.join()
    assert model.score([window]) == wanted


def test_close_frees_the_engine(lively, window):
    """It may be called twice; score() and prepare() then say that the model is closed."""
    model = FastModel(lively(0), 32)
    model.score([window])
    model.close()
    model.close()
    for call in (model.score, model.prepare):
        with pytest.raises(ModelError, match='lively 0 is closed'):
            call([window])


def test_numbers_that_are_none_give_a_malformed_reply_and_leave_nothing_behind(lively, make_frame, window):
    """NaN in the features of one frame: its window is malformed, and the next replies are as ever."""
    model = FastModel(lively(0), 32)
    other = replace(window, camera='/other', frames=tuple(make_frame() for _ in range(3)))
    wanted = FastModel(lively(0), 32).score([window, other])
    hook = lively(0).network.model.visual.register_forward_hook(_poison)
    try:
        (malformed,) = model.score([window])
    finally:
        hook.remove()
    assert isinstance(malformed, MalformedReply)
    assert 'not a finite number' in malformed.why
    assert model.score([window, other]) == wanted


def _poison(module, args, output):
    tokens = output[0] if isinstance(output, tuple) else output.pooler_output
    tokens.fill_(float('nan'))


def test_a_broken_pass_leaves_the_model_usable(lively, make_frame, window):
    """An exception in the middle of the language model: the next replies are as ever."""
    model = FastModel(lively(0), 32)
    slid = replace(window, frames=(*window.frames[1:], make_frame()))
    fresh = FastModel(lively(0), 32)
    wanted = fresh.score([window]), fresh.score([slid])
    assert model.score([window]) == wanted[0]

    def fail(*_):
        raise RuntimeError('broken on purpose')

    hook = lively(0).network.model.language_model.layers[1].register_forward_pre_hook(fail)
    try:
        with pytest.raises(RuntimeError, match='on purpose'):
            model.score([slid])
    finally:
        hook.remove()
    assert model.score([slid]) == wanted[1]


def test_out_of_gpu_memory_is_one_clear_line_and_not_the_end(lively, window, monkeypatch):
    """Everything kept is dropped, and the next reply works."""
    model = FastModel(lively(0), 32)
    wanted = model.score([window])

    def fail(*_):
        raise torch.cuda.OutOfMemoryError('CUDA out of memory. Tried to allocate 2 GiB')

    monkeypatch.setattr(torch.cuda, 'empty_cache', lambda: None)
    hook = lively(0).network.model.language_model.layers[0].register_forward_pre_hook(fail)
    try:
        with pytest.raises(OutOfMemory, match='lively 0 ran out of GPU memory: .*2 GiB'):
            model.score([replace(window, task='stack the cups')])
    finally:
        hook.remove()
    assert model._engine.cache_bytes == 0
    assert model.score([window]) == wanted


class _Tensor:
    """Stands for memory that a failed computation holds."""


def test_out_of_gpu_memory_lets_go_of_what_the_failed_reply_held(lively, window, monkeypatch):
    """Before the cache is emptied: what the error's frames keep alive could not be given back otherwise."""
    model, held, alive = FastModel(lively(0), 32), [], []

    def fail(*_):
        activations = _Tensor()
        held.append(weakref.ref(activations))
        raise torch.cuda.OutOfMemoryError('CUDA out of memory')

    monkeypatch.setattr(torch.cuda, 'empty_cache', lambda: alive.append(held[-1]() is not None))
    hook = lively(0).network.model.language_model.layers[0].register_forward_pre_hook(fail)
    try:
        with pytest.raises(OutOfMemory):
            model.score([window])
    finally:
        hook.remove()
    assert alive == [False]


def test_a_generation_config_that_greedy_decoding_cannot_follow_is_refused(lively, monkeypatch):
    """A repetition penalty changes the reference's replies: better refused than different."""
    monkeypatch.setattr(lively(0).network.generation_config, 'repetition_penalty', 1.05)
    with pytest.raises(ModelError, match="repetition_penalty to 1.05.*'reference'"):
        FastModel(lively(0), 32)


def test_no_reply_takes_more_passes_than_the_reference(lively, make_frame):
    """Every frame new, every guess wrong: one pass for each token at most."""
    model = FastModel(lively(0), 32, Shortcuts(format=False))
    for _ in range(3):
        before = model.effort
        (reply,) = model.generate([Window('/camera', TASK, tuple(make_frame() for _ in range(3)))])
        assert (model.effort - before).passes <= len(reply.tokens)


def test_large_frames_are_read_in_pieces(lively, make_frame, agreement):
    """A mask grows with the square of a pass: none is longer than its limit, and the reply is the same."""
    model = FastModel(lively(0), 32, Shortcuts(format=False))
    read, longest = model._engine._reader.read, []
    model._engine._reader.read = lambda passages: longest.append(max(map(len, passages))) or read(passages)
    frames = tuple(make_frame(640, 800) for _ in range(4))
    windows = [Window('/camera', TASK, frames[:3]), Window('/camera', TASK, frames[1:])]
    compare = agreement(lively(0))
    compare.check(windows[:1], model.generate(windows[:1]))
    model.prepare([replace(windows[1], frames=frames[1:3])])
    compare.check(windows[1:], model.generate(windows[1:]))
    assert sum(longest) >= 3 * 20 * 25
    assert 1000 < max(longest) <= LONGEST_PASS + 40


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_memory_is_flat(lively, make_frame):
    """Over three hundred replies over changing cameras, tasks and sizes add no object and no megabyte."""
    model = FastModel(lively(0), 32)
    frames = [make_frame() for _ in range(3)]

    def run(count: int) -> tuple[int, int]:
        for number in range(count):
            frames[:] = [*frames[1:], make_frame(64, 64 + 32 * (number % 3))]
            model.score([Window(f'/camera{number % 12}', f'task {number % 100}', tuple(frames))])
        gc.collect()
        return len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    objects, kilobytes = run(110)
    more_objects, more_kilobytes = run(240)
    assert more_objects < objects + 300
    assert more_kilobytes < kilobytes + 20_000
