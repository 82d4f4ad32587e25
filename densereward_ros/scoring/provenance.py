"""Where numbers come from: which files a model is made of."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from densereward_ros.models.base import ModelOptions
from densereward_ros.models.checkpoint import TABLETOP, tabletop_folder

_CHUNK = 2**24


def model_provenance(options: ModelOptions) -> dict[str, Any]:
    """The commit of a model from the hub, or the SHA-256 of each file of a local one; {} for any other.

    A model on a server is another, whatever its name. It is to be asked once the model is there. Raises
    ModelError, OSError.
    """
    if options.engine == 'server':
        return {}
    folder = tabletop_folder() if options.model == TABLETOP else Path(options.model).expanduser()
    if folder.is_dir():
        return {'model_files': file_hashes(folder)}
    if options.model.count('/') != 1:
        return {}
    from densereward_ros.models.download import cached_folder

    snapshot = cached_folder(options.model, options.revision)
    return {'model_revision': snapshot.name} if snapshot else {}


def file_hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a checkpoint. Raises OSError."""
    hashes = {}
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        digest = hashlib.sha256()
        with path.open('rb') as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        hashes[path.name] = digest.hexdigest()
    return hashes
