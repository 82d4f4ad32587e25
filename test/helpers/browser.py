"""A real browser for the tests of pages: headless Chromium, driven over a pipe (the DevTools protocol)."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome')
FLAGS = (
    '--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--no-first-run',
    '--disable-dev-shm-usage', '--disable-background-networking', '--disable-component-update',
    '--disable-sync', '--remote-debugging-pipe')


def find_browser() -> str | None:
    """The path of a Chromium or Chrome, None where there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One tab. Every request that it makes is in `requests`, every line of its console in `console`."""

    def __init__(self, program: str) -> None:
        self.requests: list[str] = []
        self.console: list[str] = []
        self._numbers = itertools.count(1)
        self._loaded = False
        self._profile = tempfile.TemporaryDirectory(prefix='browser')
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()

        def as_3_and_4() -> None:
            # Neither end may lie where the other goes to.
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._process = subprocess.Popen(
            [program, *FLAGS, f'--user-data-dir={self._profile.name}', 'about:blank'],
            preexec_fn=as_3_and_4, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self._answers = os.fdopen(self._from, 'rb')
        self._session = None
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self._session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Network', 'Runtime', 'Log'):
            self.call(f'{domain}.enable')

    def call(self, method: str, **parameters) -> dict:
        """One command of the protocol; events that arrive meanwhile are taken in."""
        number = next(self._numbers)
        message = {'id': number, 'method': method, 'params': parameters}
        if self._session:
            message['sessionId'] = self._session
        os.write(self._to, json.dumps(message).encode() + b'\0')
        while (answer := self._read()).get('id') != number:
            pass
        assert 'error' not in answer, f'{method}: {answer["error"]}'
        return answer['result']

    def open(self, page: Path, width: int, height: int = 900, dark: bool = False) -> None:
        """Load a page into a window of that many CSS pixels, and wait until all of it is there."""
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1,
                  mobile=False)
        self.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])
        self.requests.clear()
        self.console.clear()
        self._loaded = False
        self.call('Page.navigate', url=page.as_uri())
        while not self._loaded:
            self._read()

    def evaluate(self, expression: str):
        """The value of a JavaScript expression in the page; promises are awaited."""
        answer = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        assert 'exceptionDetails' not in answer, answer['exceptionDetails']
        return answer['result'].get('value')

    def screenshot(self, file: Path, whole: bool = True) -> Path:
        """A PNG of the window, or of the whole page."""
        options = {}
        if whole:
            width, height = self.evaluate(
                '[innerWidth, Math.max(innerHeight, document.documentElement.scrollHeight)]')
            clip = {'x': 0, 'y': 0, 'width': width, 'height': height, 'scale': 1}
            options = {'captureBeyondViewport': True, 'clip': clip}
        answer = self.call('Page.captureScreenshot', format='png', **options)
        file.write_bytes(base64.b64decode(answer['data']))
        return file

    def print(self, file: Path) -> Path:
        """A PDF of the page as it would be printed on A4."""
        answer = self.call('Page.printToPDF', paperWidth=8.27, paperHeight=11.69, printBackground=False)
        file.write_bytes(base64.b64decode(answer['data']))
        return file

    def close(self) -> None:
        """End the browser."""
        os.close(self._to)
        self._answers.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._profile.cleanup()

    def _read(self) -> dict:
        data = bytearray()
        while (byte := self._answers.read(1)) != b'\0':
            assert byte, 'the browser has ended'
            data += byte
        message = json.loads(data)
        kind, parameters = message.get('method'), message.get('params', {})
        if kind == 'Network.requestWillBeSent':
            self.requests.append(parameters['request']['url'])
        elif kind == 'Runtime.consoleAPICalled':
            self.console.append(str(parameters['args']))
        elif kind == 'Log.entryAdded':
            self.console.append(parameters['entry']['text'])
        elif kind == 'Page.loadEventFired':
            self._loaded = True
        return message
