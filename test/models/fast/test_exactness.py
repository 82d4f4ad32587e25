"""The fast engine's replies are the reference's, token for token, whatever happens around them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from densereward_ros.models.fast.drafts import Tree
from densereward_ros.models.fast.engine import Shortcuts
from densereward_ros.models.fast.model import FastModel
from densereward_ros.models.fast.reply_format import end_tokens
from densereward_ros.types import FAILURES, Frame, Window

pytestmark = pytest.mark.slow  # together they take most of a minute

UNCONSTRAINED = Shortcuts(format=False)
TASKS = ('put the red block away', 'stack the cups', 'put the blue block on the green plate, slowly')
SIZES = ((64, 96), (96, 64), (64, 64))


def story(make_frame, seed: int, length: int):
    """What a node may ask in any order: ('score' | 'prepare', windows)."""
    choice = random.Random(seed)
    cameras = {name: [make_frame() for _ in range(3)] for name in ('/left', '/right')}
    tasks = dict.fromkeys(cameras, TASKS[0])
    for _ in range(length):
        camera = choice.choice(list(cameras))
        frames = cameras[camera]
        event = choice.random()
        if event < 0.15:  # a new episode, or another camera mode
            frames[:] = [make_frame(*choice.choice(SIZES)) for _ in range(3)]
        elif event < 0.25:  # a frame was skipped
            frames[:] = [frames[-1], make_frame(), make_frame()]
        elif event < 0.35:  # the same frame twice
            frames[:] = [frames[1], frames[2], frames[2]]
        elif event < 0.85:
            frames[:] = [*frames[1:], make_frame()]
        if choice.random() < 0.15:
            tasks[camera] = choice.choice(TASKS)
        windows = [Window(camera, tasks[camera], tuple(frames))]
        if choice.random() < 0.2:
            windows = [Window(name, tasks[name], tuple(cameras[name])) for name in cameras]
        yield 'score', windows
        if choice.random() < 0.6:
            count = choice.choice((1, 2))
            yield 'prepare', [replace(window, frames=window.frames[-count:]) for window in windows]


@pytest.mark.parametrize('seed', [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_any_story_gives_the_replies_of_the_reference(lively, make_frame, agreement, seed):
    """Sliding, skipped and repeated frames, sizes, tasks, cameras, batches and read-ahead in any order."""
    model = FastModel(lively(seed), 32, UNCONSTRAINED)
    compare = agreement(lively(seed))
    for what, windows in story(make_frame, seed, 12):
        if what == 'prepare':
            model.prepare(windows)
        else:
            compare.check(windows, model.generate(windows))
    assert compare.compared >= 12
    assert compare.near_ties <= 1


def stand_in(run):
    """What recording is on a GPU: what was recorded runs again, and its result stands where it stood."""
    output = run().clone()
    return lambda: output.copy_(run())


@pytest.mark.parametrize('seed', [0, 1])
def test_recorded_passes_give_the_replies_of_the_reference(lively, make_frame, agreement, seed):
    """Padded to few widths, over all slots of a row, from tensors that stay where they are."""
    recorded = []
    model = FastModel(
        lively(seed), 32, UNCONSTRAINED, record=lambda run: recorded.append(1) or stand_in(run))
    compare = agreement(lively(seed))
    for what, windows in story(make_frame, 10 + seed, 12):
        if what == 'prepare':
            model.prepare(windows)
        else:
            compare.check(windows, model.generate(windows))
    assert compare.compared >= 12
    assert compare.near_ties <= 1
    assert 3 <= len(recorded) < model.effort.passes / 4  # the same few again and again


class Adversary:
    """Guesses at random: noise, the truth, the truth with a wrong token, image pads, ends."""

    def __init__(self, seed: int, vocabulary: int, special: list[int]) -> None:
        self.truth: dict[object, list[int]] = {}
        self._random = random.Random(seed)
        self._vocabulary = vocabulary
        self._special = special

    def guess(self, stream: object, reply: list[int]) -> Tree:
        """A tree of one to four paths, each from the last certain token on."""
        tree = Tree()
        tree.add(reply[-1:])
        for _ in range(self._random.randrange(5)):
            path = self.truth[stream][len(reply) :] if self._random.random() < 0.6 else []
            path = path[: self._random.randrange(1, 20)]
            for _ in range(self._random.randrange(3)):
                place = self._random.randrange(len(path) + 1)
                noise = self._random.choice([*self._special, self._random.randrange(self._vocabulary)])
                path = [*path[:place], noise, *path[place + self._random.randrange(2) :]]
            tree.add([*reply[-1:], *path])
        return tree

    def learn(self, stream: object, reply: list[int]) -> None:
        """Nothing is learnt."""


def test_no_draft_can_change_a_reply(lively, make_frame, agreement):
    """Random trees, with image pads and end tokens in them, leave every reply as it is."""
    loaded = lively(0)
    model = FastModel(loaded, 32, UNCONSTRAINED)
    compare = agreement(loaded)
    config = loaded.network.config
    special = [config.image_token_id, config.vision_start_token_id, *end_tokens(loaded.network)]
    adversary = model._engine._drafter = Adversary(0, config.text_config.vocab_size, special)
    frames = [make_frame() for _ in range(8)]
    windows = [Window('/camera', TASKS[0], tuple(frames[i : i + 3])) for i in range(6)]
    for window in windows:
        adversary.truth['/camera', TASKS[0], 0] = compare.expected(window)
        for _ in range(5):
            compare.check([window], model.generate([window]))
    assert compare.compared == 30
    assert compare.near_ties <= 1
    assert model.effort.passes < 30 * 32  # the true guesses among them were taken


def test_a_batch_equals_one_by_one(lively, make_frame, agreement):
    """Windows of different sizes and tasks, cold, warm and more than are read at once, equal single ones."""
    compare = agreement(lively(0))
    model = FastModel(lively(0), 32, UNCONSTRAINED)
    windows = [
        Window(f'/camera{i}', TASKS[i % 3], tuple(make_frame(*SIZES[i % 3]) for _ in range(3)))
        for i in range(5)
    ]
    compare.check(windows, model.generate(windows))
    slid = [replace(window, frames=(*window.frames[1:], make_frame())) for window in windows]
    model.prepare([replace(window, frames=window.frames[:2]) for window in slid[1:4]])
    order = [slid[3], slid[0], slid[4]]
    compare.check(order, model.generate(order))
    same = [slid[0], replace(slid[0], task=TASKS[2]), slid[0]]
    compare.check(same, model.generate(same))
    many = [
        replace(window, camera=f'/camera{i}') for i in range(3) for window in (same[1], order[0], order[2])
    ]
    compare.check(many, model.generate(many))
    assert compare.near_ties == 0


def test_eager_attention_gives_the_same_replies(lively, make_frame, agreement):
    """The tree's mask means the same to both kinds of attention that can take one."""
    loaded = lively(3)
    loaded.network.set_attn_implementation('eager')
    compare = agreement(loaded)
    model = FastModel(loaded, 32, UNCONSTRAINED)
    frames = [make_frame() for _ in range(4)]
    for first in range(2):
        windows = [Window('/camera', TASKS[first], tuple(frames[first : first + 3]))] * 2
        compare.check(windows, model.generate(windows))


