"""The ClickHouse output as a component of a test, and a server in front of which an answer can be lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

import pytest

from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import HeadraceError
from headrace.connectors.clickhouse import ClickHouseConnection, ClickHouseOutput
from headrace.connectors.clickhouse.connection import Limits
from tests.clients import HOST, PATIENCE
from tests.doubles import StubContext
from tests.peer import Peer, peer
from tests.services.clickhouse import Access
from tests.stopwatch import Stopwatch

TYPES = [
    *("text", "integer", "bigint", "float", "decimal"),
    *("boolean", "timestamp", "date", "uuid", "json"),
]
EVERY = [{"name": f"a_{kind}", "type": kind} for kind in TYPES]
"""A column of each type."""
N = {"name": "n", "type": "integer"}


def connection(access: Access, **options: Any) -> ClickHouseConnection:
    """Return the connection to a server; its password is a secret."""
    return ClickHouseConnection.load(
        {
            "url": access.url,
            "database": access.database,
            "user": access.user,
            "password": "${PASSWORD}",
            "allow_http": True,
            **options,
        }
    )


def context(access: Access, *, tls: Mapping[str, Any] | None = None, **options: Any) -> StubContext:
    """Return a context whose connection `ch` is that server."""
    secrets = {"PASSWORD": access.password}
    return StubContext(
        connections={"ch": connection(access, **(tls or {}))}, secrets=secrets, **options
    )


def output(table: str, *columns: Mapping[str, Any], **options: Any) -> ClickHouseOutput:
    """Return an output with these columns."""
    mapped = {"columns": list(columns)} if columns else {}
    return ClickHouseOutput.load({"connection": "ch", "table": table, **mapped, **options})


@asynccontextmanager
async def started(
    made: ClickHouseOutput, ctx: StubContext, limits: Limits | None = None
) -> AsyncIterator[AwaitingSink]:
    """Give a sink that is started; finish it in the end."""
    sink = made.open(ctx, limits)
    assert isinstance(sink, AwaitingSink)
    async with asyncio.timeout(PATIENCE):
        await sink.start()
        try:
            yield sink
        finally:
            await sink.finish()


async def wrote(
    clickhouse: Access, table: str, batch: list[Any], *columns: Any, **options: Any
) -> list[list[Any]]:
    """Write a batch, and return the rows that the table has then."""
    async with started(output(table, *columns, **options), context(clickhouse)) as it:
        await it.write(batch)
    names = ", ".join(f'"{each["name"]}"' for each in columns) or "payload"
    return clickhouse.rows(f"SELECT {names} FROM {table}")


@contextmanager
def named(access: Access) -> Iterator[str]:
    """Give the name of a table that is not there, and is gone afterwards."""
    name = f"t_{uuid4().hex}"
    yield name
    access.ask(f"DROP TABLE IF EXISTS {name}")


def said(failed: pytest.ExceptionInfo[Any], clickhouse: Access) -> str:
    """Return what a failure says, but for where."""
    text = str(failed.value)
    assert text.startswith(f"{clickhouse.where} says ")
    return text.removeprefix(f"{clickhouse.where} says ")


def sink(
    access: Access,
    *columns: Any,
    ctx: StubContext | None = None,
    limits: Limits | None = None,
    **options: Any,
) -> AwaitingSink:
    """Return a sink for the table `t` that has not connected."""
    made = output("t", *(columns or [N]), **options).open(ctx or context(access), limits)
    assert isinstance(made, AwaitingSink)
    return made


async def fault(access: Access, **options: Any) -> HeadraceError:
    """Return why a sink does not start; it has to be known within 6 seconds."""
    watch = Stopwatch()
    with pytest.raises(HeadraceError) as told:
        await sink(access, **options).start()
    assert watch.seconds < 6
    return told.value


@asynccontextmanager
async def answering(*answers: Callable[..., Any]) -> AsyncIterator[tuple[Peer, Access]]:
    """Give an HTTP server that is no ClickHouse; it gives these answers."""
    async with peer() as it:
        it.answers = [*answers]
        yield it, Access(it.origin, "u", "p@ss-w0rd", "d")


class Passage:
    """Hands everything to and fro between clients and a server, and counts the requests.

    Told to `lose` an answer, it lets the next insert through and hangs up instead of answering. Told
    to `cut` one, it hangs up when the next insert begins.
    """

    def __init__(self, access: Access) -> None:
        host, _, port = access.where.partition(":")
        self._target = (host, int(port))
        self._access = access
        self._loses, self._cuts = 0, False
        self._clients: list[asyncio.StreamWriter] = []
        self.connections = 0
        self.inserts = 0

    @property
    def access(self) -> Access:
        """How to get to the server by this way."""
        url = f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}"
        return Access(url, self._access.user, self._access.password, self._access.database)

    def lose(self, answers: int = 1) -> None:
        """Lose the answers to the next inserts."""
        self._loses = answers

    def cut(self) -> None:
        """Let nothing of the next insert through."""
        self._cuts = True

    def close(self) -> None:
        """Let nobody else in; who is in goes on."""
        self._server.close()

    async def __aenter__(self) -> Passage:
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for each in self._clients:
            each.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, client: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._clients.append(writer)
        server, there = await asyncio.open_connection(*self._target)
        try:
            while head := await _head(client):
                is_insert = b"query=INSERT" in head
                if is_insert and self._cuts:
                    self._cuts = False
                    writer.transport.abort()
                    return
                there.write(head + await client.readexactly(_length(head)))
                answer = await _head(server)
                answer += await server.readexactly(_length(answer))
                self.inserts += is_insert
                if is_insert and self._loses:
                    self._loses -= 1
                    return
                writer.write(answer)
        finally:
            writer.close()
            there.transport.abort()


async def _head(reader: asyncio.StreamReader) -> bytes:
    """Return the head of a message; nothing when the connection is closed."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
