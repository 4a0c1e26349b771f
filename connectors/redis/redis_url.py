"""Urls of Redis servers: read as the driver reads them, without the settings that it takes from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote

URL_FORM = "redis://[user:password@]host[:port][/database], or rediss:// for TLS"
PORT = 6379

_SCHEME = re.compile(r"rediss?://", re.IGNORECASE)
# As the driver reads it: the first colon ends the user, the last @ the password.
_URL = re.compile(
    r"(?P<scheme>rediss?)://"
    r"(?:(?P<user>[^:/?#\s]*)(?::(?P<password>[^/?#\s]*))?@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[^:@/?#\[\]\s]+)"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/(?P<database>[0-9]{0,9}))?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class RedisUrl:
    """What a url says. Its repr is without the credentials."""

    is_tls: bool
    user: str
    password: str
    host: str
    port: int
    database: int

    def __repr__(self) -> str:
        return f"RedisUrl({self.where!r})"

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a url to which there is no `objection`."""
        parts = _URL.fullmatch(text)
        assert parts is not None
        return cls(
            is_tls=parts["scheme"].lower() == "rediss",
            user=unquote(parts["user"] or ""),
            password=unquote(parts["password"] or ""),
            host=parts["host"].strip("[]"),
            port=int(parts["port"] or PORT),
            database=int(parts["database"] or 0),
        )

    @property
    def where(self) -> str:
        """Host and port: what texts call the server."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def objection(text: str) -> str | None:
    """Return what is wrong with a url, without any of it: it may hold a password."""
    if not _SCHEME.match(text):
        return "it does not begin with redis:// or rediss://"
    parts = _URL.fullmatch(text)
    if parts is not None:
        wrong = parts["port"] is not None and not 0 < int(parts["port"]) < 65536
        return "its port is not a number from 1 to 65535" if wrong else None
    if "?" in text:
        # The driver takes any of its settings from there, and a config is not to reach those.
        return "it holds a '?', and a url sets no options (in a password, write %3F)"
    return "it is of another form (in a user or a password, write %2F for '/', %23 for '#', %40 for '@')"
