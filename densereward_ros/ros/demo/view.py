"""The demo in the terminal: redrawn in place on a screen, plain lines elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TextIO

from densereward_ros.report.timeline import Reward
from densereward_ros.ros.demo.record import DemoRecord, percentiles
from densereward_ros.types import Reason

BAR = 40
TREND_S = 24.0
NEWS_LINES = 8
SILENCE_S = 5.0  # longer than this without a reward is worth saying
COLOURS = {
    'failure': '31', 'recovery': '33', 'success': '32', 'problem': '35', 'reward': '34',
    'dim': '2', 'bold': '1',
}


def make_view(
    record: DemoRecord, title: str, duration: float, out: TextIO = sys.stdout
) -> ScreenView | LineView:
    """The view that suits the output: a screen, or anything else."""
    capable = out.isatty() and os.environ.get('TERM', 'dumb') != 'dumb'
    return (ScreenView if capable else LineView)(record, title, duration, out)


def bar(value: float, width: int, unicode: bool) -> str:
    """A bar of exactly `width` characters for a value in [0, 1]."""
    full, empty = ('█', '░') if unicode else ('#', '.')
    filled = round(max(0.0, min(1.0, value)) * width)
    return full * filled + empty * (width - filled)


def silent_for(record: DemoRecord) -> str:
    """How long there was no reward, in words; '' for a time not worth saying."""
    silence = record.now() - record.rewards[-1].seconds
    return f'no reward for {silence:.1f} s' if silence > SILENCE_S else ''


class LineView:
    """One line a second, and one for each thing that happens; no escape codes."""

    def __init__(self, record: DemoRecord, title: str, duration: float, out: TextIO) -> None:
        self._record, self._out = record, out
        self._unicode = 'utf' in (getattr(out, 'encoding', '') or '').lower()
        self._seen = 0
        self._next = 0.0
        self._newest: Reward | None = None
        self._said = ''
        self._print(title)

    def update(self, status: str) -> None:
        """Print what is new. status: what the start-up is doing, before the first reward."""
        for seconds, _, text in self._record.news[self._seen:]:
            self._print(f'{seconds:6.1f} s  * {text}')
        self._seen = len(self._record.news)
        if not self._record.rewards:
            if status != self._said:
                self._said = status
                self._print(f'   start  {status}')
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + 1.0
            newest = self._record.rewards[-1]
            fresh = newest is not self._newest
            self._newest = newest
            if fresh:
                self._print(
                    f'{newest.seconds:6.1f} s  {newest.value:5.3f} {bar(newest.value, 20, self._unicode)} '
                    f'{newest.reason.word:<9} {1000 * self._record.reply_s[-1]:5.0f} ms  {newest.task}')
            elif silence := silent_for(self._record):
                self._print(f'{self._record.now():6.1f} s  {silence}')

    def close(self) -> None:
        """Print what is left."""
        self._next = float('inf')
        self.update(self._said)

    def _print(self, line: str) -> None:
        encoding = getattr(self._out, 'encoding', None) or 'utf-8'
        print(line.encode(encoding, 'replace').decode(encoding), file=self._out, flush=True)


class ScreenView:
    """A block of lines at the bottom of the terminal that is redrawn several times a second."""

    def __init__(self, record: DemoRecord, title: str, duration: float, out: TextIO) -> None:
        self._record, self._title, self._duration, self._out = record, title, duration, out
        self._unicode = 'utf' in (out.encoding or '').lower()
        self._colour = 'NO_COLOR' not in os.environ
        self._height = 0
        self._next = 0.0
        out.write('\x1b[?25l')

    def update(self, status: str) -> None:
        """Draw the block again, at most five times a second."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.2
            self._draw(status)

    def close(self) -> None:
        """Draw once more, and give the cursor back."""
        self._draw('')
        self._out.write('\x1b[?25h')
        self._out.flush()

    def _draw(self, status: str) -> None:
        size = shutil.get_terminal_size()
        lines = self._lines(status)[:max(1, size.lines - 1)]
        up = f'\x1b[{self._height}A' if self._height else ''
        # Lines that wrap would make the block higher than it was counted to be.
        rows = [self._paint(parts, size.columns - 1) for parts in lines]
        self._out.write(up + ''.join(f'\r\x1b[2K{row}\n' for row in rows) + '\x1b[J')
        self._out.flush()
        self._height = len(rows)

    def _lines(self, status: str) -> list[list[tuple[str, str]]]:
        """The block: lines of (text, colour) parts."""
        record = self._record
        clock = f'{record.now():.1f} s' + (f' of {self._duration:.0f} s' if self._duration else '')
        lines = [[(self._title, 'bold'), (f'   {clock}', 'dim')]]
        if not record.rewards:
            return [*lines, [(status, 'dim')]]
        newest = record.rewards[-1]
        reply, p95 = percentiles(record.reply_s)
        kind = 'failure' if newest.reason.is_failure else 'success'
        lines += [
            [('task     ', 'dim'), (newest.task, '')],
            [('reward   ', 'dim'), (bar(newest.value, BAR, self._unicode), kind),
             (f' {newest.value:.3f}  ', 'bold'), (newest.reason.word, kind)],
            [('trend    ', 'dim'), *self._trend()],
            [('reply    ', 'dim'), (f'{1000 * record.reply_s[-1]:.0f} ms', ''),
             (f'   median {1000 * reply:.0f}, p95 {1000 * p95:.0f}', 'dim'),
             (f'   {record.rate():.1f} rewards a second   ', 'dim'),
             (silent_for(record), 'problem')],
            [],
        ]
        for seconds, kind, text in record.news[-NEWS_LINES:]:
            lines.append([(f'{seconds:6.1f} s  ', 'dim'), (text, kind)])
        return lines

    def _trend(self) -> list[tuple[str, str]]:
        """The rewards of the last seconds, one character each."""
        steps = '▁▂▃▄▅▆▇█' if self._unicode else '_.-=+*%#'
        now = self._record.now()
        cells: list[tuple[str, str]] = []
        for cell in range(BAR):
            start = now - TREND_S + cell * TREND_S / BAR
            here = [reward for reward in self._record.rewards[-300:]
                    if start <= reward.seconds < start + TREND_S / BAR]
            if not here:
                cells.append((' ', ''))
                continue
            worst: Reason = max(reward.reason for reward in here)
            level = round(max(0.0, min(1.0, here[-1].value)) * (len(steps) - 1))
            cells.append((steps[level], 'failure' if worst.is_failure else 'reward'))
        return cells

    def _paint(self, parts: list[tuple[str, str]], room: int) -> str:
        painted, encoding = '', self._out.encoding or 'utf-8'
        for text, colour in parts:
            text = text.encode(encoding, 'replace').decode(encoding)[:room]
            room -= len(text)
            plain = not colour or not self._colour
            painted += text if plain else f'\x1b[{COLOURS[colour]}m{text}\x1b[0m'
        return painted
