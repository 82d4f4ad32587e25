"""The words of the demo world: its colours, and how a task is put."""

from __future__ import annotations

from dataclasses import dataclass

COLOURS = ('red', 'green', 'blue', 'yellow')
PHRASINGS = (
    'put the {block} block on the {plate} plate',
    'place the {block} block on the {plate} plate',
    'pick up the {block} block and put it on the {plate} plate',
)


@dataclass(frozen=True)
class Task:
    """Which block goes on which plate, by colour."""

    block: str
    plate: str

    def text(self, phrasing: int = 0) -> str:
        """The task as a person would say it; `phrasing` chooses one of PHRASINGS."""
        return PHRASINGS[phrasing].format(block=self.block, plate=self.plate)
