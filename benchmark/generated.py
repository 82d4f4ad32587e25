"""Models of any size with random weights, made on the spot, whose replies follow a script."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from densereward_ros.models.loading import LoadedModel
from densereward_ros.tabletop.checkpoint import SYSTEM_PROMPT, write_texts


@dataclass(frozen=True)
class Shape:
    """The size of a Qwen3-VL model. max_pixels: of a frame; None for the released model's ceiling."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    key_value_heads: int
    vocabulary: int | None
    vision_hidden: int
    vision_intermediate: int
    vision_layers: int
    vision_heads: int
    max_pixels: int | None = None


# About 150 million weights. A 640x480 frame becomes 154 tokens, so that a prompt has about 600.
MIDDLE = Shape(1024, 2816, 9, 16, 8, None, 384, 1536, 8, 6, max_pixels=166_000)
# The released model's own shape.
RELEASED = Shape(2560, 9728, 36, 32, 8, 151_936, 1024, 4096, 24, 16)

_HEAD_SIZE = 128
_RELEASED_CEILING = 16_777_216


def generated_model(name: str, shape: Shape, dtype: torch.dtype, device: torch.device) -> LoadedModel:
    """A model of this shape with seeded random weights; texts and processor are the demo checkpoint's."""
    from transformers import AutoProcessor, Qwen3VLConfig, Qwen3VLForConditionalGeneration

    with tempfile.TemporaryDirectory() as folder:
        write_texts(Path(folder))
        _allow_pixels(Path(folder), shape.max_pixels or _RELEASED_CEILING)
        demo = json.loads((Path(folder) / 'config.json').read_text())
        config = Qwen3VLConfig.from_dict(_reshape(demo, shape, str(dtype).removeprefix('torch.')))
        processor = AutoProcessor.from_pretrained(folder)
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with device:
            network = Qwen3VLForConditionalGeneration(config).eval()
    finally:
        torch.set_default_dtype(before)
    vocabulary = processor.tokenizer.get_vocab()
    network.generation_config.eos_token_id = [vocabulary['<|im_end|>'], vocabulary['<|endoftext|>']]
    network.generation_config.pad_token_id = vocabulary['<|endoftext|>']
    network.generation_config.do_sample = False
    return LoadedModel(name, network, processor, SYSTEM_PROMPT.strip())


class Script:
    """Makes a model reply what the script says, however its passes are cut.

    The language model still computes everything; only its last logits are replaced. Which token
    of the reply a logit is for is read off its rotary position, the same in every procedure.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        self._reply: Sequence[int] = ()
        self._begin = 0
        self._positions: Any = None
        self._end = loaded.network.generation_config.eos_token_id[0]
        self._tokenizer = loaded.processor.tokenizer
        loaded.network.model.language_model.rotary_emb.register_forward_pre_hook(self._note)
        loaded.network.lm_head.register_forward_hook(self._say)

    def set(self, text: str, reply_position: int) -> None:
        """The next reply, and the rotary position of its first token."""
        self._reply = [*self._tokenizer(text)['input_ids'], self._end]
        self._begin = reply_position

    def _note(self, module: Any, args: Any) -> None:
        positions = args[1][0, 0]
        self._positions = positions[positions >= 0]  # without padding

    def _say(self, module: Any, args: Any, logits: torch.Tensor) -> torch.Tensor:
        count = logits.shape[-2]
        rows = logits.reshape(-1, logits.shape[-1])
        places = (self._positions[-count:] + 1 - self._begin).tolist()
        said = [self._reply[place] if 0 <= place < len(self._reply) else self._end for place in places]
        rows[torch.arange(count), torch.tensor(said)] = rows.amax(-1) + 10
        return logits


def _reshape(config: dict[str, Any], shape: Shape, dtype: str) -> dict[str, Any]:
    text, vision = config['text_config'], config['vision_config']
    for part in (config, text, vision):
        part['dtype'] = dtype
    text.update(
        hidden_size=shape.hidden, intermediate_size=shape.intermediate, num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, num_key_value_heads=shape.key_value_heads, head_dim=_HEAD_SIZE,
        vocab_size=shape.vocabulary or text['vocab_size'], rope_theta=5_000_000.0,
        rope_scaling={'rope_type': 'default', 'mrope_interleaved': True, 'mrope_section': [24, 20, 20]},
    )  # fmt: skip
    vision.update(
        depth=shape.vision_layers, hidden_size=shape.vision_hidden, num_heads=shape.vision_heads,
        intermediate_size=shape.vision_intermediate, out_hidden_size=shape.hidden,
        num_position_embeddings=2304,
        deepstack_visual_indexes=[quarter * shape.vision_layers // 4 for quarter in (1, 2, 3)],
    )  # fmt: skip
    return config


def _allow_pixels(folder: Path, ceiling: int) -> None:
    for name in ('preprocessor_config.json', 'video_preprocessor_config.json'):
        config = json.loads((folder / name).read_text())
        config['size'] = {'shortest_edge': 65_536, 'longest_edge': ceiling}  # the released model's floor
        (folder / name).write_text(json.dumps(config))
