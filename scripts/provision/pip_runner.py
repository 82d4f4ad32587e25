"""Run pip with progress that a person can follow."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from provision.errors import SetupError
from provision.pythons import clean_environment

LARGE_MB = 20
SECONDS_BETWEEN_LINES = 15.0
DOWNLOADING = re.compile(r'\s*Downloading (?P<where>\S+)(?: \((?P<size>[\d.]+) (?P<unit>[kMG]?B)\))?')
PROGRESS = re.compile(r'Progress (?P<done>\d+) of (?P<total>\d+)')
OFFLINE = re.compile(
    r'NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|Name or service not known|Failed to establish|'
    r'Temporary failure in name resolution|Network is unreachable|Connection refused|Connection reset'
)


class Progress:
    """Turns pip's output into a few lines; on a terminal the download in progress is one line that moves."""

    def __init__(self) -> None:
        self.name = ''
        self.last = time.monotonic()
        self.moving = sys.stdout.isatty()

    def feed(self, line: str) -> None:
        """Take one line of pip's output."""
        if match := DOWNLOADING.match(line):
            # The name and version only: the address may hold the name of somebody's private mirror.
            file = re.sub(r'[#?].*', '', match['where']).rsplit('/', 1)[-1]
            self.name = re.split(r'-(?:cp|py)\d', file)[0]
            if match['unit'] == 'GB' or (match['unit'] == 'MB' and float(match['size']) >= LARGE_MB):
                self.say(f'downloading {self.name}, {match["size"]} {match["unit"]}')
        elif match := PROGRESS.match(line):
            done, total = int(match['done']), int(match['total'])
            if total < LARGE_MB * 1e6:
                return
            text = f'{self.name}: {done / 1e6:.0f} of {total / 1e6:.0f} MB'
            if self.moving:
                print(f'\r\033[K  {text}', end='' if done < total else '\r\033[K', flush=True)
            elif time.monotonic() - self.last > SECONDS_BETWEEN_LINES:
                self.say(text)
        elif line.startswith('Installing collected packages:') and line.count(',') > 10:
            self.say(f'unpacking {line.count(",") + 1} packages')

    def say(self, text: str) -> None:
        """Print one line under the current step."""
        print(f'  {text}', flush=True)
        self.last = time.monotonic()


def run_pip(python: Path, arguments: list[str], log: Path, bar: str = 'raw') -> None:
    """Run `pip install` of that Python; everything it says goes to the log. Raises SetupError."""
    command = [str(python), '-m', 'pip', 'install', '--no-input', '--progress-bar', bar, *arguments]
    progress, output = Progress(), []
    # PIP_USER=0: a user's `user = true` would install beside the virtual environment, or be refused.
    environment = {**clean_environment(), 'PIP_USER': '0', 'PYTHONUNBUFFERED': '1'}
    pipes = {'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT, 'text': True, 'errors': 'replace'}
    process = subprocess.Popen(command, env=environment, **pipes)
    with process, log.open('a', encoding='utf-8') as file:
        try:
            for line in process.stdout:
                if not PROGRESS.match(line):
                    output.append(line)
                    file.write(line)
                progress.feed(line)
        except KeyboardInterrupt:
            process.terminate()  # a pip that goes on would meet the next one in the same environment
            process.wait()
            raise
    if process.returncode:
        raise SetupError(f'{why_it_failed("".join(output))}; all that pip said is in {log}')


def why_it_failed(output: str) -> str:
    """One line from pip's output."""
    if 'No space left on device' in output:
        return 'the disk is full; free some space and start again'
    if OFFLINE.search(output):
        return 'the package index cannot be reached; check the network and start again'
    errors = [line for line in output.splitlines() if line.startswith('ERROR: ')]
    reason = re.sub(r'\w+://\S+', '...', errors[-1][len('ERROR: ') :]) if errors else 'no reason given'
    return f'pip failed: {reason}'