def test_a_small_window_after_a_large_one_equals_a_fresh_engine(lively, make_frame):
    """No rotary offset of one reply reaches the next (transformers #43952)."""
    large = Window('/camera', TASKS[0], tuple(make_frame(160, 160) for _ in range(3)))
    small = Window('/camera', TASKS[0], tuple(make_frame(64, 64) for _ in range(3)))
    used = FastModel(lively(0), 32, UNCONSTRAINED)
    used.generate([large])
    fresh = FastModel(lively(0), 32, UNCONSTRAINED)
    assert used.generate([small])[0].tokens == fresh.generate([small])[0].tokens


def demo_windows(episodes: int) -> list[Window]:
    """Windows of simulated episodes, every second of them with a mishap, five frames a second."""
    from densereward_ros.tabletop.episode import LiveTable

    windows = []
    for seed in range(episodes):
        table = LiveTable(7_000_000 + seed, [FAILURES[seed % 5]] if seed % 2 else [])
        frames = []
        for tick in range(80):
            table.step()
            if tick % 2:
                image = table.render()
                frames.append(Frame(tick, tick, lambda image=image: image))
        windows += [Window('/camera', table.task, tuple(frames[i : i + 3])) for i in range(len(frames) - 2)]
    return windows


@pytest.mark.slow
def test_the_demo_checkpoint_replies_as_the_reference_does(trained, agreement):
    """Whole episodes: tokens without the format, and verdicts with it, which has nothing to correct."""
    compare = agreement(trained)
    free, model = FastModel(trained, 32, UNCONSTRAINED), FastModel(trained, 32)
    passes = 0
    for window in demo_windows(3):
        compare.check([window], free.generate([window]))
        before = model.effort.passes
        (verdict,) = model.score([window])
        passes += model.effort.passes - before
        (wanted,) = compare.reference.score([window])
        assert replace(verdict, reason_probabilities=None) == wanted
        model.prepare([replace(window, frames=window.frames[1:])])
    assert compare.near_ties <= 0.02 * compare.compared
    assert model.effort.corrected == 0
    assert passes <= 1.5 * compare.compared
