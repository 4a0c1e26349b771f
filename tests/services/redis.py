"""Redis, which keeps its data in an append-only file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.services.programs import program
from tests.services.server import Service


class Redis(Service):
    """A Redis server; with a user or a password, nobody else gets in."""

    ready = "Ready to accept connections"

    def __init__(
        self, folder: Path, *, password: str | None = None, user: str | None = None, **options: Any
    ) -> None:
        """Take credentials: a password alone is that of the default user."""
        super().__init__(folder, **options)
        self.password, self.user = password, user

    @property
    def url(self) -> str:
        """The address with the credentials."""
        scheme = "redis" if self.tls is None else "rediss"
        sign_in = "" if self.password is None else f"{self.user or ''}:{self.password}@"
        return f"{scheme}://{sign_in}{self.address}"

    def command(self) -> Sequence[str | Path]:
        return [program("redis-server", "install 'redis-server'"), self.folder / "redis.conf"]

    def prepare(self) -> None:
        (self.folder / "redis.conf").write_text("\n".join([*self._config(), *self.extra, ""]))

    def answers(self) -> bool:
        # Whoever is not signed in is told so: that is an answer, too.
        return self.talk(b"PING\r\n", tls=self.tls is not None)[:1] in (b"+", b"-")

    def _config(self) -> Iterator[str]:
        yield from [f"bind {self.host}", f'dir "{self.folder}"', 'save ""', "appendonly yes"]
        yield from self._listening()
        if self.user is not None:
            yield "user default off"
            yield f"user {self.user} on >{self.password} ~* &* +@all"
        elif self.password is not None:
            yield f"requirepass {self.password}"

    def _listening(self) -> Iterator[str]:
        if self.tls is None:
            yield f"port {self.port}"
            return
        yield from ["port 0", f"tls-port {self.port}"]
        yield f'tls-ca-cert-file "{self.tls.ca_file}"'
        yield f'tls-cert-file "{self.tls.server_cert_file}"'
        yield f'tls-key-file "{self.tls.server_key_file}"'
        yield f"tls-auth-clients {'yes' if self.mutual else 'no'}"
