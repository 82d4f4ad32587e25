"""An OpenAI-compatible server on this machine that says what no real one would, whenever a test wants it."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GOOD = '<think>\ncorrect\n</think>\n\n0.500'

# Sends the answer to one request; what it returns, if anything, is sent as a chat completion's message.
Answer = Callable[['Exchange'], Any]


def message(content: str | None = GOOD, logprobs: object = None, **fields: object) -> dict:
    """A chat completion as servers send it; fields go into the message."""
    return {
        'id': 'chatcmpl-1', 'object': 'chat.completion', 'created': 1, 'model': 'reward',
        'choices': [{
            'index': 0, 'finish_reason': 'stop', 'logprobs': logprobs,
            'message': {'role': 'assistant', 'content': content, **fields}}],
        'usage': {'prompt_tokens': 700, 'completion_tokens': 12, 'total_tokens': 712}}


class Exchange:
    """One request for a completion, and the means to answer it badly. body: its JSON."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: dict, closing: threading.Event) -> None:
        self.body = body
        self.headers = handler.headers
        self.warm_up = body['messages'][-1]['content'][-1]['text'] == 'warm up'
        self._handler = handler
        self._closing = closing

    def send(self, status: int, content: bytes, length: int | None = None, **headers: str) -> None:
        """An answer; length: what it claims to have. Keywords are headers, - written as _."""
        handler = self._handler
        handler.send_response(status)
        for name, value in {'Content-Type': 'application/json', **headers}.items():
            handler.send_header(name.replace('_', '-'), value)
        handler.send_header('Content-Length', str(len(content) if length is None else length))
        handler.end_headers()
        handler.wfile.write(content)
        if length is not None:
            handler.close_connection = True

    def error(self, status: int, text: str = 'the stub says no', **headers: str) -> None:
        """An error as OpenAI writes it."""
        self.send(status, json.dumps({'error': {'message': text, 'code': status}}).encode(), **headers)

    def hang(self, seconds: float = 60.0) -> None:
        """Nothing, until the client has gone or the stub is closed."""
        self._closing.wait(seconds)

    def drip(self, pause: float = 0.05) -> None:
        """One byte after the other, for ever."""
        handler = self._handler
        handler.send_response(200)
        handler.send_header('Content-Length', '100000')
        handler.end_headers()
        while not self._closing.wait(pause):
            handler.wfile.write(b' ')

    def flood(self) -> None:
        """Bytes without end, and without saying how many."""
        handler = self._handler
        handler.send_response(200)
        handler.send_header('Transfer-Encoding', 'chunked')
        handler.end_headers()
        piece = b'10000\r\n' + b' ' * 0x10000 + b'\r\n'
        while not self._closing.is_set():
            handler.wfile.write(piece)

    def cut(self) -> None:
        """No answer; the connection is closed."""
        self._handler.close_connection = True


class CompletionStub:
    """Serves the model 'reward'. Every attribute may change while it runs.

    answer: for every request but the grey warm-up, which warm_up answers. models: what /v1/models lists, None
    for 404. owner, version: of what kind it claims to be. exchanges: every request for a completion so far.
    running, most: requests at this moment, and at the busiest one.
    """

    def __init__(self) -> None:
        self.answer: Answer = lambda exchange: message()
        self.warm_up: Answer = lambda exchange: message()
        self.models: list[str] | None = ['reward']
        self.owner = 'stub'
        self.version = ''
        self.exchanges: list[Exchange] = []
        self.paths: list[str] = []
        self.running = self.most = 0
        self._closing = threading.Event()
        self._lock = threading.Lock()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self) -> None:
                stub._tell(self)

            def do_POST(self) -> None:
                stub._complete(self)

            def log_message(self, *arguments) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, request, client_address) -> None:
                pass  # the client went away, as some tests want it to

        self._server = Server(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self._server.server_port}/v1'
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def scored(self) -> list[Exchange]:
        """The requests that were no warm-up."""
        return [exchange for exchange in self.exchanges if not exchange.warm_up]

    def close(self) -> None:
        """Stop serving, whatever is still being answered."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _tell(self, handler: BaseHTTPRequestHandler) -> None:
        self.paths.append(handler.path)
        if handler.path == '/v1/models' and self.models is not None:
            content: Any = {
                'object': 'list',
                'data': [{'id': name, 'object': 'model', 'owned_by': self.owner} for name in self.models]}
        elif handler.path == '/version' and self.version:
            content = {'version': self.version}
        else:
            return handler.send_error(404)
        body = json.dumps(content).encode()
        handler.send_response(200)
        handler.send_header('Content-Type', 'application/json')
        handler.send_header('Content-Length', str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _complete(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers['Content-Length'])))
        exchange = Exchange(handler, body, self._closing)
        with self._lock:
            self.exchanges.append(exchange)
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            with contextlib.suppress(OSError):
                said = (self.warm_up if exchange.warm_up else self.answer)(exchange)
                if said is not None:
                    exchange.send(200, json.dumps(said).encode())
        finally:
            with self._lock:
                self.running -= 1


def wait_until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Poll until it holds; AssertionError when it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, 'not in time'
        time.sleep(0.005)
