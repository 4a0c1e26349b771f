"""An HTTP server that takes numbered messages, can be away, and comes back at the same address."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.clients import HOST
from tests.services.server import free_port
from tests.whole.arrived import Arrived, numbers


class Taker:
    """Takes batches or messages; answers 500 to a body that has the number it stumbles over."""

    def __init__(self, stumbles_over: int | None = None) -> None:
        self.taken = Arrived()
        self.stumbles_over = stumbles_over
        self._port = free_port()
        self._server: _Listening | None = None

    @property
    def url(self) -> str:
        """Where to post to."""
        return f"http://{HOST}:{self._port}/in"

    def start(self) -> Self:
        """Listen."""
        self._server = _Listening((HOST, self._port), self)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def kill(self) -> None:
        """Listen no more, and cut every connection, whatever is on it."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server.cut()
            self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, cause: BaseException | None, _: TracebackType | None
    ) -> None:
        self.kill()


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], taker: Taker) -> None:
        self.taker = taker
        self._connections = set[socket.socket]()
        super().__init__(address, _Taking)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the connection was cut."""

    def cut(self) -> None:
        for each in [*self._connections]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class _Taking(BaseHTTPRequestHandler):
    server: _Listening
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Take a batch or a message."""
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        taker, found = self.server.taker, numbers(said if isinstance(said, list) else [said])
        is_refused = taker.stumbles_over in found
        if not is_refused:
            taker.taken.add(found)
        self.send_response(500 if is_refused else 204)
        if is_refused:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""
