"""Numbers as a person reads them: times, rewards, shares, and the marks of an axis."""

from __future__ import annotations

import math

NOTHING = '–'  # a value that there is none of


def reward_text(value: float | None) -> str:
    """Three decimals, fewer where an unbounded reward is large; a dash for none."""
    if value is None:
        return NOTHING
    if abs(value) >= 1e5:
        return f'{value:.2e}'.replace('-', '−')
    return f'{value:.{3 if abs(value) < 100 else 1}f}'.replace('-', '−')


def share_text(part: int, whole: int) -> str:
    """A percentage with one decimal; a dash where there is nothing to take a share of."""
    return f'{100 * part / whole:.1f} %' if whole else NOTHING


def duration_text(seconds: float) -> str:
    """Seconds below two minutes, minutes and seconds above."""
    if seconds < 120:
        return f'{seconds:.1f} s'
    minutes, rest = divmod(round(seconds), 60)
    return f'{minutes}:{rest:02} min'


def marks(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Round values from low to high, at most so many, each with its text; low < high."""
    def between(step: float) -> range:
        return range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)

    power = 10.0 ** math.floor(math.log10((high - low) / most))
    steps = (power * factor for factor in (1, 2, 5, 10, 20, 50, 100))
    step = next(step for step in steps if len(between(step)) <= most)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    values = [step * i for i in between(step)]
    if max(abs(low), abs(high)) >= 1e5 or step < 1e-4:
        return [(value, f'{value:.3g}'.replace('-', '−')) for value in values]
    return [(value, f'{value:.{decimals}f}'.replace('-', '−')) for value in values]
