"""A small Hugging Face hub on this machine: one repository, served as slowly as a test wants."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = '0123456789abcdef0123456789abcdef01234567'
REPOSITORY = 'owner/model'


class HubStub:
    """Serves the files of a folder as REPOSITORY at revision main; also owner/gated, which is gated.

    chunk_pause: seconds between two pieces of 64 kB. break_after: bytes after which the first
    answer for a weights file is cut off. requests: method and path of each request so far.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chunk_pause = 0.0
        self.break_after: int | None = None
        self.requests: list[tuple[str, str]] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_HEAD(self) -> None:
                stub._answer(self, with_body=False)

            def do_GET(self) -> None:
                stub._answer(self, with_body=True)

            def log_message(self, *arguments) -> None:
                pass

        self._server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self._server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self._server.server_port}'
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def fetched(self) -> list[str]:
        """Names of the files whose content was asked for."""
        return [
            path.rsplit('/', 1)[1]
            for method, path in self.requests
            if method == 'GET' and '/resolve/' in path
        ]

    def _answer(self, handler: BaseHTTPRequestHandler, with_body: bool) -> None:
        path = handler.path.split('?')[0]
        self.requests.append((handler.command, path))
        listing = re.fullmatch(r'/api/models/([^/]+/[^/]+)/revision/([^/]+)', path)
        content = re.fullmatch(r'/([^/]+/[^/]+)/resolve/([^/]+)/(.+)', path)
        if not listing and not content:
            return self._refuse(handler, 404, 'EntryNotFound')
        repository, revision = (listing or content).group(1, 2)
        if repository == 'owner/gated':
            return self._refuse(handler, 403, 'GatedRepo')
        if repository == 'owner/broken':
            return self._refuse(handler, 500, '')
        if repository != REPOSITORY:
            return self._refuse(handler, 404, 'RepoNotFound')
        if revision not in ('main', COMMIT):
            return self._refuse(handler, 404, 'RevisionNotFound')
        if listing:
            siblings = [
                {'rfilename': str(file.relative_to(self.folder)), 'size': file.stat().st_size, 'blobId': 'x'}
                for file in sorted(self.folder.rglob('*'))
                if file.is_file()
            ]
            body = json.dumps(
                {'id': REPOSITORY, 'modelId': REPOSITORY, 'sha': COMMIT, 'siblings': siblings}
            ).encode()
            return self._send(handler, 200, {'Content-Type': 'application/json'}, body, with_body)
        data = (self.folder / content.group(3)).read_bytes()
        headers = {
            'ETag': f'"{hashlib.sha256(data).hexdigest()}"',
            'X-Repo-Commit': COMMIT,
            'Accept-Ranges': 'bytes',
        }
        status, total = 200, len(data)
        asked = re.fullmatch(r'bytes=(\d+)-', handler.headers.get('Range', ''))
        if asked:
            status, start = 206, int(asked.group(1))
            data = data[start:]
            headers['Content-Range'] = f'bytes {start}-{total - 1}/{total}'
        self._send(handler, status, headers, data, with_body, breakable=path.endswith('.safetensors'))

    def _refuse(self, handler: BaseHTTPRequestHandler, status: int, code: str) -> None:
        self._send(
            handler, status, {'X-Error-Code': code, 'X-Error-Message': 'the stub says no'}, b'{}', True
        )

    def _send(self, handler, status, headers, body, with_body, breakable=False) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header('Content-Length', str(len(body)))
        handler.end_headers()
        if not with_body or handler.command == 'HEAD':
            return
        try:
            for start in range(0, len(body), 65536):
                if breakable and self.break_after is not None and start >= self.break_after:
                    self.break_after = None
                    handler.close_connection = True
                    return
                handler.wfile.write(body[start : start + 65536])
                time.sleep(self.chunk_pause)
        except OSError:  # the client went away, as some tests want it to
            handler.close_connection = True
