"""Pictures of the demo table: drawn three times as large, then scaled down, so that edges are smooth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Sequence

import numpy as np
from PIL import Image, ImageDraw

from densereward_ros.tabletop.world import (
    BLOCK,
    FINGER,
    FINGER_LENGTH,
    PLATE_HEIGHT,
    PLATE_WIDTH,
    Snapshot,
    Thing,
)

WIDTH, HEIGHT = 128, 96
FLOOR = 79.0  # the row on which things stand

Colour = tuple[int, int, int]

# Shades by colour name: those that training shows, and those that it never does.
SHADES: dict[str, tuple[Colour, ...]] = {
    'red': ((200, 40, 40), (178, 34, 56), (222, 68, 58), (160, 30, 28), (214, 46, 78)),
    'green': ((52, 150, 70), (34, 122, 60), (98, 176, 72), (66, 164, 112), (44, 104, 50)),
    'blue': ((44, 90, 190), (32, 62, 150), (74, 132, 214), (50, 112, 160), (72, 80, 204)),
    'yellow': ((236, 196, 50), (220, 176, 40), (246, 216, 96), (206, 168, 24), (242, 208, 18)),
}
HELD_OUT_SHADES: dict[str, tuple[Colour, ...]] = {
    'red': ((236, 44, 36), (150, 44, 52)),
    'green': ((76, 142, 44), (40, 172, 88)),
    'blue': ((36, 74, 172), (58, 106, 232)),
    'yellow': ((252, 196, 72), (228, 190, 84)),
}
SHADE_JITTER = 7  # of training shades, in each channel
HELD_OUT_JITTER = 3

_WALLS: tuple[Colour, ...] = (
    (222, 226, 228),
    (214, 220, 214),
    (230, 222, 214),
    (204, 212, 222),
    (226, 226, 218),
)
_TABLES: tuple[Colour, ...] = (
    (176, 138, 104),
    (150, 112, 84),
    (198, 170, 140),
    (206, 198, 186),
    (128, 98, 78),
)
_ARMS: tuple[Colour, ...] = ((238, 238, 236), (196, 202, 208), (120, 128, 138), (226, 218, 208))
_DARK: Colour = (62, 66, 74)
_SHOULDER = (64.0, 3.0)
_LINK = 45.0
_PALM = 4.0


@dataclass(frozen=True)
class Look:
    """What varies from episode to episode and means nothing for the task.

    gain: brightness of each channel. noise: standard deviation of the camera's noise in grey levels.
    light: where the light comes from, 0 left to 1 right.
    """

    shades: dict[tuple[str, str], Colour]
    wall: Colour
    table: Colour
    arm: Colour
    gain: tuple[float, float, float]
    noise: float
    light: float

    @staticmethod
    def random(rng: np.random.Generator, held_out: bool = False) -> Look:
        """A random look; with `held_out`, blocks and plates have shades that training never shows."""
        table, jitter = (HELD_OUT_SHADES, HELD_OUT_JITTER) if held_out else (SHADES, SHADE_JITTER)
        shades = {
            (kind, name): _vary(rng, choices[rng.integers(len(choices))], jitter)
            for kind in ('block', 'plate')
            for name, choices in table.items()
        }
        brightness, warmth = rng.uniform(0.90, 1.06), rng.uniform(-0.03, 0.03)
        return Look(
            shades=shades,
            wall=_vary(rng, _WALLS[rng.integers(len(_WALLS))], 8),
            table=_vary(rng, _TABLES[rng.integers(len(_TABLES))], 8),
            arm=_vary(rng, _ARMS[rng.integers(len(_ARMS))], 6),
            gain=(brightness * (1 + warmth), brightness, brightness * (1 - warmth)),
            noise=float(rng.uniform(0.5, 2.0)),
            light=float(rng.uniform(0.1, 0.9)),
        )


class Painter:
    """Paints one scene; what never moves is painted once, when it is first needed.

    Its noise follows from the generator given.
    """

    def __init__(self, look: Look, rng: np.random.Generator, scale: int = 1) -> None:
        self._look = look
        self._rng = rng
        self._scale = scale
        self._zoom = 3 * scale

    def paint(self, view: Snapshot, rng: np.random.Generator | None = None) -> np.ndarray:
        """The camera picture, uint8 of shape (96 * scale, 128 * scale, 3), RGB.

        rng: gives the noise of this picture in place of the painter's own generator.
        """
        canvas = self._background.copy()
        draw = ImageDraw.Draw(canvas, 'RGBA')
        self._shadows(draw, view)
        for thing in view.things:
            if thing.kind == 'plate':
                self._plate(draw, thing)
        self._arm(draw, view)
        for thing in view.things:
            if thing.kind == 'block':
                self._block(draw, thing)
        self._fingers(draw, view)
        small = np.asarray(canvas.reduce(3), dtype=np.float32)
        noise = (rng or self._rng).standard_normal(small.shape[:2] + (1,), dtype=np.float32)
        lit = small * np.asarray(self._look.gain, np.float32) + self._look.noise * noise
        return np.clip(lit + 0.5, 0, 255).astype(np.uint8)

    @cached_property
    def _background(self) -> Image.Image:
        """A softly lit wall and a wooden table with grain."""
        zoom, look = self._zoom, self._look
        rows, columns = np.mgrid[0 : HEIGHT * zoom, 0 : WIDTH * zoom].astype(np.float32) / zoom
        glow = np.exp(-((columns / WIDTH - look.light) ** 2) / 0.25 - ((rows / HEIGHT - 0.2) ** 2) / 0.5)
        picture = np.asarray(look.wall, np.float32) * (0.84 + 0.18 * glow)[..., None]
        edge, front = FLOOR - 6.0, FLOOR + 5.0
        waves = np.random.default_rng(int(look.light * 1e6)).uniform(0, 2 * math.pi, 3)
        grain = sum(
            np.sin(rows * pitch + 1.5 * np.sin(columns * bend + wave) + wave)
            for pitch, bend, wave in zip((1.9, 3.1, 5.3), (0.06, 0.09, 0.13), waves)
        )
        wood = np.asarray(look.table, np.float32) * (1.0 + 0.02 * grain)[..., None]
        top = wood * (1.02 + 0.10 * glow)[..., None]
        side = wood * np.clip(0.80 - 0.012 * (rows - front), 0.5, 0.8)[..., None]
        picture = np.where((rows >= edge)[..., None], top, picture)
        picture = np.where((rows >= front)[..., None], side, picture)
        canvas = Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))
        draw = ImageDraw.Draw(canvas, 'RGBA')
        self._box(draw, 0, front, WIDTH, front + 0.8, (255, 255, 255, 50))
        self._box(draw, 0, edge - 1.2, WIDTH, edge, (0, 0, 0, 28))
        self._box(draw, _SHOULDER[0] - 9, -2, _SHOULDER[0] + 9, 3, _DARK)
        return canvas

    def _shadows(self, draw: ImageDraw.ImageDraw, view: Snapshot) -> None:
        """Soft ellipses below everything, fainter and wider the higher it is."""
        lean = (0.5 - self._look.light) * 6.0
        bodies = [(thing.x, thing.half + 1.0, thing.z) for thing in view.things] + [
            (view.x, view.gap + 3.0, view.z)
        ]
        for x, half, z in bodies:
            for grow in (2.0, 1.0, 0.0):
                wide = half + grow + 0.06 * z
                y, x_shadow = FLOOR + 0.8, x + lean * (0.4 + 0.02 * z)
                self._ellipse(
                    draw, x_shadow, y, wide, 1.4 + 0.6 * grow, (20, 16, 12, int(30 / (1 + 0.05 * z)))
                )

    def _plate(self, draw: ImageDraw.ImageDraw, plate: Thing) -> None:
        """A shallow dish from slightly above: foot, rim and hollow."""
        colour = self._look.shades['plate', plate.colour]
        x, half, rim = plate.x, PLATE_WIDTH / 2, FLOOR - PLATE_HEIGHT
        self._polygon(
            draw,
            [(x - half, rim), (x + half, rim), (x + half * 0.6, FLOOR + 0.6), (x - half * 0.6, FLOOR + 0.6)],
            _tone(colour, 0.72),
        )
        self._ellipse(draw, x, rim, half, 1.9, _tone(colour, 1.12))
        self._ellipse(draw, x, rim + 0.2, half - 1.8, 1.1, _tone(colour, 0.86))

    def _block(self, draw: ImageDraw.ImageDraw, block: Thing) -> None:
        """A painted wooden cube with a lit top edge."""
        colour = self._look.shades['block', block.colour]
        left, right = block.x - BLOCK / 2, block.x + BLOCK / 2
        bottom = FLOOR - block.z
        top = bottom - BLOCK
        self._box(draw, left, top, right, bottom, _tone(colour, 0.70), radius=1.0)
        self._box(draw, left + 0.6, top + 0.4, right - 0.6, bottom - 0.6, colour, radius=0.9)
        self._box(draw, left + 0.8, top + 0.4, right - 0.8, top + 2.2, _tone(colour, 1.22), radius=0.8)
        dim = right - 2.0 if self._look.light < 0.5 else left + 0.6
        self._box(draw, dim, top + 2.2, dim + 1.4, bottom - 0.7, _tone(colour, 0.85))

    def _arm(self, draw: ImageDraw.ImageDraw, view: Snapshot) -> None:
        """Two links from the ceiling to the wrist, the elbow always on the left."""
        wrist = view.x, FLOOR - view.z - FINGER_LENGTH - _PALM
        dx, dy = wrist[0] - _SHOULDER[0], wrist[1] - _SHOULDER[1]
        reach = math.hypot(dx, dy)
        bulge = math.sqrt(max(0.0, _LINK**2 - reach**2 / 4))
        elbow = (
            (_SHOULDER[0] + wrist[0]) / 2 - bulge * dy / reach,
            (_SHOULDER[1] + wrist[1]) / 2 + bulge * dx / reach,
        )
        arm = self._look.arm
        for (a, b), width in zip(((_SHOULDER, elbow), (elbow, wrist)), (6.4, 5.0)):
            self._line(draw, a, b, width, _tone(arm, 0.62))
            self._line(draw, a, b, width - 1.4, arm)
            self._line(
                draw, (a[0] - 0.5, a[1] - 0.6), (b[0] - 0.5, b[1] - 0.6), width * 0.25, _tone(arm, 1.12)
            )
        for (x, y), radius in ((_SHOULDER, 4.6), (elbow, 4.0), (wrist, 3.2)):
            self._ellipse(draw, x, y, radius, radius, _DARK)
            self._ellipse(draw, x, y, radius * 0.5, radius * 0.5, _tone(arm, 0.9))

    def _fingers(self, draw: ImageDraw.ImageDraw, view: Snapshot) -> None:
        """The palm and two fingers that meet their load from both sides."""
        tip = FLOOR - view.z
        root = tip - FINGER_LENGTH
        palm = max(view.gap, 3.0) + FINGER
        self._box(draw, view.x - palm, root - _PALM + 1.0, view.x + palm, root + 1.0, _DARK, radius=1.0)
        self._box(
            draw,
            view.x - palm + 0.8,
            root - _PALM + 1.6,
            view.x + palm - 0.8,
            root - _PALM + 2.6,
            (96, 102, 112),
        )
        for side in (-1, 1):
            inner, outer = view.x + side * view.gap, view.x + side * (view.gap + FINGER)
            left, right = min(inner, outer), max(inner, outer)
            self._box(draw, left, root, right, tip, _DARK, radius=0.7)
            self._box(draw, inner - 0.35, tip - 4.5, inner + 0.35, tip - 0.5, (148, 154, 162))

    # Drawing in picture coordinates: the canvas is `zoom` times as large.

    def _box(self, draw, left, top, right, bottom, colour, radius=0.0) -> None:
        box = [v * self._zoom for v in (left, top, right, bottom)]
        if radius:
            draw.rounded_rectangle(box, radius * self._zoom, fill=colour)
        else:
            draw.rectangle(box, fill=colour)

    def _ellipse(self, draw, x, y, wide, high, colour) -> None:
        draw.ellipse([v * self._zoom for v in (x - wide, y - high, x + wide, y + high)], fill=colour)

    def _polygon(self, draw, points: Sequence[tuple[float, float]], colour) -> None:
        draw.polygon([(x * self._zoom, y * self._zoom) for x, y in points], fill=colour)

    def _line(self, draw, start, end, width, colour) -> None:
        zoom = self._zoom
        draw.line(
            [start[0] * zoom, start[1] * zoom, end[0] * zoom, end[1] * zoom], colour, round(width * zoom)
        )


def _tone(colour: Colour, factor: float) -> Colour:
    """A lighter or darker version of a colour."""
    return tuple(min(255, round(channel * factor)) for channel in colour)


def _vary(rng: np.random.Generator, colour: Colour, amount: int) -> Colour:
    return tuple(int(v) for v in np.clip(np.asarray(colour) + rng.integers(-amount, amount + 1, 3), 0, 255))
