"""The worker thread that asks the reward model: the newest window wins, and nothing queues."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from densereward_ros.models.base import Interrupted, OutOfMemory, RewardModel, Unanswered, first_line
from densereward_ros.ros.batch_limit import BatchLimit
from densereward_ros.ros.cameras import Camera
from densereward_ros.ros.meter import RateMeter
from densereward_ros.types import Frame, ImageError, MalformedReply, Verdict, Window

STOP_TIMEOUT_S = 10.0
LEAST_REPLIES = 20  # fewer say nothing of how many are corrected

Due = list[tuple[Camera, Window]]


class Listener(Protocol):
    """Whom the worker tells; called on the worker's thread, one call at a time."""

    def on_verdict(self, camera: Camera, window: Window, verdict: Verdict, inference_s: float) -> None:
        """A verdict of the running episode. inference_s: seconds the model took."""

    def on_malformed(self, camera: Camera, reply: MalformedReply) -> None:
        """A reply that holds no verdict."""

    def on_bad_image(self, camera: Camera, error: ImageError) -> None:
        """An image that cannot be decoded."""

    def on_model_error(self, cameras: Sequence[Camera], error: Exception) -> None:
        """The model raised. cameras: those that get no reward this time; none when it worked ahead."""

    def on_fault(self, error: Exception) -> None:
        """Something else raised: one of the methods above, or the worker itself."""


@dataclass
class _Tick:
    """One round over the cameras. waiting: those that it has not come to yet; scored: what got a reply."""

    episode: int
    waiting: deque[Camera]
    scored: Due = field(default_factory=list)
    failed: bool = False


