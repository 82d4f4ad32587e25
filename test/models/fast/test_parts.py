"""Positions, masks, rows, drafts and features, each by itself."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from densereward_ros.models.fast import vision
from densereward_ros.models.fast.costs import pass_cost
from densereward_ros.models.fast.drafts import Drafter, ReplySpelling, Tree
from densereward_ros.models.fast.keyvalues import MAX_ROWS, KeyValues, common_prefix
from densereward_ros.models.fast.masks import ancestors, attention_mask, stack_masks
from densereward_ros.models.fast.prompts import PromptReader
from densereward_ros.models.fast.vision import FeatureCache
from densereward_ros.models.reference import ReferenceModel
from densereward_ros.types import ImageError, Reason, Window


@pytest.mark.parametrize('sizes', [((64, 96),) * 3, ((64, 64), (128, 64), (64, 160))])
def test_tokens_and_positions_are_those_of_the_reference(lively, make_frame, sizes):
    """Token ids equal the processor's, positions those that generate() gives the language model."""
    loaded = lively(0)
    window = Window('/camera', 'stack the cups', tuple(make_frame(*size) for size in sizes))
    reference = ReferenceModel(loaded, 32)
    inputs = reference.encode(window)
    seen = []
    hook = loaded.network.model.language_model.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(kwargs['position_ids']), with_kwargs=True
    )
    try:
        reference.generate(inputs)
    finally:
        hook.remove()
    features = FeatureCache(loaded).of(window.frames)
    prompt = PromptReader(loaded).read(window.task, [features[frame] for frame in window.frames])
    assert prompt.ids.tolist() == inputs['input_ids'][0].tolist()
    assert np.array_equal(prompt.positions, seen[0][-3:, 0].numpy())
    assert prompt.next_position == int(seen[1][-1, 0, 0])


def test_pixels_are_those_of_the_reference(lively, make_frame):
    """Each frame's patches, made alone, equal the bits that the reference makes of three at once."""
    loaded = lively(0)
    sizes = ((97, 131), (97, 131), (50, 70))
    window = Window('/camera', 'stack the cups', tuple(make_frame(*size) for size in sizes))
    wanted = ReferenceModel(loaded, 32).encode(window)
    patches = [FeatureCache(loaded)._pixels(frame) for frame in window.frames]
    assert torch.equal(torch.cat([pixels for pixels, _ in patches]), wanted['pixel_values'])
    assert torch.equal(torch.cat([grid for _, grid in patches]), wanted['image_grid_thw'])


def test_each_frame_is_encoded_once_and_forgotten_with_its_frame(lively, make_frame):
    """Features live as long as somebody holds the frame, and no longer."""
    cache = FeatureCache(lively(0))
    frames = [make_frame() for _ in range(4)]
    first = cache.of(frames[:3])
    assert cache.of(frames[1:])[frames[2]] is first[frames[2]]
    assert cache.encoded == 4
    del first, frames
    gc.collect()
    assert len(cache) == 0


def test_features_are_bounded(lively, make_frame, monkeypatch):
    """Frames that a recording keeps alive do not keep their features; the least recently used go first."""
    monkeypatch.setattr(vision, 'MAX_FRAMES', 3)
    cache = FeatureCache(lively(0))
    frames = [make_frame() for _ in range(4)]
    for frame in (*frames[:3], frames[0], frames[3]):
        cache.of([frame])
    assert len(cache) == 3
    cache.of([frames[0]])
    assert cache.encoded == 4
    cache.of([frames[1]])
    assert cache.encoded == 5


def test_a_frame_that_the_reference_refuses_is_refused(lively, make_frame):
    """The same error, and the features of the others are kept."""
    cache = FeatureCache(lively(0))
    good = make_frame()
    cache.of([good])
    with pytest.raises(ImageError, match='at most 200 times'):
        cache.of([good, make_frame(1, 201)])
    assert len(cache) == 1


def test_common_prefix():
    """The number of leading elements that agree."""
    assert common_prefix(np.array([1, 2, 3]), np.array([1, 2, 4, 5])) == 2
    assert common_prefix(np.array([1, 2]), np.array([1, 2, 4])) == 2
    assert common_prefix(np.array([], np.int64), np.array([1])) == 0


def test_rows_take_what_any_stream_knows(lively):
    """A new stream gets the constant prompt from another's row, and the number of rows is bounded."""
    keyvalues = KeyValues(lively(0).network)
    prompt = np.arange(10)
    (row,) = keyvalues.rows_for(['a'], [prompt])
    assert len(row.keys) == 0
    row.keys = prompt
    other = np.concatenate([prompt[:6], [77, 78]])
    rows = keyvalues.rows_for(['b', 'a'], [other, prompt])
    assert [len(row.keys) for row in rows] == [6, 10]
    assert rows[0] is not rows[1]
    size = keyvalues.bytes
    for stream in range(3 * MAX_ROWS):
        keyvalues.rows_for([stream], [prompt])
    assert keyvalues.bytes <= size / 2 * MAX_ROWS


