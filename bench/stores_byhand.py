"""Ways into a store as somebody writes them by hand, with the client library alone.

Nothing is checked but what the libraries check: a missing field is a `KeyError`, a value of a wrong type
an error of the library or whatever it makes of it. Values that JSON has no type for are converted by the
standard library, one comprehension for each column.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import date, datetime
from decimal import Decimal
from itertools import cycle, islice
from typing import Any

import msgspec

from bench import limits
from bench.load import HOST

Batch = list[dict[str, Any]]
Put = Callable[[Any], Awaitable[object]]
"""Writes one batch, or one part, and returns when the store has it."""

TYPES = {
    "machine": "text",
    "rpm": "integer",
    "strokes": "bigint",
    "temp": "float",
    "weight": "decimal",
    "is_running": "boolean",
    "taken_at": "timestamp",
    "day": "date",
    "run": "uuid",
    "settings": "json",
}
"""The ten columns: name to type, as a config has them."""
POSTGRES_TYPES = {
    "integer": "int4",
    "bigint": "int8",
    "float": "float8",
    "decimal": "numeric",
    "boolean": "bool",
    "timestamp": "timestamptz",
    "json": "jsonb",
}
MOST_SECONDS = 1.0
"""What is gathered is inserted this long after its first message at the latest."""

_encode = msgspec.json.Encoder().encode


def columns(batch: Batch) -> list[list[Any]]:
    """Return the columns of a batch, with what both libraries take for each type."""
    return [
        [m["machine"] for m in batch],
        [m["rpm"] for m in batch],
        [m["strokes"] for m in batch],
        [m["temp"] for m in batch],
        [Decimal(str(m["weight"])) for m in batch],
        [m["is_running"] for m in batch],
        [datetime.fromisoformat(m["taken_at"]) for m in batch],
        [date.fromisoformat(m["day"]) for m in batch],
        [m["run"] for m in batch],
        [_encode(m["settings"]).decode() for m in batch],
    ]


def one_by_one(put: Put, things: Sequence[Any]) -> Callable[[int], Awaitable[None]]:
    """Return what puts so many, one after the other, over and over."""

    async def work(count: int) -> None:
        for each in islice(cycle(things), count):
            await put(each)

    return work


class Inserting:
    """A loop that inserts posted messages into PostgreSQL, one `unnest` for as many as are gathered."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._held: Batch = []
        self._over: asyncio.TimerHandle | None = None
        self._gathered: asyncio.Queue[Batch] = asyncio.Queue()

    def take(self, body: bytes) -> int:
        """Decode a body, and say how many messages it had."""
        batch = limits.decode(body)
        if batch.__class__ is not list:
            batch = [batch]
        self._held += batch
        if len(self._held) >= self._least:
            self._let_go()
        elif self._over is None and batch:
            self._over = asyncio.get_running_loop().call_later(MOST_SECONDS, self._let_go)
        return len(batch)

    def _let_go(self) -> None:
        if self._over is not None:
            self._over.cancel()
            self._over = None
        if self._held:
            self._gathered.put_nowait(self._held)
            self._held = []

    async def run(self, dsn: str) -> None:
        """Insert what is gathered, for ever."""
        import asyncpg

        connection = await asyncpg.connect(dsn)
        types = [POSTGRES_TYPES.get(each, each) for each in TYPES.values()]
        made = ", ".join(f"{name} {each}" for name, each in zip(TYPES, types, strict=True))
        await connection.execute(f"CREATE TABLE by_hand ({made})")
        given = ", ".join(f"${number}::{each}[]" for number, each in enumerate(types, 1))
        insert = await connection.prepare(f"INSERT INTO by_hand SELECT * FROM unnest({given})")
        while True:
            await insert.fetch(*columns(await self._gathered.get()))


@asynccontextmanager
async def clickhouse(port: int) -> AsyncIterator[Put]:
    """Insert with a context that is kept, into a table as the pipeline has one."""
    import clickhouse_connect

    client = await clickhouse_connect.get_async_client(host=HOST, port=port, compress=False)
    await client.command("CREATE TABLE by_hand AS ours")
    context = await client.create_insert_context("by_hand", list(TYPES), column_oriented=True)

    async def insert(batch: Batch) -> None:
        context.data = columns(batch)
        await client.insert(context=context)

    try:
        yield insert
    finally:
        await client.close()


@asynccontextmanager
async def s3(url: str, key: str, secret: str, bucket: str) -> AsyncIterator[Put]:
    """Upload bytes as they are, an object each, with a client that is kept."""
    import aioboto3
    from botocore.config import Config

    session = aioboto3.Session(key, secret, region_name="us-east-1")
    config = Config(s3={"addressing_style": "path"})
    number = 0
    async with session.client("s3", endpoint_url=url, config=config) as client:

        async def upload(part: bytes) -> None:
            nonlocal number
            number += 1
            await client.put_object(Bucket=bucket, Key=f"by-hand/{number:06}", Body=part)

        yield upload


class Heard:
    """A handler of OPC UA notifications that counts values, and tells when all are here."""

    def __init__(self) -> None:
        self.values = 0
        self._last = -1
        self._here = asyncio.Event()

    def datachange_notification(self, node: Any, value: Any, data: Any) -> None:
        """Count one."""
        self.values += 1
        if self.values == self._last:
            self._here.set()

    def expect(self, values: int) -> None:
        """Look out for so many more."""
        self._last = self.values + values
        self._here.clear()

    async def expected(self) -> None:
        """Wait until they are here."""
        await self._here.wait()


@asynccontextmanager
async def opcua(url: str, nodes: list[str], interval_ms: int, queue: int) -> AsyncIterator[Heard]:
    """Subscribe to nodes with the library's own subscription."""
    from asyncua import Client, ua

    heard = Heard()
    heard.expect(len(nodes))
    client = Client(url)
    client.session_timeout = 600_000  # ms: as long as the device allows
    async with client:
        subscription = await client.create_subscription(interval_ms, heard)
        await subscription.subscribe_data_change(
            [client.get_node(ua.NodeId.from_string(each)) for each in nodes],
            queuesize=queue,
            sampling_interval=-1.0,
        )
        await heard.expected()  # each node reports the value that it has
        yield heard
