"""A way to a server that can be cut and mended in a moment, as when the server's process dies and returns."""

from __future__ import annotations

import contextlib
import socket
import threading


class Relay:
    """Listens on a port of its own for its whole life, but for the time that it is cut."""

    def __init__(self, port: int) -> None:
        """port: of the server, on this machine."""
        self._server_port = port
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._listener = self._listen(0)
        self.port = self._listener.getsockname()[1]
        self.url = f'http://127.0.0.1:{self.port}/v1'

    def cut(self) -> None:
        """Connections break off, and new ones are refused. May be called twice."""
        with self._lock:
            for one in [self._listener, *self._sockets]:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
            self._sockets.clear()

    def mend(self) -> None:
        """As before."""
        self._listener = self._listen(self.port)

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(('127.0.0.1', port), reuse_port=False)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(('127.0.0.1', self._server_port))
                with self._lock:
                    self._sockets += [client, server]
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_WR)
