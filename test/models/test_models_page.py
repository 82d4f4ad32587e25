"""The example of docs/models.md does what the page says."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PIL import Image

from densereward_ros.models.base import ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.types import Frame, MalformedReply, Window


@pytest.fixture
def page(repository) -> str:
    """Its text."""
    return (repository / 'docs' / 'models.md').read_text()


def test_the_example_scores_pictures_by_their_goal(page, tmp_path, monkeypatch):
    """Saved and named as the page says: 1 at the goal, 0.8 for a fifth of the range away from it."""
    source, = re.findall(r'```python\n(.*?)```', page, re.DOTALL)
    name, = set(re.findall(r'(\w+:\w+)', page)) & set(re.findall(r'--model (\S+)', page))
    (tmp_path / f'{name.split(":")[0]}.py').write_text(source)
    Image.new('RGB', (224, 224), (255, 255, 255)).save(tmp_path / 'goal.png')
    monkeypatch.syspath_prepend(tmp_path)
    model = open_model(ModelOptions(model=name))

    def window(grey, side=224):
        picture = np.full((side, side, 3), grey, np.uint8)
        return Window('', 'stack', (Frame(0, 0, lambda: picture),) * 3)

    at, near, other = model.score([window(255), window(204), window(255, side=8)])
    assert (at.reward, near.reward, at.bounded) == (1.0, pytest.approx(0.8), True)
    assert isinstance(other, MalformedReply) and '(8, 8, 3)' in other.why


def test_both_baselines_are_on_the_page(page):
    """By the names that open them."""
    for name in ('value-order', 'pixel-difference'):
        assert f'**`{name}`**' in page
        assert open_model(ModelOptions(model=name)).name == name
