"""The worker thread that asks the reward model: the newest window wins, and nothing queues."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from densereward_ros.models.base import Interrupted, RewardModel
from densereward_ros.ros.cameras import Camera
from densereward_ros.ros.meter import RateMeter
from densereward_ros.types import Frame, ImageError, MalformedReply, Verdict, Window

STOP_TIMEOUT_S = 10.0


class Listener(Protocol):
    """Whom the worker tells; called on the worker's thread, one call at a time."""

    def on_verdict(self, camera: Camera, window: Window, verdict: Verdict, inference_s: float) -> None:
        """A verdict of the running episode. inference_s: seconds the model took."""

    def on_malformed(self, camera: Camera, reply: MalformedReply) -> None:
        """A reply that holds no verdict."""

    def on_bad_image(self, camera: Camera, error: ImageError) -> None:
        """An image that cannot be decoded."""

    def on_model_error(self, error: Exception) -> None:
        """The model raised; the tick is lost."""


class InferenceWorker:
    """Scores the windows of all cameras that are due, together, at most `rate` times a second.

    Paused at first. A verdict on a window of an episode that has ended meanwhile, or that comes
    after pause(), is thrown away.

    ticks: how often the model was asked; every camera that was due got a reply then, so this is
    the rate of each. replies, malformed: over all cameras. malformed_in_a_row: since the last verdict.
    failures_in_a_row: how often the model has raised since it last did not.
    latencies_s: what the model took for the last replies. busy_s: what a whole tick took, images and all.
    """

    def __init__(self, model: RewardModel, cameras: Sequence[Camera], listener: Listener) -> None:
        self.ticks = RateMeter()
        self.replies = 0
        self.malformed = 0
        self.malformed_in_a_row = 0
        self.failures_in_a_row = 0
        self.latencies_s: deque[float] = deque(maxlen=50)
        self.busy_s: deque[float] = deque(maxlen=50)
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
        while (due := self._wait_for_windows()) is not None:
            started = time.monotonic()
            try:
                self._score(*due)
                self.failures_in_a_row = 0
                self.busy_s.append(time.monotonic() - started)
            except Interrupted:
                pass
            except Exception as error:  # also what telling it raises: this thread must outlive everything
                with self._condition:
                    self.failures_in_a_row += 1
                    self._listener.on_model_error(error)

    def _wait_for_windows(self) -> tuple[int, list[tuple[Camera, Window]]] | None:
        """The running episode's number and the windows that are due; None when the thread is to end."""
        with self._condition:
            while not self._stopping:
                wait_s = None
                if self._active and self._task:
                    wait_s = (self._due_ns - time.monotonic_ns()) / 1e9
                    if wait_s <= 0 and (due := self._take()):
                        return self._episode, due
                # Once a tick is due, only a new frame can make a window: wait for wake().
                self._condition.wait(wait_s if wait_s and wait_s > 0 else None)
            return None

    def _take(self) -> list[tuple[Camera, Window]]:
        taken = [(camera, camera.take(self._task)) for camera in self._cameras]
        due = [(camera, window) for camera, window in taken if window]
        if due:
            # From when it was due, not from now: a frame that comes late must not delay all that follow.
            # Half a period is made up for at most.
            self._due_ns = max(self._due_ns, time.monotonic_ns() - self._period_ns // 2) + self._period_ns
        return due

    def _score(self, episode: int, due: list[tuple[Camera, Window]]) -> None:
        due = [(camera, window) for camera, window in due if self._decode(camera, window)]
        if not due:
            return
        started = time.monotonic()
        try:
            outcomes = self._model.score([window for _, window in due])
        except ImageError as error:
            self._score_apart(episode, due, error)
            return
        inference_s = time.monotonic() - started
        with self._condition:
            if episode != self._episode:
                return
            self.ticks.mark(time.monotonic_ns())
            self.latencies_s.append(inference_s)
            for (camera, window), outcome in zip(due, outcomes, strict=True):
                self.replies += 1
                if isinstance(outcome, MalformedReply):
                    self.malformed += 1
                    self.malformed_in_a_row += 1
                    self._listener.on_malformed(camera, outcome)
                else:
                    self.malformed_in_a_row = 0
                    camera.last_verdict = outcome
                    self._listener.on_verdict(camera, window, outcome, inference_s)
        self._work_ahead(due)

    def _work_ahead(self, due: list[tuple[Camera, Window]]) -> None:
        """Until the next frames come: where windows slide by one frame, the next one's others are known."""
        if any(camera.has_window() for camera in self._cameras):
            return  # this is no idle time
        known = []
        for camera, window in due:
            before, self._judged[camera.topic] = self._judged.get(camera.topic), window.frames[1:]
            if before == window.frames[:-1]:
                known.append(replace(window, frames=window.frames[1:]))
        if known:
            self._model.prepare(known)

    def _score_apart(self, episode: int, due: list[tuple[Camera, Window]], error: ImageError) -> None:
        """The model refused an image: one camera's image must not cost another camera its reward."""
        if len(due) > 1:
            for one in due:
                self._score(episode, [one])
        else:
            (camera, window), = due
            self._refuse(camera, window.newest, error)

    def _refuse(self, camera: Camera, frame: Frame, error: ImageError) -> None:
        with self._condition:
            camera.drop(frame, str(error))
            self._listener.on_bad_image(camera, error)

    def _decode(self, camera: Camera, window: Window) -> bool:
        """Decode the window's images here, on the worker; False when one of them is unusable."""
        for frame in window.frames:
            try:
                frame.image  # noqa: B018 (decoded once, then kept by the frame)
            except ImageError as error:
                self._refuse(camera, frame, error)
                return False
        return True
