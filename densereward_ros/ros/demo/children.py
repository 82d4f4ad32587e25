"""The demo's processes while they run: their logs, an early end of one, and that none outlives the demo."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ament_index_python.packages import get_package_prefix

from densereward_ros.ros.demo.processes import DemoProcess

STOP_S = 1.0  # from the request to end until the kill
_PR_SET_PDEATHSIG = 1


class Children:
    """Starts processes, each with a log file of its name in `folder`; to be used in a with statement."""

    def __init__(self, processes: list[DemoProcess], folder: Path) -> None:
        self._libc = ctypes.CDLL(None)
        self._folder = folder
        self._running: dict[str, subprocess.Popen] = {}
        self._deadline: float | None = None
        executables = Path(get_package_prefix('densereward_ros'), 'lib', 'densereward_ros')
        environment = {**os.environ, 'PYTHONUNBUFFERED': '1', 'RCUTILS_COLORIZED_OUTPUT': '0'}
        for process in processes:
            with self.log_of(process.executable).open('wb') as log:
                self._running[process.executable] = subprocess.Popen(
                    [sys.executable, str(executables / process.executable), *process.ros_arguments()],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment,
                    # A session of their own: Ctrl-C is for the demo, which ends them in order.
                    start_new_session=True, preexec_fn=self._die_with_parent(os.getpid()))

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def log_of(self, name: str) -> Path:
        """The log file of a process."""
        return self._folder / f'{name}.log'

    def last_lines(self, name: str, count: int = 8) -> list[str]:
        """The end of a process's log."""
        return self.log_of(name).read_text(errors='replace').splitlines()[-count:]

    def ended(self) -> dict[str, int]:
        """The exit codes of the processes that have ended."""
        codes = {name: process.poll() for name, process in self._running.items()}
        return {name: code for name, code in codes.items() if code is not None}

    def request_stop(self) -> None:
        """Ask every process to end, without waiting; the second it has begins with the first call."""
        if self._deadline is None:
            self._deadline = time.monotonic() + STOP_S
            for process in self._running.values():
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)

    def stop(self) -> None:
        """End every process: politely, and after a second by force."""
        self.request_stop()
        for process in self._running.values():
            try:
                process.wait(max(0.0, self._deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _die_with_parent(self, parent: int):
        """Makes the kernel kill the child when the demo dies, however it dies."""

        def prepare() -> None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        return prepare
