"""What a server sends, looked at before the driver gets it.

The driver trusts who it talks to. Zeros are messages without end to it, which it takes without a turn of
the loop, and nothing else runs any more; it hashes a password as often as it is told to, in one go as
well; and it keeps whatever is sent, of any size. So whoever is no PostgreSQL is hung up on here.

Source: https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

MOST_AT_FIRST = 1 << 20
"""Bytes that a server may send until it lets us in, and of its settings later on."""
MOST_ANSWERED = 64 << 20
"""Bytes of one answer: the largest of ours is an error that quotes a value."""
MOST_ROUNDS = 1_000_000
"""How often a password may be hashed: about half a second of the loop. The server's default is 4,096."""

_TYPES_AT_FIRST = frozenset(b"EKNRSZv")
_TYPES = frozenset(b"123ACDEGHIKNRSTVWZcdnstv")
_HEAD = 5
_AUTHENTICATION, _SETTING, _READY = b"RSZ"
_SCRAM_CONTINUES = 11
_MOST_DIGITS = 20
_ROUNDS = re.compile(rb",i=([0-9]+)")


class Strange(Exception):
    """What a server does that PostgreSQL does not; the text goes on after its name."""


class Messages:
    """Follows the messages of one connection, of which it keeps nothing but a start of a few bytes."""

    def __init__(self) -> None:
        self._head, self._body = bytearray(), bytearray()
        self._type, self._left = 0, 0
        self._answered = self._settings = 0
        self._is_in = False

    def follow(self, data: bytes) -> None:
        """Take what has arrived. Raises `Strange`."""
        place = 0
        while place < len(data):
            if not self._left:
                needed = _HEAD - len(self._head)
                self._head += data[place : place + needed]
                place += needed
                if len(self._head) == _HEAD:
                    self._begin()
            else:
                part = data[place : place + self._left]
                place += len(part)
                self._left -= len(part)
                if self._type == _AUTHENTICATION:
                    self._body += part
                    if not self._left:
                        self._authenticate()

    def _begin(self) -> None:
        self._type, size = self._head[0], int.from_bytes(self._head[1:]) - 4
        self._head.clear()
        if self._type not in (_TYPES if self._is_in else _TYPES_AT_FIRST) or size < 0:
            raise Strange("does not speak PostgreSQL")
        self._left = size
        self._count(size + _HEAD)

    def _count(self, size: int) -> None:
        self._answered += size
        if self._type == _SETTING:
            self._settings += size
        elif self._type == _READY:
            self._is_in, self._answered = True, 0
        most = MOST_ANSWERED if self._is_in else MOST_AT_FIRST
        if self._answered > most or self._settings > MOST_AT_FIRST:
            raise Strange("sends more than PostgreSQL does")

    def _authenticate(self) -> None:
        body, self._body = bytes(self._body), bytearray()
        if int.from_bytes(body[:4]) != _SCRAM_CONTINUES:
            return
        asked = _ROUNDS.search(body)
        # Of more digits than Python reads an integer from it is too often anyway.
        if asked and (len(asked[1]) > _MOST_DIGITS or int(asked[1]) > MOST_ROUNDS):
            raise Strange(f"wants the password hashed more than {MOST_ROUNDS:,} times")


class Listener(asyncio.Protocol):
    """Stands before the protocol of the driver, and hangs up on who is strange."""

    def __init__(
        self, driver: asyncio.Protocol, told: Callable[[Strange], None], transport: Any = None
    ) -> None:
        self.driver, self._told, self._transport = driver, told, transport
        self._messages = Messages()
        self.eof_received = driver.eof_received  # type: ignore[method-assign]
        self.connection_lost = driver.connection_lost  # type: ignore[method-assign]
        self.pause_writing = driver.pause_writing  # type: ignore[method-assign]
        self.resume_writing = driver.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hand it on."""
        self._transport = transport
        self.driver.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Hand on what PostgreSQL may send."""
        try:
            self._messages.follow(data)
        except Strange as strange:
            self._told(strange)
            self._transport.abort()
        else:
            self.driver.data_received(data)


class ListeningLoop:
    """The event loop as the driver is to see it: it hears of a server what a `Listener` lets through.

    ``strange`` is why it hung up, if it did.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, tls: bool) -> None:
        self._loop, self._tls = loop, tls
        self.strange: Strange | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(
        self, factory: Callable[[], asyncio.Protocol], *args: Any, **options: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect; with TLS there are no messages yet."""
        if self._tls:
            return await self._loop.create_connection(factory, *args, **options)
        transport, listener = await self._loop.create_connection(
            lambda: Listener(factory(), self._tell), *args, **options
        )
        return transport, listener.driver

    async def start_tls(self, *args: Any, **options: Any) -> Any:
        """Return the transport of what is encrypted."""
        transport = await self._loop.start_tls(*args, **options)
        return None if transport is None else ListeningTransport(transport, self._tell)

    def _tell(self, strange: Strange) -> None:
        self.strange = strange


class ListeningTransport:
    """A transport whose protocol the driver sets later."""

    def __init__(self, transport: asyncio.Transport, told: Callable[[Strange], None]) -> None:
        self._transport, self._told = transport, told

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def set_protocol(self, protocol: asyncio.Protocol) -> None:
        """Put a `Listener` before it. It knows its transport already."""
        self._transport.set_protocol(Listener(protocol, self._told, self._transport))
