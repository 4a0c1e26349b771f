"""An HTTP server that keeps everybody waiting until it is opened."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.clients import HOST, PATIENCE, Gone
from tests.whole.arrived import Arrived, numbers


class Gate(ThreadingHTTPServer):
    """Takes batches as soon as it is open, by the path that they were sent to."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Waiting)
        self.is_open = threading.Event()
        self.taken: defaultdict[str, Arrived] = defaultdict(Arrived)
        self.asked: defaultdict[str, threading.Event] = defaultdict(threading.Event)
        self._serving = threading.Thread(target=self.serve_forever, daemon=True)

    def output(self, name: str) -> dict[str, Any]:
        """Return an output that sends here, and waits for as long as it has to."""
        url = f"http://{HOST}:{self.server_address[1]}/{name}"
        return {"type": "http", "url": url, "timeout_seconds": 3600}

    def wait_until_asked(self, name: str) -> None:
        """Wait until something waits to be taken."""
        if not self.asked[name].wait(PATIENCE):
            raise Gone(f"nothing was sent for '{name}'")

    def __enter__(self) -> Self:
        self._serving.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, cause: BaseException | None, _: TracebackType | None
    ) -> None:
        self.is_open.set()
        self.shutdown()
        self.server_close()


class _Waiting(BaseHTTPRequestHandler):
    server: Gate
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Take a batch, when that is allowed."""
        batch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = self.path[1:]
        self.server.asked[name].set()
        self.server.is_open.wait()
        self.server.taken[name].add(numbers(batch))
        try:
            self.send_response(204)
            self.end_headers()
        except OSError:
            self.close_connection = True  # who sent it has gone

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""
