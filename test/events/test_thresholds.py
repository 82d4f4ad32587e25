"""The thresholds file: written, read, and refused in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from densereward_ros.events.settings import DEFAULTS
from densereward_ros.events.thresholds import Thresholds, ThresholdsError, read, write

THRESHOLDS = Thresholds(
    false_alarms=0.05, episodes=120, model='owner/name@main', engine='fast', quantization='none',
    max_pixels=0, frame_interval=0.2,
    settings=replace(
        DEFAULTS, confirmation_window=3, probability_floors=(0.1, 0.2, 0.3, 0.4, 0.5), reward_drop=0.25))


def test_what_is_written_is_what_is_read(tmp_path):
    """Every field; and the settings that are none of the file's are left alone when it is applied."""
    file = tmp_path / 't.yaml'
    write(THRESHOLDS, file)
    found = read(file)
    assert found == THRESHOLDS
    own = replace(DEFAULTS, cooldown=7.0, confirmations=3, clearing=2)
    assert found.applied_to(own) == replace(THRESHOLDS.settings, cooldown=7.0, clearing=2)
    assert file.read_text().startswith('# Thresholds of the failure detector')


def changed(tmp_path, **values):
    """A file with some values changed, None for one taken out."""
    file = tmp_path / 't.yaml'
    write(THRESHOLDS, file)
    content = yaml.safe_load(file.read_text()) | values
    file.write_text(yaml.safe_dump({key: value for key, value in content.items() if value is not None}))
    return file


@pytest.mark.parametrize(('values', 'words'), [
    ({'confirmations': 0}, 'confirmations is 0, allowed: a whole number, 1 to 100'),
    ({'confirmation_window': 1}, 'confirmation_window is 1, allowed: 0, or at least confirmations'),
    ({'false_alarms': 1.5}, 'false_alarms is 1.5, allowed: a number above 0 and below 1'),
    ({'probability_floors': 0.5}, 'probability_floors is 0.5, allowed: a number for each of miss, collision'),
    ({'probability_floors': {'miss': 0.5}}, "probability_floors is {'miss': 0.5}, allowed: a number for"),
    ({'reward_drop': 'much'}, "reward_drop is 'much', allowed: 0.0 to 1000"),
    ({'engine': 5}, 'engine is 5, allowed: a text'),
    ({'drop_window': None}, 'allowed: exactly false_alarms, episodes, model'),
    ({'extra': 1}, 'allowed: exactly false_alarms, episodes, model'),
])
def test_a_wrong_value_is_one_line_that_names_the_file(tmp_path, values, words):
    """Out of range, of the wrong type, missing, and unknown."""
    file = changed(tmp_path, **values)
    with pytest.raises(ThresholdsError) as caught:
        read(file)
    text = str(caught.value)
    assert text.startswith(f'{file}: ') and words in text and '\n' not in text


@pytest.mark.parametrize('content', ['', 'a: [', '- 1', 'text', '\x00', b'\xff\xfe'])
def test_what_is_no_thresholds_file_is_one_line(tmp_path, content):
    """Empty, broken YAML, a list, a text, control characters, not UTF-8."""
    file = tmp_path / 't.yaml'
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ThresholdsError) as caught:
        read(file)
    assert str(caught.value).startswith(f'{file}: ') and '\n' not in str(caught.value)
