"""The fast engine as a RewardModel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from densereward_ros.models.base import out_of_memory
from densereward_ros.models.fast.engine import EVERY_SHORTCUT, Effort, Engine, Shortcuts
from densereward_ros.models.local import LocalModel
from densereward_ros.models.reply import parse_reply
from densereward_ros.types import MalformedReply, Verdict, Window

if TYPE_CHECKING:
    from densereward_ros.models.fast.decoding import Reply
    from densereward_ros.models.fast.graphs import Run
    from densereward_ros.models.loading import LoadedModel



class FastModel(LocalModel):
    """A RewardModel that gives the replies of ReferenceModel from a fraction of its work.

    In float32 they are the same token for token, unless the model's two best tokens are within
    rounding of each other. They are kept to the reply's format, which changes nothing where the
    model keeps to it by itself, and end with the third decimal. Verdicts carry the probabilities
    of the six words.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        max_new_tokens: int,
        shortcuts: Shortcuts = EVERY_SHORTCUT,
        record: Callable[[Run], Run] | None = None,
    ) -> None:
        """record: as of Engine. Raises ModelError for a checkpoint that only the reference can run."""
        super().__init__(loaded)
        self._engine = Engine(loaded, max_new_tokens, shortcuts, record)
        self._effort = Effort()

    @property
    def effort(self) -> Effort:
        """The work done so far; may be read from any thread."""
        return self._effort

    @property
    def corrected(self) -> int:
        """See RewardModel.corrected."""
        return self._effort.corrected

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """See RewardModel.score. The windows are read together, whichever cameras they are of."""
        return [self._verdict(reply) for reply in self.generate(windows)]

    def generate(self, windows: Sequence[Window]) -> list[Reply]:
        """The replies as tokens. Raises as score does."""
        with self._running():
            return self._engine.generate(windows, self._check_running)

    def prepare(self, windows: Sequence[Window]) -> None:
        """Read ahead, in idle time, what is known of windows to come: the frames that they have so far.

        score() then has only the newest frame, the task and the reply to read. It is no loss but
        of time if the windows come otherwise or not at all. Raises as score does.
        """
        with self._running():
            self._engine.prepare(windows, self._check_running)

    def forget(self) -> None:
        """Drop what is kept between replies: the next ones are those of a model that was just opened."""
        self._open()
        self._engine.forget()

    def warm_up(self) -> None:
        """See LocalModel.warm_up."""
        super().warm_up()
        self._engine.forget()  # keys and values of a window that never comes again

    def _release(self) -> None:
        del self._engine

    def _verdict(self, reply: Reply) -> Verdict | MalformedReply:
        if not reply.finite:
            return MalformedReply('', 'the model computed something that is not a finite number')
        tokenizer = self._open().processor.tokenizer
        verdict = parse_reply(tokenizer.decode(reply.tokens, skip_special_tokens=True))
        if isinstance(verdict, Verdict):
            return replace(verdict, reason_probabilities=reply.word_probabilities)
        return verdict

    @contextmanager
    def _running(self) -> Iterator[None]:
        """The model is open, nobody has interrupted it, and an error leaves nothing half done."""
        import torch

        self._open()
        self._check_running()
        try:
            with torch.inference_mode():
                yield
        except torch.cuda.OutOfMemoryError as error:
            self._engine.forget()
            raise out_of_memory(self.name, error) from error
        finally:
            self._effort = self._engine.effort
