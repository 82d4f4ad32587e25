"""One picture of what the model sees and says now: frames, task, reward curve, reason and events."""

from __future__ import annotations

import functools
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Sequence

from densereward_ros.report.timeline import CURVE, FAILURE, GRID, INK, MUTED, SHADE, SUCCESS, Moment, Reward

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image, ImageDraw, ImageFont

WIDTH = 960
MARGIN, GAP = 16, 12
CELL = (WIDTH - 2 * MARGIN - 2 * GAP) // 3, 228  # of one frame, pixels
WORDS_WIDTH = 200  # of the reward in words, left of the curve
CURVE_HEIGHT = 150
SPAN_S = 20.0  # of the curve
BREAK_S = 1.5  # a longer silence interrupts it
NEWS = 3  # events that are told in words
FONTS = ('DejaVuSans.ttf', 'DejaVuSans-Bold.ttf')


@dataclass(frozen=True)
class Panel:
    """What one camera shows. Times are seconds on any one clock, ascending; the last reward is the newest.

    frames: uint8 RGB images, oldest first, and ages: how many seconds before the newest each was taken.
    The curve breaks at a silence of more than `gap` seconds, and where the rewards' task changes.
    """

    camera: str
    frames: Sequence[np.ndarray]
    ages: Sequence[float]
    rewards: Sequence[Reward]
    events: Sequence[Moment]
    gap: float = BREAK_S


def draw_overlay(task: str, panels: Sequence[Panel]) -> Image.Image:
    """The picture, RGB and 960 pixels wide: the task, and below it one panel a camera."""
    from PIL import Image, ImageDraw

    measure = ImageDraw.Draw(Image.new('RGB', (1, 1)))
    title = _lines(measure, task, _font(24, bold=True), WIDTH - 2 * MARGIN, 2)
    head = 12 + 32 * len(title)
    tall = 26 + CELL[1] + GAP + CURVE_HEIGHT + 24 + 26
    picture = Image.new('RGB', (WIDTH, head + tall * len(panels)), 'white')
    draw = ImageDraw.Draw(picture)
    for row, line in enumerate(title):
        _text(draw, (MARGIN, 8 + 32 * row), line, _font(24, bold=True), INK)
    for row, panel in enumerate(panels):
        _draw_panel(picture, draw, panel, head + tall * row)
    return picture


def jpeg(picture: Image.Image) -> bytes:
    """The picture as a JPEG file."""
    file = io.BytesIO()
    picture.save(file, 'JPEG', quality=85)
    return file.getvalue()


def _draw_panel(picture: Image.Image, draw: ImageDraw.ImageDraw, panel: Panel, top: int) -> None:
    newest = panel.rewards[-1]
    name, = _lines(draw, panel.camera, _font(14), WIDTH - 2 * MARGIN, 1)
    _text(draw, (MARGIN, top + 2), name, _font(14), MUTED)
    top += 26
    for slot, (frame, age) in enumerate(zip(panel.frames, panel.ages)):
        _draw_frame(picture, draw, frame, age, MARGIN + slot * (CELL[0] + GAP), top)
    top += CELL[1] + GAP
    colour = FAILURE if newest.reason.is_failure else SUCCESS if newest.reason else CURVE
    draw.rectangle((MARGIN, top, MARGIN + WORDS_WIDTH - 1, top + CURVE_HEIGHT - 1), fill=SHADE)
    draw.rectangle((MARGIN, top, MARGIN + 7, top + CURVE_HEIGHT - 1), fill=colour)
    number = f'{newest.value:.3f}'
    size = 50 if len(number) <= 5 else 32  # a reward that is not bounded may be long
    _text(draw, (MARGIN + 24, top + 64 - size), number, _font(size, bold=True), INK)
    if newest.reason:  # a model without words says none
        _text(draw, (MARGIN + 24, top + 88), newest.reason.word, _font(28, bold=True), colour)
    _draw_curve(picture, draw, panel, MARGIN + WORDS_WIDTH + 44, top)
    top += CURVE_HEIGHT + 24
    said = [
        f'{moment.text}, {newest.seconds - moment.seconds:.1f} s ago'
        for moment in reversed(panel.events) if newest.seconds - moment.seconds <= SPAN_S]
    if said:
        line, = _lines(draw, '  ·  '.join(said[:NEWS]), _font(16, bold=True), WIDTH - 2 * MARGIN, 1)
        _text(draw, (MARGIN, top - 2), line, _font(16, bold=True), FAILURE)
    else:
        _text(draw, (MARGIN, top - 2), f'no failure event in the last {SPAN_S:.0f} s', _font(16), MUTED)


