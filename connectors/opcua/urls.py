"""Urls of OPC UA servers."""

from __future__ import annotations

import re

URL_FORM = "opc.tcp://host:port/path; port 4840 if it is left out"
PORT = 4840

_SCHEME = "opc.tcp://"
_URL = re.compile(
    r"opc\.tcp://(?P<host>\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[^:@/?#\[\]\s]+)"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<path>/[^?#\s]*)?"
)


def objection(text: str) -> str | None:
    """Return what is wrong with a url, without any of it: it may hold a secret."""
    if not text.startswith(_SCHEME):
        return f"it does not begin with {_SCHEME}"
    parts = _URL.fullmatch(text)
    if parts is None:
        if "@" in text:
            return "it holds an '@': the user and the password are keys of their own"
        return "its host or its port is malformed, or something else than a path follows"
    if parts["port"] is not None and not 0 < int(parts["port"]) < 65536:
        return "its port is not a number from 1 to 65535"
    return None


def dialled(text: str) -> tuple[str, str]:
    """Return a url to which there is no `objection` with its port, and its host and port."""
    parts = _URL.fullmatch(text)
    assert parts is not None
    where = f"{parts['host']}:{parts['port'] or PORT}"
    return f"{_SCHEME}{where}{parts['path'] or ''}", where
