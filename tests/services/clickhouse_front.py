"""The engine of ClickHouse (chdb, a library) behind its HTTP interface: a process of the tests.

    python clickhouse_front.py PORT DATA [--user USER --password PASSWORD] [--cert FILE --key FILE]

The engine is real: types, tables, formats, error codes and texts. The front is ours: one user, one
query at a time, no summaries, no asynchronous inserts, and settings count for SELECT and INSERT only.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import re
import ssl
import sys
import tempfile
import threading
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

NOT_SETTINGS = re.compile(
    r"query|database|user|password|query_id|session_\w+|default_format|compress|decompress|role"
    r"|wait_end_of_query|enable_http_compression|client_protocol_version|param_\w+"
    r"|(wait_for_)?async_insert"
)
"""Parameters of a request that the server itself takes, or that this front has no use for."""
CODE = re.compile(r"Code: (\d+)")
FORMAT = re.compile(r"\bFORMAT\s+(\w+)\s*$", re.IGNORECASE)
INSERT = re.compile(r"\s*INSERT\s+INTO\b", re.IGNORECASE)
SELECT = re.compile(r"\s*SELECT\b(?!.*\bSETTINGS\b)", re.IGNORECASE | re.DOTALL)
STATEMENT_FIRST = re.compile(rb"(\s*INSERT\s+INTO\b[^\n]*\bFORMAT\s+\w+)[ \t]*\n", re.IGNORECASE)
STATUS = {"60": 404, "81": 404, "516": 403, "62": 400, "47": 400, "27": 400, "53": 400}
"""HTTP statuses of exception codes; every other is a 500."""
AUTHENTICATION_FAILED = (
    "Code: 516. DB::Exception: {user}: Authentication failed: password is incorrect, or there is no"
    " user with such name.\n\nIf you use ClickHouse Cloud, the password can be reset on the settings"
    " page. (AUTHENTICATION_FAILED) (version 26.5.1.1 (official build))\n"
)


@dataclass(frozen=True)
class Query:
    """A statement, what it is to be run with, and the rows that came with it."""

    text: str
    database: str
    rows: bytes
    settings: Mapping[str, str]
    parameters: Mapping[str, str]
    default_format: str

    @property
    def format(self) -> str:
        """How rows come, or how the answer is to be written."""
        said = FORMAT.search(self.text)
        return said[1] if said else self.default_format


class Engine:
    """The one engine of this process, asked by one thread at a time."""

    def __init__(self, data: Path) -> None:
        for name in ("pyarrow", "pandas", "numpy"):  # for data frames, which nobody asks for
            if importlib.util.find_spec(name) is None:
                sys.modules[name] = _Absent(name)
        from chdb import session

        data.mkdir(parents=True, exist_ok=True)
        self._session = session.Session(str(data))
        self._turn = threading.Lock()
        self._session.query("CREATE DATABASE IF NOT EXISTS default")

    def run(self, query: Query) -> bytes:
        """Return what is answered. Raises RuntimeError with the exception of the engine."""
        with self._turn:
            self._session.query(f"USE `{query.database}`")
            if INSERT.match(query.text) and query.rows:
                return self._insert(query)
            named = {"params": query.parameters} if query.parameters else {}
            return self._asked(_with_settings(query), query.format, **named)

    def unpacked(self, packed: bytes, encoding: str) -> bytes:
        """Return what was compressed."""
        with self._turn, _file(packed) as file:
            select = f"SELECT * FROM file('{file}', 'RawBLOB', 's String', '{encoding}')"
            return self._asked(select, "RawBLOB")

    def _insert(self, query: Query) -> bytes:
        """Insert rows from a file: the engine takes no others that are binary."""
        into = FORMAT.sub("", query.text)
        settings = ", ".join(f"{name}='{value}'" for name, value in query.settings.items())
        with _file(query.rows) as file:
            settings = f"SETTINGS {settings} " if settings else ""
            return self._asked(
                f"{into} FROM INFILE '{file}' {settings}FORMAT {query.format}", "TSV"
            )

    def _asked(self, text: str, format: str, **named: Any) -> bytes:
        answer = self._session.query(text, format, **named)
        return bytes(answer.bytes() or b"")


def _settings(query: Query) -> str:
    assigned = ", ".join(f"{name}='{value}'" for name, value in query.settings.items())
    return f"SETTINGS {assigned} " if assigned else ""


def _with_settings(query: Query) -> str:
    """Return a statement with the settings of its request, where the engine takes them."""
    if not SELECT.match(query.text):
        return query.text
    return f"{FORMAT.sub('', query.text)} {_settings(query)}FORMAT {query.format}"


class _Absent(types.ModuleType):
    """A module of which only names are wanted."""

    def __getattr__(self, name: str) -> type:
        return type(name, (), {})


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name


class Front(BaseHTTPRequestHandler):
    """ClickHouse's HTTP interface, as far as clients of it go in the tests."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    engine: Engine
    user: str
    password: str

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer, whatever the method."""
        body = self._body()
        if urlsplit(self.path).path == "/ping":
            return self._answer(200, b"Ok.\n")
        asked = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        if self._credentials(asked) != (self.user, self.password):
            said = AUTHENTICATION_FAILED.format(user=self._credentials(asked)[0])
            return self._fail("516", said)
        try:
            self._answer(200, self.engine.run(self._query(asked, body)))
        except RuntimeError as cause:
            found = CODE.search(str(cause))
            self._fail(found[1] if found else "1002", str(cause))

    do_POST = do_GET

    def _query(self, asked: dict[str, str], body: bytes) -> Query:
        text = asked.get("query", "")
        if not text and (first := STATEMENT_FIRST.match(body)):
            text, body = first[1].decode(), body[first.end() :]
        elif not text:
            text, body = body.decode(), b""
        return Query(
            text,
            asked.get("database") or self.headers.get("X-ClickHouse-Database") or "default",
            body,
            {name: each for name, each in asked.items() if not NOT_SETTINGS.fullmatch(name)},
            {name[6:]: each for name, each in asked.items() if name.startswith("param_")},
            asked.get("default_format", "TabSeparated"),
        )

    def _credentials(self, asked: Mapping[str, str]) -> tuple[str, str]:
        # A client writes UTF-8, and the headers of a request are read as Latin-1 here.
        user, key = (
            self.headers.get(f"X-ClickHouse-{name}", "")
            .encode("latin-1")
            .decode("utf-8", "replace")
            for name in ("User", "Key")
        )
        if user:
            return user, key
        scheme, _, basic = self.headers.get("Authorization", "").partition(" ")
        if scheme == "Basic":
            user, _, key = _decoded(basic).partition(":")
            return user, key
        return asked.get("user", "default"), asked.get("password", "")

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = b"".join(self._chunks())
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        encoding = self.headers.get("Content-Encoding")
        return self.engine.unpacked(body, encoding) if body and encoding else body

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _fail(self, code: str, said: str) -> None:
        self._answer(STATUS.get(code, 500), said.encode(), ("X-ClickHouse-Exception-Code", code))

    def _answer(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", "text/plain; charset=UTF-8"),
            ("Content-Length", str(len(body))),
            ("X-ClickHouse-Timezone", "UTC"),
            ("X-ClickHouse-Summary", json.dumps({"written_rows": "0"})),
            *headers,
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _decoded(basic: str) -> str:
    return base64.b64decode(basic).decode()


class Server(ThreadingHTTPServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    """Serve until it is ended."""
    options = argparse.ArgumentParser()
    options.add_argument("port", type=int)
    options.add_argument("data", type=Path)
    options.add_argument("--user", default="default")
    options.add_argument("--password", default="")
    options.add_argument("--cert")
    options.add_argument("--key")
    chosen = options.parse_args()
    Front.engine, Front.user, Front.password = Engine(chosen.data), chosen.user, chosen.password
    server = Server(("127.0.0.1", chosen.port), Front)
    if chosen.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chosen.cert, chosen.key)
        server.socket = context.wrap_socket(server.socket, True, do_handshake_on_connect=False)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
