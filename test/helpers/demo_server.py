"""A real server: `transformers serve` with the demo checkpoint, in a process of its own."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

_START_S = 90.0
_PR_SET_PDEATHSIG = 1


class DemoServer:
    """Serves on one port for its whole life, through kills and starts.

    folder: for its log, and for the pictures that it writes to the temporary folder and leaves there.
    """

    def __init__(self, checkpoint: Path, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            self.port = free.getsockname()[1]
        self.url = f'http://127.0.0.1:{self.port}/v1'
        self._checkpoint = checkpoint
        self._folder = folder
        self._process: subprocess.Popen | None = None

    def launch(self) -> None:
        """Start it; ready() waits."""
        environment = {
            **os.environ, 'TMPDIR': str(self._folder), 'HF_HUB_OFFLINE': '1', 'OMP_NUM_THREADS': '1',
            'HF_HUB_DISABLE_PROGRESS_BARS': '1', 'HF_HOME': str(self._folder / 'hub')}
        command = [
            sys.executable, '-c', 'from transformers.cli.transformers import main; main()', 'serve',
            '--force-model', str(self._checkpoint), '--device', 'cpu', '--dtype', 'float32',
            '--host', '127.0.0.1', '--port', str(self.port), '--log-level', 'warning']
        with (self._folder / 'server.log').open('ab') as log:
            # Should the tests be killed, the kernel ends it with them.
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, cwd=self._folder,
                preexec_fn=lambda: ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL))

    def ready(self) -> None:
        """Returns when it answers. AssertionError when it ends before, or takes too long."""
        deadline = time.monotonic() + _START_S
        while True:
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            try:
                with urllib.request.urlopen(f'http://127.0.0.1:{self.port}/health', timeout=1.0):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)

    def kill(self) -> None:
        """As a crash ends it. May be called twice."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        """The end of what it has said."""
        return (self._folder / 'server.log').read_text(errors='replace')[-3000:]


def missing_packages() -> list[str]:
    """What `transformers serve` needs and is not installed."""
    return [name for name in ('fastapi', 'uvicorn', 'openai') if importlib.util.find_spec(name) is None]
