"""The small files of a served checkpoint: the system prompt and the picture sizes; no weights, no torch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from densereward_ros.models import checkpoint
from densereward_ros.models.base import ModelError, first_line
from densereward_ros.models.card_size import MAX_PIXELS
from densereward_ros.models.loading import check_system_prompt
from densereward_ros.models.prompt import SYSTEM_PROMPT_FILE, read_system_prompt

if TYPE_CHECKING:
    from densereward_ros.models.base import ModelOptions

_SIZES_FILE = 'preprocessor_config.json'


@dataclass(frozen=True)
class ServedFiles:
    """system_prompt: as it lies beside the weights. least, most: pixels of a picture for the processor."""

    system_prompt: str
    least: int = 0
    most: int = MAX_PIXELS

    def budget(self, max_pixels: int) -> int | None:
        """The pixels of a frame at most, by the same rule as for a local model; None for 0."""
        return max(self.least, min(max_pixels, self.most)) if max_pixels else None


def read(options: ModelOptions, progress: Callable[[str], None]) -> ServedFiles:
    """The files of options.server_checkpoint, or, where that is empty, of options.model.

    A folder, 'tabletop', or a hub id, of which these two files are downloaded unless the cache has them.
    Raises ModelError; a system prompt that is not the released one is a warning.
    """
    source = options.server_checkpoint or options.model
    if source == checkpoint.TABLETOP:
        return _of_folder(checkpoint.tabletop_folder())
    folder = Path(source).expanduser()
    if not folder.is_dir():
        folder = _from_hub(source, options.revision)
    files = _of_folder(folder)
    check_system_prompt(source, files.system_prompt, progress)
    return files


def _of_folder(folder: Path) -> ServedFiles:
    prompt = read_system_prompt(folder)
    try:
        size = json.loads((folder / _SIZES_FILE).read_text(encoding='utf-8'))['size']
        return ServedFiles(prompt, int(size['shortest_edge']), int(size['longest_edge']))
    except (OSError, ValueError, KeyError, TypeError):
        return ServedFiles(prompt)  # only max_pixels asks for them


def _from_hub(source: str, revision: str) -> Path:
    if source.count('/') != 1 or source.startswith(('/', './', '../', '~')):
        raise _not_found(source, 'no such folder, and no hub id')
    try:
        import huggingface_hub
    except ImportError:
        raise _not_found(source, 'huggingface_hub is not installed') from None
    try:
        prompt = huggingface_hub.hf_hub_download(source, SYSTEM_PROMPT_FILE, revision=revision)
        huggingface_hub.hf_hub_download(source, _SIZES_FILE, revision=revision)
    except Exception as error:  # the hub client's errors have no common base
        raise _not_found(source, first_line(error)) from error
    return Path(prompt).parent


def _not_found(source: str, why: str) -> ModelError:
    return ModelError(
        f'no system prompt for {source} ({why}): set server_checkpoint to the folder or hub id of the '
        f"checkpoint that the server runs, or to '{checkpoint.TABLETOP}'"
    )
