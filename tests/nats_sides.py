"""Both sides of a NATS server: our components, and somebody who speaks the protocol by hand."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.edges import Arrival
from headrace.connectors.nats import NatsConnection, NatsInput, NatsOutput
from headrace.connectors.nats.connection import Limits
from headrace.connectors.nats.sink import NatsSink
from headrace.connectors.nats.source import NatsSource
from tests.clients import PATIENCE
from tests.connected import Reader
from tests.doubles import StubContext
from tests.services.nats import Nats


class Peer:
    """A client that sends what it is told, octet by octet."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def publish(
        self, subject: str | bytes, *payloads: Any, reply: str = "", headers: bytes = b""
    ) -> None:
        """Publish payloads: octets as they are, anything else as JSON."""
        name = subject.encode() if isinstance(subject, str) else subject
        for payload in payloads:
            body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            verb, sizes = (b"HPUB", b"%d " % len(headers)) if headers else (b"PUB", b"")
            sizes += b"%d" % (len(headers) + len(body))
            self.say(b" ".join([verb, name, reply.encode(), sizes]), headers + body)

    def say(self, *lines: bytes) -> None:
        """Send lines of the protocol."""
        self._writer.write(b"".join(line + b"\r\n" for line in lines))

    async def settle(self) -> None:
        """Wait until the server has dealt with all that was said."""
        self.say(b"PING")
        await self._line(b"PONG")

    async def subscribe(self, subject: str) -> None:
        """Have what is published from now on kept for `next`."""
        self.say(f"SUB {subject} 1".encode())
        await self.settle()

    async def next(self) -> tuple[str, Any]:
        """Return subject and JSON value of the next message."""
        subject, body = await self.next_payload()
        return subject, json.loads(body)

    async def next_payload(self) -> tuple[str, bytes]:
        """Return subject and payload of the next message."""
        _, subject, *_, size = (await self._line(b"MSG")).split()
        async with asyncio.timeout(PATIENCE):
            body = await self._reader.readexactly(int(size) + 2)
        return subject.decode(), body.removesuffix(b"\r\n")

    async def several(self, count: int) -> list[Any]:
        """Return the values of the next messages."""
        return [(await self.next())[1] for _ in range(count)]

    async def _line(self, begins: bytes) -> bytes:
        """Return the next line of one kind; a line of any other kind is passed over."""
        async with asyncio.timeout(PATIENCE):
            while not (line := await self._reader.readline()).startswith(begins):
                assert line, "the server hung up"
            return line


@asynccontextmanager
async def peer(server: Nats, **signing_in: str) -> AsyncIterator[Peer]:
    """Sign in at a server without TLS."""
    reader, writer = await asyncio.open_connection(server.host, server.port, limit=2**25)
    try:
        it = Peer(reader, writer)
        options = {"verbose": False, "headers": True, "lang": "none", "version": "1", **signing_in}
        it.say(b"CONNECT " + json.dumps(options).encode())
        await it.settle()
        yield it
    finally:
        writer.close()


def signalled(server: Nats, number: signal.Signals) -> int:
    """Send the server a signal, and return its process id: it stands in each line of its log."""
    process = int(re.findall(r"^\[(\d+)\]", server.log(), re.MULTILINE)[-1])
    os.kill(process, number)
    return process


def context(urls: Nats | str, *, clock: Clock | None = None, **options: Any) -> StubContext:
    """Return a context that has a connection 'bus'."""
    text = urls if isinstance(urls, str) else urls.url
    connection = NatsConnection.load({"urls": text, **options})
    return StubContext(connections={"bus": connection}, clock=clock)


def source(
    ctx: StubContext, subject: str, limits: Limits | None = None, **options: Any
) -> NatsSource:
    """Return a built input."""
    config = NatsInput.load({"connection": "bus", "subject": subject, **options})
    built = config.source(ctx, limits)
    assert isinstance(built, NatsSource)
    return built


async def arrived(reader: Reader, count: int) -> list[Arrival]:
    """Return the next arrivals, at least so many."""
    found: list[Arrival] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < count:
            found += await anext(reader)
    return found


async def payloads(reader: Reader, count: int) -> list[bytes]:
    """Return the payloads of the next arrivals."""
    return [payload for payload, _ in await arrived(reader, count)]


@asynccontextmanager
async def sink(
    ctx: StubContext, subject: str, limits: Limits | None = None, **options: Any
) -> AsyncIterator[NatsSink]:
    """Start an output; finish it in the end."""
    config = NatsOutput.load({"connection": "bus", "subject": subject, **options})
    built = config.open(ctx, limits)
    assert isinstance(built, NatsSink)
    try:
        await built.start()
        yield built
    finally:
        await built.finish()


Served = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Served) -> AsyncIterator[str]:
    """Give the address of a server of our own."""
    writers = []

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in writers:
            writer.close()
