"""What no server may say, everything that one says, and a server that repeats what it is sent."""

from __future__ import annotations

import base64
import html
import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from headrace.web.resources import ENDPOINTS, STREAMS
from headrace.web.resources.events import EVENTS_PATH
from tests.clients import HOST, Answer
from tests.server import Server

TOKEN = "t0ken&s3same=open/42"
DOOR = "d00r-k3y.for-posts"
FILED = "from-the-secrets-file+1"
INLINE = "in%2Fthe%40url%21%26%C3%B6%3C"
"""As it stands in a url that a config spells out."""


USER = "operator-seven"
WRONG = "wr0ng&passw0rd/1"
LOGIN = "/api/auth/login"
JSON_HEADERS = {"Content-Type": "application/json"}
NAMED = {"pipeline_id": "p", "letter_id": "1", "bucket": "none", "asset": "start.js"}
VALUES = (TOKEN, DOOR, FILED, INLINE, unquote(INLINE))


def spellings(value: str) -> set[str]:
    """Return how a value may come out, whole."""
    basic = [base64.b64encode(text.encode()).decode() for text in (value, f"app:{value}")]
    quoted = [quote(value), quote(value, safe=""), quote_plus(value), quote(value).lower()]
    escaped = [json.dumps(value)[1:-1], repr(value)[1:-1], repr(value.encode())[2:-1]]
    escaped += [html.escape(value), referred(value), ascii(value)[1:-1]]
    return {value, *basic, *quoted, *escaped}


def referred(value: str) -> str:
    """Return a text with each of its characters as a reference of HTML."""
    return "".join(f"&#{ord(character)};" for character in value)


class Told:
    """Everything that a server says to anybody, by who said it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._answers: list[tuple[str, bytes]] = []
        self._events = server.events()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request and keep the answer."""
        client = self._server.client()
        octets = None if body is None else json.dumps(body).encode()
        answer = client.request(method, path, octets, headers)
        self._answers.append((f"{method} {path}", repr(dict(answer.headers)).encode()))
        self._answers.append((f"{method} {path}", answer.body))
        return answer

    def forget(self, answer: Answer) -> None:
        """Drop what was answered, because it shows what was sent."""
        self._answers = [(who, text) for who, text in self._answers if text != answer.body]

    def ask_everything(self, **captured: str) -> None:
        """Read all that can be read."""
        for row in ENDPOINTS:
            if row.method == "GET" and row.path not in STREAMS:
                self.ask("GET", row.path.format_map(NAMED | captured))

    def history(self) -> list[tuple[str, str]]:
        """End the server and return all texts."""
        self._server.stop()
        logged = {"stdout": self._server.out, "stderr": self._server.err}
        return [
            *((who, text.decode()) for who, text in self._answers),
            *((EVENTS_PATH, line.decode()) for line in self._events.lines()),
            *((stream, line) for stream, lines in logged.items() for line in lines.all()),
        ]


def leaks(history: Iterable[tuple[str, str]], values: Sequence[str] = VALUES) -> list[str]:
    """Return who told which value."""
    wanted = {spelling: value for value in values for spelling in spellings(value)}
    return [
        f"{who}: {value!r} in {text[max(0, text.index(spelling) - 200) :][:500]!r}"
        for who, text in history
        for spelling, value in wanted.items()
        if spelling in text
    ]


class Echo(BaseHTTPRequestHandler):
    """Refuses whatever is posted, and shows what it was sent, as debugging servers do."""

    def do_POST(self) -> None:
        sent = self.headers.get("Authorization", "")
        scheme, _, credential = sent.partition(" ")
        decoded = base64.b64decode(credential) if scheme == "Basic" else credential.encode()
        said = f"no: {dict(self.headers)} {self.path} ".encode() + decoded
        said += quote(decoded).encode() + json.dumps(decoded.decode()).encode()
        if self.path.startswith("/page"):
            said = f"no: {{ {html.escape(decoded.decode())} {referred(decoded.decode())}".encode()
            said += ascii(decoded.decode()).encode()
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(int(self.path.rpartition("/")[2]))
        self.send_header("Content-Length", str(len(said)))
        self.send_header(
            "Location", f"http://app:{credential}@{self.headers['Host']}/500?{quote(decoded)}"
        )
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def echo() -> Iterator[str]:
    """Run such a server; give host and port."""
    server = ThreadingHTTPServer((HOST, 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
