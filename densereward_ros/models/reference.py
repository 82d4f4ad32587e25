"""The model card's own procedure: the slow path that every faster one is measured against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from densereward_ros.models.base import out_of_memory
from densereward_ros.models.local import LocalModel
from densereward_ros.models.prompt import build_messages, check_special_tokens, clean_task
from densereward_ros.models.reply import parse_reply
from densereward_ros.types import Frame, ImageError, MalformedReply, Verdict, Window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from densereward_ros.models.loading import LoadedModel

_MAX_ASPECT = 200  # qwen_vl_utils refuses anything longer


class ReferenceModel(LocalModel):
    """A RewardModel that does what the model card does, window by window, and nothing else.

    Every window is encoded and generated from nothing, with transformers' own processor and
    generate(); no state survives a reply.
    """

    def __init__(self, loaded: LoadedModel, max_new_tokens: int) -> None:
        super().__init__(loaded)
        self.corrected = 0  # it corrects none
        self._max_new_tokens = max_new_tokens

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """See RewardModel.score."""
        return [parse_reply(self.reply(window)) for window in windows]

    def prepare(self, windows: Sequence[Window]) -> None:
        """See RewardModel.prepare: this one cannot."""

    def reply(self, window: Window) -> str:
        """The model's text for one window, as the model card prints it. Raises as score does."""
        self._check_running()
        return self.decode(self.generate(self.encode(window)))

    def encode(self, window: Window) -> Mapping[str, torch.Tensor]:
        """All that the processor returns for a window, on the model's device."""
        from PIL import Image
        from qwen_vl_utils import process_vision_info

        loaded = self._open()
        task = clean_task(window.task)
        if not task:
            raise ValueError('the task is empty (say in words what the robot is to do)')
        check_special_tokens(task, loaded.special_tokens)
        images = [Image.fromarray(checked_image(frame)) for frame in window.frames]
        messages = build_messages(loaded.system_prompt, images, task, loaded.max_pixels)
        text = loaded.processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        # Like the card, without image_patch_size: images are resized to multiples of 28 here and of
        # 32 by the processor. The model was published with this, so the same pixels must go in.
        image_inputs, video_inputs = process_vision_info(messages)
        inputs = loaded.processor(
            text=[text], images=image_inputs, videos=video_inputs, padding=True, return_tensors='pt'
        )
        return inputs.to(loaded.network.device)

    def generate(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The new token ids, shape (1, at most max_new_tokens), greedy."""
        import torch
        from transformers import StoppingCriteriaList

        network = self._open().network
        # A second generate() on one model has been seen to reuse the first one's M-RoPE offset
        # (transformers #43952); a reply must not depend on the one before it.
        network.model.rope_deltas = None
        try:
            with torch.no_grad():
                output = network.generate(
                    **inputs,
                    max_new_tokens=self._max_new_tokens,
                    do_sample=False,
                    stopping_criteria=StoppingCriteriaList([self._stop_now]),
                )
        except torch.cuda.OutOfMemoryError as error:
            raise out_of_memory(self.name, error) from error
        self._check_running()
        return output[:, inputs['input_ids'].shape[1] :]

    def decode(self, tokens: torch.Tensor) -> str:
        """New token ids as text, without special tokens and outer white space."""
        return self._open().processor.batch_decode(tokens, skip_special_tokens=True)[0].strip()

    def _stop_now(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Asked by generate() after every token, for each row of the batch."""
        import torch

        return torch.full((input_ids.shape[0],), self._stop.is_set(), device=input_ids.device)


def checked_image(frame: Frame) -> Any:
    """The frame's image, if the card's procedure can take it. Raises ImageError."""
    height, width = frame.image.shape[:2]
    if max(height, width) > _MAX_ASPECT * min(height, width):
        raise ImageError(
            f'image is {width}x{height} pixels (one side may be at most {_MAX_ASPECT} times the other)'
        )
    return frame.image
