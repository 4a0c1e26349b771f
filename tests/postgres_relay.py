"""A relay in front of a PostgreSQL server: what goes over it can be kept, and cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.clients import HOST
from tests.services.postgres import Postgres


class Relay:
    """Hands on what both sides say, as long as it is to."""

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.is_mute = False
        """Whether what the server says is kept from the client."""
        self.is_away = False
        """Whether a client is hung up on at once."""

    def cut(self) -> None:
        """Hang up on all, without a word."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hand on what one client says and is told."""
        if self.is_away:
            writer.transport.abort()
            return
        answers, asked = await asyncio.open_connection(self._server.host, self._server.port)
        self._writers |= {writer, asked}
        telling = asyncio.ensure_future(self._hand_on(answers, writer, is_answer=True))
        self._tasks.add(telling)
        telling.add_done_callback(self._tasks.discard)
        await self._hand_on(reader, asked)

    async def _hand_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_answer: bool = False,
    ) -> None:
        with suppress(OSError):
            while some := await reader.read(1 << 16):
                if not (is_answer and self.is_mute):
                    writer.write(some)
                    await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def relayed(server: Postgres) -> AsyncIterator[Relay]:
    """Give a relay in front of a server."""
    relay = Relay(server)
    listener = await asyncio.start_server(relay.serve, HOST, 0)
    relay.port = listener.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        relay.cut()
        listener.close()
