"""Servers that say the same for ever, whoever asks: what a client takes of it is counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Evil:
    """A server at ``where``: a greeting to whoever says something, and then the same without end."""

    def __init__(self, greeting: bytes, rest: bytes) -> None:
        self._greeting, self._rest = greeting, rest
        self.taken = 0
        """Bytes that were taken by all clients together."""
        self.where = ""
        self._talking: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def meet(self, reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        """Talk to one more client."""
        self._talking[asyncio.ensure_future(self._talk(reader, out))] = out

    async def end(self) -> None:
        """Hang up on all clients."""
        for out in self._talking.values():
            out.transport.abort()
        await asyncio.gather(*self._talking)

    async def _talk(self, reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read(1000)
            out.write(self._greeting)
            while self._rest:
                out.write(self._rest)
                await out.drain()
                self.taken += len(self._rest)
            await reader.read()
        out.transport.abort()


@asynccontextmanager
async def evil(greeting: bytes, rest: bytes) -> AsyncIterator[Evil]:
    """Give such a server; without a ``rest`` it is silent after its greeting."""
    it = Evil(greeting, rest)
    server = await asyncio.start_server(it.meet, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    it.where = f"{host}:{port}"
    try:
        yield it
    finally:
        server.close()
        await it.end()
