"""Models, pictures and the comparison that the fast engine's tests stand on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from densereward_ros.types import Frame, Window

NEAR_TIE = 1e-4


@pytest.fixture(scope='session')
def lively(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], object]:
    """Loaded models of random weights, by seed: a reply depends on every pixel, and follows no format."""
    from safetensors.torch import load_file, save_file

    from densereward_ros.models import checkpoint, loading
    from densereward_ros.models.base import ModelOptions
    from densereward_ros.tabletop.checkpoint import new_checkpoint

    loaded = {}

    def load(seed: int = 0) -> object:
        if seed not in loaded:
            folder = new_checkpoint(tmp_path_factory.mktemp('lively'), seed)
            weights = folder / 'model.safetensors'
            tensors = {key: 20 * part if part.ndim > 1 else part for key, part in load_file(weights).items()}
            save_file(tensors, weights, metadata={'format': 'pt'})
            for name in ('preprocessor_config.json', 'video_preprocessor_config.json'):
                config = json.loads((folder / name).read_text())
                config['size']['longest_edge'] = 16777216  # pictures keep their size
                (folder / name).write_text(json.dumps(config))
            found = checkpoint.check(folder, f'lively {seed}')
            loaded[seed] = loading.load(found, ModelOptions(device='cpu', dtype='float32'), lambda line: None)
        return loaded[seed]

    return load


@pytest.fixture(scope='session')
def trained() -> object:
    """The demo checkpoint; skips where it is not there."""
    from densereward_ros.models import checkpoint, loading
    from densereward_ros.models.base import ModelError, ModelOptions

    try:
        found = checkpoint.find('tabletop', 'main', lambda line: None)
    except ModelError as error:
        pytest.skip(str(error))
    return loading.load(found, ModelOptions(device='cpu', dtype='float32'), lambda line: None)


@pytest.fixture
def make_frame() -> Callable[..., Frame]:
    """Frames of smooth random pictures, all different."""
    from PIL import Image

    random = np.random.default_rng(0)

    def make(height: int = 64, width: int = 96) -> Frame:
        coarse = Image.fromarray(random.integers(0, 256, (4, 6, 3), np.uint8))
        image = np.asarray(coarse.resize((width, height)))
        return Frame(0, 0, lambda: image)

    return make


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how often the engines' replies parted at a near tie."""
    if Agreement.all_compared:
        terminalreporter.write_line(
            f'fast engine: {Agreement.all_compared} replies compared with the reference, '
            f'{Agreement.all_near_ties} parted where its two best logits were within {NEAR_TIE:g}'
        )


class Agreement:
    """Compares replies with the reference's, and counts the near ties that part them."""

    all_compared = all_near_ties = 0

    def __init__(self, loaded: object, max_new_tokens: int = 32) -> None:
        from densereward_ros.models.reference import ReferenceModel

        self.reference = ReferenceModel(loaded, max_new_tokens)
        self.near_ties = 0
        self.compared = 0
        self._network = loaded.network
        self._known: dict[Window, list[int]] = {}

    def expected(self, window: Window) -> list[int]:
        """The reference's tokens."""
        if window not in self._known:
            self._known[window] = self.reference.generate(self.reference.encode(window))[0].tolist()
        return self._known[window]

    def check(self, windows: Sequence[Window], replies: Sequence[object]) -> None:
        """Every reply is the reference's, token for token, or parts from it at a near tie."""
        for window, reply in zip(windows, replies, strict=True):
            expected, got = self.expected(window), reply.tokens
            self.compared += 1
            Agreement.all_compared += 1
            if got == expected:
                continue
            at = next(i for i, (one, other) in enumerate(zip(got, expected)) if one != other)
            gap = self._gap(window, at)
            assert gap < NEAR_TIE, f'token {at} of {got}, {expected} differs by {gap}'
            self.near_ties += 1
            Agreement.all_near_ties += 1

    def _gap(self, window: Window, at: int) -> float:
        import torch

        self._network.model.rope_deltas = None
        with torch.no_grad():
            output = self._network.generate(
                **self.reference.encode(window), max_new_tokens=at + 1, do_sample=False,
                output_logits=True, return_dict_in_generate=True,
            )  # fmt: skip
        best = output.logits[at][0].topk(2).values
        return float(best[0] - best[1])


@pytest.fixture
def agreement() -> type[Agreement]:
    """The comparison with the reference."""
    return Agreement