def _draw_frame(
    picture: Image.Image, draw: ImageDraw.ImageDraw, frame: np.ndarray, age: float, left: int, top: int
) -> None:
    from PIL import Image

    width, height = CELL
    draw.rectangle((left, top, left + width - 1, top + height - 1), fill=GRID)
    image = Image.fromarray(frame)
    if image.width > 4 * width:
        image = image.reduce(image.width // (2 * width))  # cheaper than resampling every pixel
    scale = min(width / image.width, height / image.height)
    image = image.resize((max(1, round(scale * image.width)), max(1, round(scale * image.height))))
    picture.paste(image, (left + (width - image.width) // 2, top + (height - image.height) // 2))
    words = f'-{age:.2f} s' if age else 'newest'
    room = round(draw.textlength(words, font=_font(14))) + 12
    draw.rectangle((left, top + height - 24, left + room, top + height - 1), fill=INK)
    _text(draw, (left + 6, top + height - 21), words, _font(14), 'white')


def _draw_curve(
    picture: Image.Image, draw: ImageDraw.ImageDraw, panel: Panel, left: int, top: int
) -> None:
    """The rewards of the last seconds, drawn at twice the size so that its lines come out smooth."""
    from PIL import Image, ImageDraw

    width, height = WIDTH - MARGIN - left, CURVE_HEIGHT
    now = panel.rewards[-1].seconds
    shown = [reward for reward in panel.rewards if now - reward.seconds <= SPAN_S]
    values = [reward.value for reward in shown]
    low, high = (0.0, 1.0) if min(values) >= 0 and max(values) <= 1 else (min(values), max(values))
    room = high - low or 1.0

    def place(seconds: float, value: float) -> tuple[float, float]:
        x = 2 * (width - 8) * (1 - (now - seconds) / SPAN_S)
        return x, 12 + (2 * height - 24) * (1 - (value - low) / room)

    large = Image.new('RGB', (2 * width, 2 * height), 'white')
    pen = ImageDraw.Draw(large)
    for value in (low, low + room / 2, low + room):
        pen.line([place(now - SPAN_S, value), (2 * width, place(now, value)[1])], fill=GRID, width=2)
    for moment in panel.events:
        if now - moment.seconds <= SPAN_S:
            x = place(moment.seconds, low)[0]
            pen.line([(x, 0), (x, 2 * height)], fill=FAILURE, width=3)
    for one, other in zip(shown, shown[1:]):
        if other.seconds - one.seconds <= panel.gap and one.task == other.task:
            pen.line([place(one.seconds, one.value), place(other.seconds, other.value)], fill=CURVE, width=5)
    for reward in shown:
        if reward.reason.is_failure or reward is shown[-1]:
            x, y = place(reward.seconds, reward.value)
            radius = 9 if reward is shown[-1] else 6
            fill = FAILURE if reward.reason.is_failure else CURVE
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
    picture.paste(large.reduce(2), (left, top))
    for value in (low, low + room):
        words = f'{value:.3g}'
        y = top + place(now, value)[1] / 2
        _text(draw, (left - 8 - draw.textlength(words, font=_font(14)), y - 8), words, _font(14), MUTED)
    for seconds in (SPAN_S, SPAN_S / 2, 0.0):
        words = f'-{seconds:.0f} s' if seconds else 'now'
        x = left + place(now - seconds, low)[0] / 2
        half = draw.textlength(words, font=_font(14)) / 2
        x = min(max(x - half, left), WIDTH - MARGIN - 2 * half)
        _text(draw, (x, top + height + 1), words, _font(14), MUTED)


@functools.cache
def _font(size: int, bold: bool = False) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    """The best font there is: DejaVu knows most scripts, Pillow's own is only Latin."""
    from PIL import ImageFont

    try:
        return ImageFont.truetype(FONTS[bold], size)
    except OSError:
        pass
    try:
        return ImageFont.load_default(size)
    except TypeError:  # before Pillow 10.1
        return ImageFont.load_default()


def _text(draw: ImageDraw.ImageDraw, place: tuple[float, float], text: str, font, colour: str) -> None:
    draw.text(place, _drawable(text, font), font=font, fill=colour)


def _drawable(text: str, font) -> str:
    """The text as this font can draw it: Pillow's old bitmap font raises for anything beyond Latin-1."""
    return text if hasattr(font, 'path') else text.encode('latin-1', 'replace').decode('latin-1')


def _lines(draw: ImageDraw.ImageDraw, text: str, font, room: int, most: int) -> list[str]:
    """The text in at most so many lines of `room` pixels, broken at spaces, and cut where it is too long."""
    def fits(line: str) -> bool:
        return draw.textlength(_drawable(line, font), font=font) <= room

    lines, line = [], ''
    words = text.split()
    while words and len(lines) < most:
        longer = f'{line} {words[0]}'.strip()
        if fits(longer) or not line:
            line = longer
            words.pop(0)
        if not words or not fits(f'{line} {words[0]}'):
            lines.append(line)
            line = ''
    lines = lines or ['']
    if words:
        lines[-1] += ' ...'
    for row, line in enumerate(lines):  # words without a space to break at, or the dots themselves
        while not fits(line):
            line = f'{line.removesuffix("...").rstrip()[:-1]}...'
        lines[row] = line
    return lines
