"""Finding a Qwen3-VL checkpoint, and checking it before anything is loaded."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from densereward_ros.models.base import ModelError
from densereward_ros.models.prompt import SYSTEM_PROMPT_FILE
from densereward_ros.share import places

TABLETOP = 'tabletop'

_MODEL_TYPE = 'qwen3_vl'
_ARCHITECTURE = 'Qwen3VLForConditionalGeneration'
_WEIGHTS = 'model.safetensors'
_INDEX = 'model.safetensors.index.json'
SCORE_WEIGHT = 'score.weight'
_MAX_HEADER = 100_000_000  # the safetensors format's own limit, in bytes


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that is complete and of the right kind, as far as its files tell.

    name: what RewardStamped.model says. parameters: number of weights. weight_bytes: their size
    on disk. score_file: name of the file that holds the weight of a score head, '' where there is none.
    """

    name: str
    folder: Path
    parameters: int
    weight_bytes: int
    score_file: str = ''


def find(model: str, revision: str, progress: Callable[[str], None]) -> Checkpoint:
    """Find a checkpoint by folder, hub id or the name 'tabletop', and check it.

    A complete copy in the local hub cache is used without asking the hub; otherwise the missing
    files are downloaded. Raises ModelError.
    """
    if model == TABLETOP:
        return check(tabletop_folder(), TABLETOP)
    folder = Path(model).expanduser()
    if folder.is_dir():
        return check(folder, model)
    if folder.is_file():
        raise ModelError(f'{model} is a file (a checkpoint is a folder with config.json and the weights)')
    if model.startswith(('/', './', '../', '~')) or model.count('/') != 1:
        raise ModelError(f"{model}: no such folder, and neither a hub id 'owner/name' nor '{TABLETOP}'")
    from densereward_ros.models import download

    name = model if revision == 'main' else f'{model}@{revision}'
    folder = download.cached_folder(model, revision)
    if folder is None or missing_files(folder):
        folder = download.download(model, revision, progress)
    return check(folder, name)


def tabletop_folder() -> Path:
    """The folder of the demo checkpoint that ships with this package. Raises ModelError."""
    candidates = places(f'models/{TABLETOP}')
    for folder in candidates:
        if (folder / 'config.json').is_file():
            return folder
    raise ModelError(
        f"the demo checkpoint '{TABLETOP}' is not there (looked in {candidates[0]} and in "
        f'share/densereward_ros of {sys.prefix} and of AMENT_PREFIX_PATH): install the package again'
    )


def check(folder: Path, name: str) -> Checkpoint:
    """Check a folder's files without loading them. Raises ModelError."""
    if not (folder / 'config.json').is_file():
        raise ModelError(f'{name} is not a checkpoint: {folder} has no config.json')
    _check_config(_read_json(folder / 'config.json'), name)
    if (folder / 'adapter_config.json').exists():
        raise ModelError(
            f'{name} holds a LoRA adapter (adapter_config.json): merge it into the weights first'
        )
    pickles = sorted(path.name for pattern in ('*.bin', '*.pt', '*.pth') for path in folder.glob(pattern))
    missing = missing_files(folder)
    if _WEIGHTS in missing and pickles:
        raise ModelError(
            f'{name} holds its weights as pickle ({pickles[0]}), which can run code when it is loaded: '
            'only safetensors are read'
        )
    if missing:
        raise ModelError(f'{name} is not complete: {", ".join(missing)} missing in {folder}')
    sizes = [_read_sizes(folder / shard) for shard in weight_files(folder)]
    return Checkpoint(
        name=name,
        folder=folder,
        parameters=sum(parameters for parameters, _ in sizes),
        weight_bytes=sum(size for _, size in sizes),
        score_file=score_file(folder),
    )


def missing_files(folder: Path) -> list[str]:
    """Names of the files that a checkpoint needs and this folder lacks. A score head needs no prompt."""
    needed = {
        'config.json': ('config.json',),
        **({} if score_file(folder) else {SYSTEM_PROMPT_FILE: (SYSTEM_PROMPT_FILE,)}),
        'tokenizer.json': ('tokenizer.json', 'vocab.json'),
        'preprocessor_config.json': ('preprocessor_config.json', 'processor_config.json'),
    }
    missing = [
        name for name, choices in needed.items() if not any((folder / choice).is_file() for choice in choices)
    ]
    if not _has_chat_template(folder):
        missing.append('chat_template.json')
    missing += [shard for shard in weight_files(folder) if not (folder / shard).is_file()]
    return missing