class InferenceWorker:
    """Scores the windows of all cameras that are due, together, at most `rate` times a second.

    Paused at first. A verdict on a window of an episode that has ended meanwhile, or that comes
    after pause(), is thrown away.

    "Together" means as many at once as fit into memory (batch_limit), one lot after the other.

    ticks: how often the model was asked; every camera that was due got a reply then, so this is
    the rate of each. replies, malformed: over all cameras. malformed_in_a_row: since the last verdict.
    failures_in_a_row: ticks in which the model raised since the last one in which it did not.
    out_of_memory: how often memory ran out. untold_in_a_row: verdicts that the listener failed to pass on.
    latencies_s: what the model took for the last replies. busy_s: what a whole tick took, images and all.
    """

    def __init__(self, model: RewardModel, cameras: Sequence[Camera], listener: Listener) -> None:
        self.ticks = RateMeter()
        self.replies = 0
        self.malformed = 0
        self.malformed_in_a_row = 0
        self.failures_in_a_row = 0
        self.untold_in_a_row = 0
        self.out_of_memory = 0
        self.batch_limit = BatchLimit(len(cameras))
        self.latencies_s: deque[float] = deque(maxlen=50)
        self.busy_s: deque[float] = deque(maxlen=50)
        self._corrections: deque[tuple[int, int]] = deque(maxlen=50)  # replies, and how many were corrected
        self._model = model
        self._cameras = cameras
        self._listener = listener
        self._condition = threading.Condition(threading.RLock())
        self._active = False
        self._stopping = False
        self._episode = 0
        self._task = ''
        self._period_ns = 0
        self._due_ns = 0
        self._judged: dict[str, tuple[Frame, ...]] = {}  # of each camera, the last window's newer frames
        self._thread = threading.Thread(target=self._run, name='inference', daemon=True)
        self._thread.start()

    @property
    def corrected(self) -> int:
        """Replies that the model's engine had to correct to keep them to the format."""
        return self._model.corrected

    @property
    def corrected_share(self) -> float:
        """Share of the last replies that were corrected, 0 to 1; 0.0 where there are too few to tell."""
        lots = tuple(self._corrections)
        replies = sum(count for count, _ in lots)
        return sum(corrected for _, corrected in lots) / replies if replies >= LEAST_REPLIES else 0.0

    def set_rate(self, rate: float) -> None:
        """rate: Hz, above 0."""
        with self._condition:
            self._period_ns = round(1e9 / rate)
            self._due_ns = min(self._due_ns, time.monotonic_ns() + self._period_ns)
            self._condition.notify()

    def new_episode(self, task: str) -> None:
        """Begin an episode: nothing from before it is scored or published. '' stops scoring."""
        with self._condition:
            self._episode += 1
            self._task = task
            for camera in self._cameras:
                camera.new_episode()

    def between_verdicts(self) -> threading.Condition:
        """A context in which no verdict is delivered."""
        return self._condition

    def wake(self) -> None:
        """A window is ready."""
        with self._condition:
            self._condition.notify()

    def resume(self) -> None:
        """Start scoring."""
        with self._condition:
            self._active = True
            self._model.resume()

    def pause(self) -> None:
        """Stop scoring; when this returns, no verdict follows."""
        with self._condition:
            self._active = False
            self._episode += 1
            self._model.interrupt()

    def stop(self) -> None:
        """End the thread. Raises RuntimeError when the model does not let go of it in time."""
        with self._condition:
            self._stopping = True
            self._condition.notify()
        self.pause()
        self._thread.join(STOP_TIMEOUT_S)
        if self._thread.is_alive():
            raise RuntimeError(f'the model did not end its reply within {STOP_TIMEOUT_S:.0f} s')

    def _run(self) -> None:
        while (tick := self._wait_for_tick()) is not None:
            started = time.monotonic()
            try:
                self._score_all(tick)
                self._work_ahead(tick)
            except Interrupted:
                continue
            except Exception as error:  # this thread must outlive everything
                self._tell(self._listener.on_fault, error)
            if tick.scored and not tick.failed:
                self.failures_in_a_row = 0
            self.busy_s.append(time.monotonic() - started)

    def _wait_for_tick(self) -> _Tick | None:
        """Returns when a window is due; None when the thread is to end."""
        with self._condition:
            while not self._stopping:
                wait_s = None
                if self._active and self._task:
                    wait_s = (self._due_ns - time.monotonic_ns()) / 1e9
                    if wait_s <= 0 and self._a_window_waits():
                        # From when it was due, not from now: a frame that comes late must not delay all that
                        # follow. Half a period is made up for at most.
                        self._due_ns = max(
                            self._due_ns, time.monotonic_ns() - self._period_ns // 2) + self._period_ns
                        return _Tick(self._episode, deque(self._cameras))
                # Once a tick is due, only a new frame can make a window: wait for wake().
                self._condition.wait(wait_s if wait_s and wait_s > 0 else None)
            return None

    def _a_window_waits(self) -> bool:
        return any(camera.has_window() for camera in self._cameras)

    def _score_all(self, tick: _Tick) -> None:
        """Each camera once in a tick, as many at once as fit into memory, so that none is left behind."""
        while due := self._take(tick):
            self._score(tick, due)

    def _take(self, tick: _Tick) -> Due:
        with self._condition:
            due: Due = []
            while tick.waiting and len(due) < self.batch_limit.now and tick.episode == self._episode:
                camera = tick.waiting.popleft()
                if window := camera.take(self._task):
                    due.append((camera, window))
            return due

    def _score(self, tick: _Tick, due: Due) -> None:
        due = [(camera, window) for camera, window in due if self._decode(camera, window)]
        if not due:
            return
        started, corrected = time.monotonic(), self._model.corrected
        try:
            outcomes = self._model.score([window for _, window in due])
            if len(outcomes) != len(due):  # whose they are, nobody knows
                raise ValueError(f'{len(outcomes)} outcomes for {len(due)} windows')
        except Interrupted:
            raise
        except ImageError as error:
            self._score_apart(tick, due, error)
            return
        except Unanswered as error:
            self._note_failure(tick, [one for one, known in zip(due, error.outcomes) if known is None], error)
            answered = [(one, known) for one, known in zip(due, error.outcomes) if known is not None]
            due, outcomes = [one for one, _ in answered], [known for _, known in answered]
        except Exception as error:
            self._note_failure(tick, due, error)
            return
        self.batch_limit.fitted(time.monotonic_ns())
        self._corrections.append((len(due), self._model.corrected - corrected))
        self._deliver(tick, due, outcomes, time.monotonic() - started)

    def _deliver(
        self, tick: _Tick, due: Due, outcomes: Sequence[Verdict | MalformedReply], inference_s: float
    ) -> None:
        with self._condition:
            if tick.episode != self._episode:
                return
            if not tick.scored:
                self.ticks.mark(time.monotonic_ns())
            tick.scored += due
            self.latencies_s.append(inference_s)
            for (camera, window), outcome in zip(due, outcomes, strict=True):
                self.replies += 1
                if isinstance(outcome, MalformedReply):
                    self.malformed += 1
                    self.malformed_in_a_row += 1
                    self._tell(self._listener.on_malformed, camera, outcome)
                else:
                    self.malformed_in_a_row = 0
                    told = self._tell(self._listener.on_verdict, camera, window, outcome, inference_s)
                    self.untold_in_a_row = 0 if told else self.untold_in_a_row + 1
                    self._tell(camera.judged, window, outcome)

    def _work_ahead(self, tick: _Tick) -> None:
        """Until the next frames come: where windows slide by one frame, the next one's others are known."""
        known = []
        for camera, window in tick.scored:
            before, self._judged[camera.topic] = self._judged.get(camera.topic), window.frames[1:]
            if before == window.frames[:-1]:
                known.append(replace(window, frames=window.frames[1:]))
        # Frames that wait are no idle time; nor may memory that is short be spent on what may not be needed.
        if not known or self._a_window_waits() or self.batch_limit.short(time.monotonic_ns()):
            return
        try:
            self._model.prepare(known)
        except Interrupted:
            raise
        except Exception as error:
            self._note_failure(tick, [], error)

    def _note_failure(self, tick: _Tick, due: Due, error: Exception) -> None:
        """The model raised. due: the windows that this costs their reward."""
        with self._condition:
            if isinstance(error, OutOfMemory):
                self.out_of_memory += 1
                self.batch_limit.ran_out(len(due), time.monotonic_ns())
            if due and not tick.failed:
                tick.failed = True
                self.failures_in_a_row += 1
            self._tell(self._listener.on_model_error, [camera for camera, _ in due], error)

    def _score_apart(self, tick: _Tick, due: Due, error: ImageError) -> None:
        """The model refused an image: one camera's image must not cost another camera its reward."""
        if len(due) > 1:
            for one in due:
                self._score(tick, [one])
        else:
            (camera, window), = due
            self._refuse(camera, window.newest, error)

    def _refuse(self, camera: Camera, frame: Frame, error: ImageError) -> None:
        with self._condition:
            camera.drop(frame, str(error))
            self._tell(self._listener.on_bad_image, camera, error)

    def _decode(self, camera: Camera, window: Window) -> bool:
        """Decode the window's images here, on the worker; False when one of them is unusable."""
        for frame in window.frames:
            try:
                frame.image  # noqa: B018 (decoded once, then kept by the frame)
            except ImageError as error:
                self._refuse(camera, frame, error)
                return False
            except Exception as error:  # MemoryError, for instance: it is this camera's, and not the model's
                self._refuse(camera, frame, ImageError(f'decoding it failed: {first_line(error)}'))
                return False
        return True

    def _tell(self, tell: Callable[..., None], *arguments: object) -> bool:
        """What the listener raises is no fault of the model's, and costs no other camera its reward."""
        try:
            tell(*arguments)
        except Exception as error:
            with contextlib.suppress(Exception):
                self._listener.on_fault(error)
            return False
        return True
