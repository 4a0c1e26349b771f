"""What the tests know of one kind of broker: its server, its configs, and clients of its own driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar

from tests.services.authority import Authority
from tests.services.server import Service

Json = dict[str, Any]


class Channel(ABC):
    """An open connection to publish over."""

    @abstractmethod
    async def send(self, payloads: Sequence[bytes]) -> None:
        """Publish, and return when the broker has confirmed all of it."""


class Kind(ABC):
    """One kind of broker."""

    name: ClassVar[str]
    place: ClassVar[str]
    """The option that names what is read or written: `topic`, `subject`, `channel`."""
    keeps: ClassVar[bool] = False
    """Whether the broker keeps what a reader has not acknowledged, so that nothing has to be lost."""
    lost: ClassVar[tuple[type[BaseException], ...]]
    """What the driver raises when the broker is gone."""
    reads: ClassVar[Json] = {}
    """Options of an input that loses nothing, if the kind has any."""
    writes: ClassVar[Json] = {}
    """Options of an output that loses nothing, if the kind has any."""

    @abstractmethod
    def server(self, folder: Path, **options: Any) -> Service:
        """Return a server that anybody may use; it is not started."""

    def lasting(self, folder: Path) -> Service:
        """Return one that finds everything again when it was killed, at whatever price."""
        return self.server(folder)

    def roomy(self, folder: Path) -> Service:
        """Return one that takes messages of 20 MB, several at once."""
        return self.server(folder)

    @abstractmethod
    def guarded(self, folder: Path, authority: Authority, user: str, password: str) -> Service:
        """Return a server that talks TLS and lets one user in."""

    @abstractmethod
    def connection(self, server: Any, *, user: str = "", password: str = "", **tls: Any) -> Json:
        """Return a connection to a server; the password may be a template."""

    def input(self, connection: str, place: str, **more: Any) -> Json:
        """Return an input that loses as little as the kind allows."""
        place = {"connection": connection, self.place: place}
        return {"type": self.name, **place, **self.reads, **more}

    def output(self, connection: str, place: str, **more: Any) -> Json:
        """Return an output that loses as little as the kind allows."""
        place = {"connection": connection, self.place: place}
        return {"type": self.name, **place, **self.writes, **more}

    @abstractmethod
    def dial(self, server: Any, place: str) -> AbstractAsyncContextManager[Channel]:
        """Open a connection to publish over."""

    @abstractmethod
    def listen(
        self, server: Any, place: str, heard: Callable[[], None]
    ) -> AsyncIterator[Sequence[bytes]]:
        """Read what is published, from the moment ``heard`` is called on, over one connection."""

    def create(self, server: Any, place: str) -> None:
        """Make a place that is not made by itself."""

    async def told_of(self, server: Any, place: str) -> None:
        """Return when a broker knows that something was done, if its reader lets it wait for that."""

    def __repr__(self) -> str:
        return self.name
