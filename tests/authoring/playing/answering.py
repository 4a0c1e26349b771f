"""A server that `http` transforms ask: one that is there, and what a play has of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from headrace.authoring.language.replies import replies
from headrace.authoring.playing.scenario import Replies
from headrace.compiler.config.program import Program

NOWHERE = "127.0.0.1:9"
"""Stands in what is drawn for the address of the server."""
CLOSED = "http://127.0.0.1:1/"
"""Where nobody listens."""
MARK = {"c": 1}
ANSWERS: Mapping[str, Any] = {
    "echo": {"$echo": MARK},
    "more": {"$body": [{"a": 1, "b": ""}, {"a": 2}]},
    "nothing": {"$body": []},
    "object": {"$body": {"a": 1}},
    "busy": 503,
    "no": {"$status": 404, "$body": {"error": "no"}},
}
"""What is answered, by path, as a test writes it."""


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        written = ANSWERS[self.path.strip("/")]
        status = written if isinstance(written, int) else written.get("$status", 200)
        body = b"" if isinstance(written, int) else _text(_body(written, asked))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _body(written: Mapping[str, Any], asked: list[Any]) -> Any:
    if "$echo" in written:
        return [{**each, **MARK} if isinstance(each, dict) else each for each in asked]
    return written["$body"]


def _text(body: Any) -> bytes:
    """Return what a play answers with, to the byte: the beginning of a refusal is shown."""
    return json.dumps(body, separators=(",", ":")).encode()


@contextmanager
def answering() -> Iterator[str]:
    """Run the server for as long as the block lasts; give its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def replies_of(program: Program) -> dict[tuple[str, int], Replies]:
    """Return what a play answers to the transforms of a program."""
    return {
        (str(config.id), index): replies(_written(each.dump()["url"]))[0]
        for config in program.pipelines
        for index, each in enumerate(config.transforms)
        if each.asks
    }


def _written(url: str) -> Any:
    return "down" if url == CLOSED else ANSWERS[urlsplit(url).path.strip("/")]