def weight_files(folder: Path) -> list[str]:
    """Names of the safetensors files that make up the weights, whether or not they are there."""
    weight_map = _weight_map(folder)
    return [_WEIGHTS] if weight_map is None else sorted(set(weight_map.values()))


def score_file(folder: Path) -> str:
    """Name of the safetensors file with the weight of a score head; '' for a model without one."""
    weight_map = _weight_map(folder)
    if weight_map is not None:
        return weight_map.get(SCORE_WEIGHT, '')
    single = folder / _WEIGHTS
    return _WEIGHTS if single.is_file() and SCORE_WEIGHT in _read_header(single)[0] else ''


def _weight_map(folder: Path) -> dict[str, str] | None:
    """The file of each weight, by the index; None where all are in one file, or there is no index."""
    index = folder / _INDEX
    if (folder / _WEIGHTS).is_file() or not index.is_file():
        return None
    weight_map = _read_json(index).get('weight_map')
    if not isinstance(weight_map, dict) or not weight_map:
        raise ModelError(f'{index} names no weights (a weight_map is needed)')
    for shard in map(str, weight_map.values()):
        if Path(shard).name != shard or not shard.endswith('.safetensors'):
            raise ModelError(f"{index} names '{shard}' (only .safetensors files beside it are read)")
    return weight_map


def _check_config(config: dict, name: str) -> None:
    model_type, architectures = config.get('model_type'), config.get('architectures') or []
    if model_type != _MODEL_TYPE or _ARCHITECTURE not in architectures:
        raise ModelError(
            f'{name} is not a Qwen3-VL checkpoint: its config.json says model_type {model_type!r}, '
            f'architectures {architectures!r} ({_MODEL_TYPE!r} and {_ARCHITECTURE!r} are needed)'
        )


def _has_chat_template(folder: Path) -> bool:
    if (folder / 'chat_template.json').is_file() or (folder / 'chat_template.jinja').is_file():
        return True
    tokenizer = folder / 'tokenizer_config.json'
    return tokenizer.is_file() and bool(_read_json(tokenizer).get('chat_template'))


def _read_sizes(path: Path) -> tuple[int, int]:
    """Number of parameters and bytes in a safetensors file, read from its header alone."""
    header, start = _read_header(path)
    size = path.stat().st_size
    try:
        parameters = sum(math.prod(tensor['shape']) for tensor in header.values())
        stored = max((tensor['data_offsets'][1] for tensor in header.values()), default=0)
    except (KeyError, TypeError, IndexError) as error:
        raise ModelError(f'{path} has a broken safetensors header: {error}') from error
    if size != start + stored:
        raise ModelError(f'{path} is cut short: {size} of {start + stored} bytes (fetch it again)')
    return parameters, stored


def _read_header(path: Path) -> tuple[dict, int]:
    """What a safetensors file says of each of its tensors, and where their bytes begin."""
    size = path.stat().st_size
    with path.open('rb') as file:
        start = file.read(8)
        if start == b'version ':
            raise ModelError(f"{path} is a Git LFS pointer, not the weights: run 'git lfs pull' there")
        length = int.from_bytes(start, 'little')
        if len(start) < 8 or not 2 <= length <= min(_MAX_HEADER, size - 8):
            raise ModelError(f'{path} is not a safetensors file, or is cut short ({size} bytes)')
        try:
            header = json.loads(file.read(length))
            tensors = {key: tensor for key, tensor in header.items() if key != '__metadata__'}
        except (ValueError, AttributeError) as error:
            raise ModelError(f'{path} has a broken safetensors header: {error}') from error
    return tensors, 8 + length


def _read_json(path: Path) -> dict:
    try:
        content = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError) as error:
        raise ModelError(f'cannot read {path}: {error}') from error
    if not isinstance(content, dict):
        raise ModelError(f'{path} is not a JSON object')
    return content
