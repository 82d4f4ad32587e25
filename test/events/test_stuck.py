"""When a model that repeats itself is suspicious, and when it only watches a scene that stands still."""

from __future__ import annotations

import numpy as np
import pytest

from densereward_ros.events.stuck import LEAST_VERDICTS, StuckWatch
from densereward_ros.types import Frame, Reason, Verdict, Window

SECOND = 1_000_000_000
SAME = Verdict(0.317, Reason.CORRECT)


def watch(pictures, verdicts, period_s: float = 1.0) -> StuckWatch:
    """A watch that saw these pictures with these verdicts, one a period."""
    watch = StuckWatch()
    for i, (picture, verdict) in enumerate(zip(pictures, verdicts)):
        now_ns = round(i * period_s * SECOND)
        watch.update(Window('/camera', 'task', (Frame(0, now_ns, lambda picture=picture: picture),)), verdict)
    return watch


def moving(count: int, height: int = 96, width: int = 128) -> list[np.ndarray]:
    """A small block that moves over noise."""
    random = np.random.default_rng(0)
    pictures = []
    for i in range(count):
        picture = random.normal(120, 6, (height, width, 3)).clip(0, 255).astype(np.uint8)
        left = i * 5 % (width - 12)
        picture[height // 2:height // 2 + height // 10, left:left + width // 10] = 200
        pictures.append(picture)
    return pictures


def still(count: int) -> list[np.ndarray]:
    """Noise alone, as of a camera before a robot that waits."""
    random = np.random.default_rng(1)
    return [random.normal(120, 8, (96, 128, 3)).clip(0, 255).astype(np.uint8) for _ in range(count)]


@pytest.mark.parametrize('size', [(96, 128), (480, 640), (30, 7)])
def test_the_same_answer_to_a_moving_scene_is_suspicious(size):
    """Fifty verdicts that ignore fifty pictures, whatever the camera's size."""
    pictures = moving(LEAST_VERDICTS + 1, *size)
    assert watch(pictures[:-1], [SAME] * LEAST_VERDICTS).stuck_s == 0.0
    assert watch(pictures, [SAME] * (LEAST_VERDICTS + 1)).stuck_s == 50.0


def test_the_same_answer_to_a_scene_that_stands_still_is_right():
    """A robot that waits, or has finished, for five minutes."""
    assert watch(still(300), [SAME] * 300).repeats == 0


def test_another_last_digit_starts_again():
    """A model that looks gives another number now and then."""
    verdicts = [SAME] * 40 + [Verdict(0.318, Reason.CORRECT)] + [SAME] * 40
    assert watch(moving(81), verdicts).stuck_s == 0.0
    verdicts = [SAME] * 40 + [Verdict(0.317, Reason.SMOOTH)] + [SAME] * 40
    assert watch(moving(81), verdicts).stuck_s == 0.0


def test_probabilities_do_not_count():
    """They move in the tenth digit with any noise, whatever the model makes of the picture."""
    verdicts = [
        Verdict(0.317, Reason.CORRECT, reason_probabilities=(1 - i / 1e6, i / 1e6, 0, 0, 0, 0))
        for i in range(LEAST_VERDICTS + 1)]
    assert watch(moving(LEAST_VERDICTS + 1), verdicts).stuck_s > 0


def test_many_verdicts_in_a_short_time_are_not_enough():
    """At 20 Hz half a minute must pass all the same."""
    assert watch(moving(599), [SAME] * 599, period_s=0.05).stuck_s == 0.0
    assert watch(moving(601), [SAME] * 601, period_s=0.05).stuck_s == 30.0


def test_a_new_episode_starts_again():
    """reset() forgets the answer."""
    stuck = watch(moving(60), [SAME] * 60)
    assert stuck.stuck_s > 0
    stuck.reset()
    assert stuck.stuck_s == 0.0
