"""ClickHouse: its engine behind an HTTP front of ours, or the server that ``CLICKHOUSE_URL`` names.

No package has a server of today, so tests run against the engine as a library, in a process of its own:
`clickhouse_front.py` says what of it is real. A server that is one throughout is used where the
environment names it: ``CLICKHOUSE_URL=http://user:password@host:8123/database``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import ssl
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlencode, urlsplit

from tests.clients import PATIENCE
from tests.services.programs import Missing
from tests.services.server import Service

FRONT = Path(__file__).with_name("clickhouse_front.py")
VARIABLE = "CLICKHOUSE_URL"
OURS = "real engine, our front"
WHICH = f"server of {VARIABLE}" if VARIABLE in os.environ else OURS
"""What tests run against, for their names."""


class Refusal(AssertionError):
    """The server answers with an exception, in its own words."""


@dataclass(frozen=True)
class Access:
    """Where a server is and who gets in; asked by a client as plain as they come."""

    url: str
    user: str
    password: str
    database: str
    trusting: ssl.SSLContext | None = None

    @classmethod
    def given(cls) -> Self | None:
        """Return the server that the environment names, if it does."""
        if (url := os.environ.get(VARIABLE)) is None:
            return None
        parts = urlsplit(url)
        return cls(
            f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
            unquote(parts.username or "default"),
            unquote(parts.password or ""),
            parts.path.strip("/") or "default",
        )

    @property
    def where(self) -> str:
        """Host and port."""
        return urlsplit(self.url).netloc

    def ask(self, query: str, body: bytes = b"", **settings: str) -> bytes:
        """Run a statement and return what is answered. Raises `Refusal`."""
        parts = urlsplit(self.url)
        made = HTTPConnection if self.trusting is None else HTTPSConnection
        options: dict[str, Any] = {} if self.trusting is None else {"context": self.trusting}
        connection = made(parts.hostname or "", parts.port, timeout=PATIENCE, **options)
        try:
            asked = urlencode({"database": self.database, "query": query, **settings})
            signed = {
                "X-ClickHouse-User": self.user.encode(),
                "X-ClickHouse-Key": self.password.encode(),
            }
            connection.request("POST", f"/?{asked}", body, signed)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise Refusal(answer.decode())
        return answer

    def rows(self, query: str) -> list[list[Any]]:
        """Return the rows that a statement selects; of numbers that JSON would change, the text."""
        quoted = {
            "output_format_json_quote_decimals": "1",
            "output_format_json_quote_64bit_integers": "0",
        }
        answer = self.ask(f"{query} SETTINGS {_assigned(quoted)} FORMAT JSONCompactEachRow")
        return [json.loads(line) for line in answer.splitlines()]


def _assigned(settings: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


class ClickHouse(Service):
    """The engine behind our front; with a user, nobody else gets in."""

    ready = "ready"

    def __init__(
        self, folder: Path, *, user: str = "default", password: str = "", **options: Any
    ) -> None:
        """Take credentials; without them anybody is the default user."""
        super().__init__(folder, **options)
        self.user, self.password = user, password

    @property
    def url(self) -> str:
        """The base of its HTTP interface, without the credentials."""
        return f"{'http' if self.tls is None else 'https'}://{self.address}"

    @property
    def access(self) -> Access:
        """How to get in."""
        trusting = None if self.tls is None else self.trusting()
        return Access(self.url, self.user, self.password, "default", trusting)

    def command(self) -> Sequence[str | Path]:
        if importlib.util.find_spec("chdb") is None:
            raise Missing(
                "there is no chdb: install the Python package 'chdb-core-lite' (--no-deps)"
            )
        return [sys.executable, FRONT, str(self.port), self.folder / "data", *self._options()]

    def prepare(self) -> None:
        """Nothing is read but the command line."""

    def answers(self) -> bool:
        asked = b"GET /ping HTTP/1.1\r\nHost: it\r\n\r\n"
        return self.talk(asked, tls=self.tls is not None).startswith(b"HTTP/1.1 200 ")

    def _options(self) -> Iterator[str]:
        yield from ("--user", self.user, "--password", self.password)
        if self.tls is not None:
            yield from ("--cert", str(self.tls.server_cert_file))
            yield from ("--key", str(self.tls.server_key_file))
