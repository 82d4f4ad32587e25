"""The executor of this package's nodes: callbacks on a few threads, and no spinning while they start."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from rclpy.context import Context
from rclpy.executors import Executor, ExternalShutdownException, ShutdownException, TimeoutException
from rclpy.task import Task


class PooledExecutor(Executor):
    """Runs callbacks on `threads` threads, as rclpy's MultiThreadedExecutor does, at a fraction of its cost.

    That one offers a callback again and again until a thread has begun with it. The offering holds
    the interpreter, which the thread needs to begin: while another thread computes, a camera's
    callback is offered hundreds of times, and the inference pays for it. This one offers it once.
    """

    def __init__(self, threads: int, *, context: Context | None = None) -> None:
        super().__init__(context=context)
        self._pool = ThreadPoolExecutor(threads, 'callback')
        self._errors: deque[BaseException] = deque()

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for one callback and let a thread begin with it; raises what an earlier callback raised."""
        if self._errors:
            raise self._errors.popleft()
        try:
            task, _, _ = self.wait_for_ready_callbacks(timeout_sec)
        except (TimeoutException, ShutdownException, ExternalShutdownException):
            return
        begun = threading.Event()
        self._pool.submit(self._run, task, begun)
        begun.wait()

    def _run(self, task: Task, begun: threading.Event) -> None:
        begun.set()
        if task.done():  # offered once more before it had begun, and its error is told already
            return
        task()
        if task.done() and (error := task.exception()) is not None:
            self._errors.append(error)

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """See Executor.shutdown; the threads end with their callbacks."""
        done = super().shutdown(timeout_sec)
        self._pool.shutdown()
        return done
