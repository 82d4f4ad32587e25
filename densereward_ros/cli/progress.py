"""How far a run has come, in the terminal."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Sequence

from densereward_ros.text import one_line

if TYPE_CHECKING:
    from densereward_ros.recordings.episode import Episode
    from densereward_ros.scoring.journal import Recorded


class Progress:
    """A bar over the frames of all episodes, where there is a terminal, and a line for each that has ended.

    A recording that does not say how long it is counts as one of the others' average length until it ends.
    """

    def __init__(self, episodes: Sequence[Episode]) -> None:
        from tqdm import tqdm

        self._counts = {episode.name: episode.count for episode in episodes}
        self._ended = self._frames = 0
        self._bar = tqdm(total=self._total(), unit=' frames', dynamic_ncols=True, disable=None)

    def say(self, line: str) -> None:
        """A line above the bar."""
        self._bar.write(line)

    def at(self, episode: Episode, frame: int) -> None:
        """This frame of the episode is scored."""
        self._bar.update(self._frames + frame + 1 - self._bar.n)

    def known(self, episode: Episode) -> None:
        """An earlier run has scored the episode."""
        self._ended += 1

    def ended(self, episode: Episode, recorded: Recorded) -> None:
        """All that can be scored of the episode is."""
        self._ended += 1
        who = f'{self._ended} of {len(self._counts)}: {episode.name}'
        if recorded.failed:
            self.say(f'{who}: skipped: {one_line(recorded.failed)}')
        else:
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
        known = [count for count in self._counts.values() if count is not None]
        if not known:
            return None
        return sum(known) + statistics.fmean(known) * (len(self._counts) - len(known))