def test_a_token_attends_to_its_ancestors_alone():
    """A tree of two branches after two tokens of a prompt, one of them new, with a dead slot before."""
    assert ancestors([-1, 0, 0, 2]).tolist() == [
        [True, False, False, False],
        [True, True, False, False],
        [True, False, True, False],
        [True, False, True, True],
    ]
    mask = attention_mask(np.array([True, False]), 1, [-1, -1])
    assert mask.astype(int).tolist() == [[1, 0, 1, 0, 0], [1, 0, 1, 1, 0], [1, 0, 1, 0, 1]]
    stacked = stack_masks([mask, np.ones((1, 2), bool)])
    assert stacked.shape == (2, 1, 3, 5)
    assert stacked[1, 0].astype(int).tolist() == [[1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0]]


def test_a_tree_shares_what_paths_share():
    """Nodes are added once; depth counts from the root."""
    tree = Tree()
    tree.add([5, 6, 7])
    assert tree.cost([5, 6, 8, 9]) == 2
    tree.add([5, 6, 8])
    assert (tree.tokens, tree.parents, tree.depths()) == ([5, 6, 7, 8], [-1, 0, 1, 1], [0, 1, 2, 2])
    assert tree.child(1, 8) == 3
    assert tree.child(0, 8) is None


def foresees(tree: Tree, path: list[int]) -> bool:
    """Whether every token of a path is in the tree."""
    return tree.cost(path) == 0


@pytest.fixture
def spelling(lively) -> ReplySpelling:
    """Replies in the demo checkpoint's vocabulary."""
    return ReplySpelling(lively(0))


def test_the_first_guess_is_a_template_and_the_next_the_reply_before(spelling):
    """Word and number of the last reply of the same stream, and of no other."""
    drafter = Drafter(spelling, pass_cost=16)
    fall = spelling.spell(Reason.FALL, 0.374)
    assert spelling.regular
    assert spelling.thousandths(fall) == 374
    assert foresees(drafter.guess('a', []), spelling.spell(Reason.CORRECT, 0.5)[:-1])
    drafter.learn('a', [*fall, spelling.end[0]])
    assert foresees(drafter.guess('a', []), fall[:-1])
    assert not foresees(drafter.guess('b', []), fall[:-1])


def test_the_tree_holds_numbers_near_the_last_and_pays_for_each(spelling):
    """Neighbours are foreseen, far ones not; the more a pass costs, the larger the tree."""
    sizes = []
    for cost in (0, 7, 57, 200):
        drafter = Drafter(spelling, cost)
        for reward in (0.38, 0.386, 0.392, 0.398):
            drafter.learn('a', spelling.spell(Reason.CORRECT, reward))
        tree = drafter.guess('a', [])
        sizes.append(len(tree))
        assert foresees(tree, spelling.spell(Reason.CORRECT, 0.402)[:-1]) == (cost >= 57)
        assert foresees(tree, spelling.spell(Reason.CORRECT, 0.33)[:-1]) == (cost == 200)
    assert sizes == sorted(sizes)


def test_after_a_surprise_the_guess_goes_on_from_what_is_certain(spelling):
    """Another word keeps the rest of the draft; another first decimal leaves all its hundredths open."""
    drafter = Drafter(spelling, pass_cost=16)
    drafter.learn('a', spelling.spell(Reason.CORRECT, 0.398))
    fall = spelling.spell(Reason.FALL, 0.398)
    certain = fall[: spelling.number_at - 3]
    tree = drafter.guess('a', certain)
    assert tree.tokens[0] == certain[-1]
    assert foresees(tree, fall[len(certain) - 1 : -1])
    far = spelling.spell(Reason.CORRECT, 0.8)[:-2]
    tree = drafter.guess('a', far)
    for hundredths in range(80, 90):
        assert foresees(tree, spelling.spell(Reason.CORRECT, hundredths / 100)[len(far) - 1 : -1])


def test_where_the_third_decimal_ends_a_reply_it_is_not_guessed(spelling):
    """It is predicted by the second; only a reply that may go on is guessed to its end."""
    fall = spelling.spell(Reason.FALL, 0.374)
    for complete in (False, True):
        drafter = Drafter(spelling, pass_cost=57, complete=complete)
        drafter.learn('a', [*fall, spelling.end[0]])
        assert foresees(drafter.guess('a', []), fall) == complete


def test_a_pass_costs_as_many_tokens_as_its_launch_and_weights_take(lively):
    """More for a small model, whose tokens are cheap, than for a large one; the same on every run."""
    network = lively(0).network
    assert 20 < pass_cost(network) == pass_cost(network) < 200


def test_a_reply_of_no_format_is_guessed_too(spelling):
    """Anything may be learnt, and anything may be certain."""
    drafter = Drafter(spelling, pass_cost=16)
    drafter.learn('a', [7] * 32)
    assert foresees(drafter.guess('a', []), [7] * 32)
    tree = drafter.guess('a', [9] * 40)
    assert tree.tokens == [9]
