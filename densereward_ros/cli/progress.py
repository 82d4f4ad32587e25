"""How far a run has come, in the terminal."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Sequence

from densereward_ros.text import one_line

if TYPE_CHECKING:
    from densereward_ros.recordings.episode import Episode
    from densereward_ros.scoring.journal import Recorded


class Progress:
    """A bar over the frames that wait, where there is a terminal, and a line for each episode that has ended.

    A recording that does not say how long it is counts as one of the others' average length until it ends.
    """

    def __init__(self, episodes: Sequence[Episode], waiting: Sequence[Episode]) -> None:
        """waiting: those of the episodes that are to be scored now."""
        from tqdm import tqdm

        self._count = len(episodes)
        self._ended = len(episodes) - len(waiting)
        self._lengths = {episode.name: episode.count for episode in waiting}
        self._frames = 0  # of the episodes that have ended
        self._bar = tqdm(total=self._total(), unit=' frames', dynamic_ncols=True, disable=None)

    def say(self, line: str) -> None:
        """A line above the bar."""
        self._bar.write(line)

    def at(self, frame: int) -> None:
        """This frame of the running episode is scored."""
        self._bar.update(self._frames + frame + 1 - self._bar.n)

    def ended(self, episode: Episode, recorded: Recorded) -> None:
        """All that can be scored of the episode is."""
        self._ended += 1
        length = self._lengths[episode.name]
        if length is None:
            length = recorded.frames[-1].frame + 1 if recorded.frames else 0
        self._lengths[episode.name] = length
        self._frames += length
        self._bar.total = self._total()
        self._bar.update(self._frames - self._bar.n)
        who = f'{self._ended} of {self._count}: {episode.name}'
        if recorded.failed:
            self.say(f'{who}: skipped: {one_line(recorded.failed)}')
            return
        malformed = sum(frame.reward is None for frame in recorded.frames)
        self.say(
            f'{who}: {len(recorded.frames) - malformed} verdicts'
            + (f', {malformed} malformed replies' if malformed else '')
            + (f', {recorded.undecodable} images that cannot be decoded' if recorded.undecodable else ''))

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def _total(self) -> float | None:
        known = [length for length in self._lengths.values() if length is not None]
        if not known:
            return None
        return sum(known) + statistics.fmean(known) * (len(self._lengths) - len(known))
