"""Where NATS servers are and who we are to them, as the urls of a connection say it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from headrace.compiler.text.diagnostics import Fault

PORT = 4222
EXPECTED = "nats://host:port or tls://host:port, with user:password@ or token@ before the host"

_NOT_IN_A_HOST = re.compile(r"[\x00-\x20\x7f\"#%/<>?\\^`{|}]")


@dataclass(frozen=True)
class NatsServer:
    """One server, and the credentials to present there. A token excludes the other two."""

    host: str
    port: int
    tls: bool
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """Host and port, as people write them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def schemes(urls: str) -> Iterator[str]:
    """Yield what stands before the host of each url: its scheme, ``nats`` where there is none."""
    for url in urls.split(","):
        scheme, is_given, _ = url.strip().partition("://")
        yield scheme.lower() if is_given else "nats"


def servers_in(urls: str, *, tls: bool) -> list[NatsServer] | Fault:
    """Return the servers that comma separated urls name; or what is wrong, without quoting them.

    ``tls`` has all of them use TLS; otherwise those with the scheme ``tls://`` do.
    """
    found = []
    for place, url in enumerate(urls.split(","), 1):
        server = _server(url.strip(), tls)
        if isinstance(server, str):
            which = "this" if "," not in urls else f"url {place} of {urls.count(',') + 1}"
            return Fault(
                "not-a-url", f"{which} is no url of a NATS server: {server}", None, EXPECTED
            )
        found.append(server)
    return found


def _server(url: str, tls: bool) -> NatsServer | str:
    """Return the server of one url, or what is wrong with that."""
    [scheme] = schemes(url)
    if scheme not in ("nats", "tls"):
        return "its scheme is neither nats nor tls"
    # The last @: a password may hold one that should have been encoded.
    credentials, _, place = url.rpartition("://")[2].rpartition("@")
    try:
        parts = urlsplit(f"//{place.removesuffix('/')}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return "its host or its port is malformed"
    if objection := _objection(parts):
        return objection
    user, has_password, password = credentials.partition(":")
    return NatsServer(
        host=host or "",
        port=PORT if port is None else port,
        tls=tls or scheme == "tls",
        user=unquote(user) if has_password else None,
        password=unquote(password) if has_password else None,
        token=unquote(user) if user and not has_password else None,
    )


def _objection(parts: SplitResult) -> str | None:
    if not parts.hostname:
        return "it names no host"
    if parts.path or parts.query or parts.fragment:
        return "nothing may follow the port"
    if parts.port == 0:
        return "its port is not a number from 1 to 65535"
    if _NOT_IN_A_HOST.search(parts.hostname):
        return "its host or its port is malformed"
    return None
