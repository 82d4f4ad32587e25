"""Training sees what a reward model sees, computes what the model computes, and learns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from densereward_ros.models.base import ModelError, ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.tabletop.samples import FRAME_TARGETS, FRAMES, WINDOW_TARGETS, WINDOWS, chunks
from densereward_ros.types import FRAMES_PER_WINDOW, Frame, Reason, Window


@pytest.fixture(scope='module')
def batch():
    """Two chunks."""
    source = chunks(5)
    return [next(source) for _ in range(2)]


@pytest.fixture(scope='module')
def reference(random_checkpoint: Path):
    """The card's own procedure, with random weights."""
    model = open_model(ModelOptions(model=str(random_checkpoint), device='cpu', engine='reference'))
    yield model
    model.close()


def _window(chunk, number: int) -> Window:
    frames = tuple(Frame(k, k, lambda k=k: chunk.pictures[number + k]) for k in range(FRAMES_PER_WINDOW))
    return Window('camera', chunk.tasks[number], frames)


def test_a_chunk_holds_four_windows(batch):
    """Six pictures, four questions with their answers, and where things are."""
    for chunk in batch:
        assert (chunk.pictures.shape, chunk.pictures.dtype) == ((FRAMES, 96, 128, 3), np.uint8)
        assert len(chunk.tasks) == len(chunk.reasons) == len(chunk.rewards) == WINDOWS
        assert all(0 <= reward <= 1 for reward in chunk.rewards)
        assert chunk.frame_targets.shape == (FRAMES, FRAME_TARGETS)
        assert chunk.window_targets.shape == (WINDOWS, WINDOW_TARGETS)


def test_chunks_are_deterministic_and_mixed():
    """The same seed gives the same chunks; every word occurs, and most windows are correct."""
    one, two = chunks(6), chunks(6)
    for _ in range(5):
        first, second = next(one), next(two)
        assert np.array_equal(first.pictures, second.pictures)
        assert first.tasks == second.tasks and first.rewards == second.rewards
    words = [reason for _ in range(150) for reason in next(one).reasons]
    assert set(words) == set(Reason) - {Reason.NONE}
    assert 0.5 < words.count(Reason.CORRECT) / len(words) < 0.85


def test_training_reads_what_the_reference_reads(batch, reference, random_checkpoint):
    """Pixels and token ids are equal to those of the model card's procedure, bit for bit."""
    import torch

    from densereward_ros.tabletop.training import Encoder

    encoder = Encoder(random_checkpoint)
    texts, starts = encoder.texts(batch)
    row = 0
    for chunk in batch:
        pixels = encoder.pixels(chunk.pictures)
        for number in range(WINDOWS):
            inputs = reference.encode(_window(chunk, number))
            mine = pixels[number : number + FRAMES_PER_WINDOW].flatten(0, 1)
            assert torch.equal(inputs['pixel_values'], mine)
            ids = inputs['input_ids'][0]
            asked = texts[row, : starts[row]]
            assert torch.equal(ids[: len(encoder.prefix)], encoder.prefix)
            assert torch.equal(ids[-len(asked) :], asked)
            images = ids[len(encoder.prefix) : -len(asked)]
            assert len(images) == FRAMES_PER_WINDOW * (12 + 2)
            row += 1


def test_the_network_computes_what_the_model_computes(batch, tmp_path):
    """Sharing frames and prefix changes no logit by more than rounding."""
    import torch

    from densereward_ros.tabletop.training import TOKEN_WEIGHTS, Trainer, in_windows

    trainer = Trainer(tmp_path, seed=0)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3)  # so that attention has something to choose
        network, encoder = trainer.network, trainer.encoder
        pixels = encoder.pixels(np.concatenate([chunk.pictures for chunk in batch]))
        features, deep = network.see(pixels)
        texts, starts = encoder.texts(batch)
        length = len(TOKEN_WEIGHTS)
        places = network.images_length + starts[:, None] + torch.arange(-1, length - 1)
        count = len(batch)
        states = network.read(
            encoder.prefix,
            texts,
            places,
            in_windows(features, count),
            [in_windows(layer, count) for layer in deep],
        )
        mine = trainer.model.lm_head(states)
        row = 0
        for index in range(count):
            for number in range(WINDOWS):
                start = index * FRAMES + number
                rest = texts[row, : starts[row] + length]
                image = torch.tensor([trainer.model.config.image_token_id] * 12)
                opened = torch.tensor([trainer.model.config.vision_start_token_id])
                closed = torch.tensor([trainer.model.config.vision_end_token_id])
                ids = torch.cat([encoder.prefix, *[opened, image, closed] * FRAMES_PER_WINDOW, rest])[None]
                theirs = trainer.model(
                    input_ids=ids,
                    attention_mask=torch.ones_like(ids),
                    pixel_values=pixels[start : start + FRAMES_PER_WINDOW].flatten(0, 1),
                    image_grid_thw=torch.tensor([[1, 6, 8]] * FRAMES_PER_WINDOW),
                    mm_token_type_ids=(ids == trainer.model.config.image_token_id).long(),
                ).logits[0, -length - 1 : -1]
                assert torch.allclose(mine[row], theirs, atol=1e-4), (index, number)
                row += 1


@pytest.mark.slow
def test_a_few_steps_teach_the_format(batch, tmp_path):
    """The loss on the reply falls to a half of what it was, on the same two chunks."""
    from densereward_ros.tabletop.training import Trainer

    trainer = Trainer(tmp_path, seed=0)
    losses = [trainer.step(batch, 0.03 + 0.001 * k)['loss'] for k in range(25)]
    assert losses[0] > 4
    assert losses[-1] < losses[0] / 2


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_train_writes_a_checkpoint_that_opens(tmp_path):
    """A few seconds of training: progress with the time left, and a folder that the node can load."""
    from densereward_ros.tabletop.training import train

    lines: list[str] = []
    folder = train(tmp_path / 'out' / 'model', minutes=0.1, seed=1, report=lines.append)
    assert lines[0].startswith('training 2.')
    assert lines[-1] == f'wrote {folder}'
    assert [path.name for path in folder.parent.iterdir()] == ['model']
    try:
        open_model(ModelOptions(model=str(folder), device='cpu', engine='reference')).close()
    except ModelError as error:
        pytest.fail(str(error))
