"""Scenarios of stores: a pipeline that writes rows or objects, beside a program by hand.

The store is on the other core. What is posted goes to two servers, ours and a bare one that inserts, and
what counts is their CPU time; batches at hand are written in this process, turn and turn about. At the
end there has to be in the store what was sent.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench import ingest, messages, servers, standins, stores_byhand
from bench.measuring import Compared, Cost, Effort, both, compared, on_one_core, timed
from bench.running import Config, pipeline, service
from bench.servers import Server
from bench.stores_byhand import TYPES
from bench.table import Row, clock_rows, cpu_rows, ratio_row
from headrace.compiler.jsontext import decode, encode_lines
from headrace.web.commands.collecting import collect_less
from tests.services.clickhouse import ClickHouse
from tests.services.postgres import Postgres
from tests.services.s3 import BUCKET, KEY, S3, SECRET

Put = Callable[[int], Awaitable[object]]
"""Has so many batches, or parts, written, and returns when they are."""

COLUMNS: list[Config] = [{"name": name, "type": kind} for name, kind in TYPES.items()]

TABLES = ("ours", "by_hand")
WARM_UP_POSTS = 500
MOST_POSTS = 900
"""Of a hundred each, in a sample: the database is slower than whoever posts, and 1,024 may wait."""
GATHERED = 500
PART_BYTES = 16 << 20
MANY_PARTS = 12
"""In a turn: before the first is uploaded it has to be filled, and nothing else is done meanwhile."""
LOOK_SECONDS = 0.002


def postgres100(effort: Effort) -> list[Row]:
    """A hundred messages a post, each post an insert."""
    return _postgres("postgres100", 100, None, effort)


def postgres1(effort: Effort) -> list[Row]:
    """One message a post, five hundred an insert."""
    buffer = {"type": "batch", "size": GATHERED, "window_seconds": 1}
    return _postgres("postgres1", 1, buffer, effort)


def _postgres(name: str, size: int, buffer: Config | None, effort: Effort) -> list[Row]:
    with service(Postgres) as server:
        beside = _posted(server, size, buffer, effort)
    limit = "a bare app that decodes, and a loop with asyncpg and unnest"
    return [ratio_row(name, beside, limit, unit="msg/CPU s", least=0.8)]


def _posted(server: Postgres, size: int, buffer: Config | None, effort: Effort) -> Compared:
    """Return what a message costs the server beside the bare app."""
    source = {"type": "http"} | ({"buffer": buffer} if buffer else {})
    connection = {
        "type": "postgres",
        "host": server.host,
        "port": server.port,
        "database": server.database,
        "user": server.user,
        "password": server.password,
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.headrace(
            [_table("p1", "postgres", source)], Path(folder), {"store": connection}
        ) as ours,
        servers.limit("bench.inserting", server.url, GATHERED if buffer else 1) as by_hand,
    ):
        posting = [Posting(each, size) for each in (ours, by_hand)]
        counts = [each.fitting(effort) for each in posting]
        samples = [
            [each.cost(count) for each, count in zip(posting, counts, strict=True)]
            for _ in range(effort.pairs)
        ]
        asyncio.run(_see_rows(server.url, posting))
    return compared(samples)


class Posting:
    """Rows that are posted to a server, so many a post."""

    def __init__(self, server: Server, size: int) -> None:
        self._server = server
        self._size = size
        self.rows = 0
        """What has been posted."""

    def cost(self, posts: int) -> float:
        """Return the CPU seconds that a row of so many posts takes the server."""
        self.rows += posts * self._size
        return ingest.cost(self._server, self._size, posts, "rows")

    def fitting(self, effort: Effort) -> int:
        """Return how many posts fill a sample, all of which are inserted at once. Warms up."""
        step = max(GATHERED // self._size, 1)
        warm_up = step if effort.pairs == 1 else WARM_UP_POSTS
        wanted = ingest.LONGER * effort.seconds / (self.cost(warm_up) * self._size)
        most = MOST_POSTS if self._size > 1 else wanted
        return max(int(min(wanted, most)) // step * step, step)


async def _see_rows(url: str, posting: Sequence[Posting]) -> None:
    """See that every row that was posted is in its table."""
    import asyncpg

    connection = await asyncpg.connect(url)
    for table, each in zip(TABLES, posting, strict=True):
        _see(await connection.fetchval(f"SELECT count(*) FROM {table}"), each.rows)
    await connection.close()


def clickhouse1000(effort: Effort) -> list[Row]:
    """A thousand messages a batch, each batch an insert."""
    with service(ClickHouse) as server:
        beside = on_one_core(_rows_beside(server, effort))
    limit = "clickhouse-connect with a kept insert context"
    return cpu_rows("clickhouse1000", beside, limit, unit="row", least=0.75)


async def _rows_beside(server: ClickHouse, effort: Effort) -> tuple[Compared, Compared]:
    """Return what a row costs either side."""
    connection = {
        "type": "clickhouse",
        "url": server.url,
        "database": "default",
        "user": server.user,
        "password": server.password,
        "allow_http": True,
    }
    batches = [[decode(each) for each in batch] for batch in messages.payloads(1000, kind="rows")]
    config = _table("ours", "clickhouse", {"type": "confirmed_supply", "ack": "on_delivery"})
    standins.supplies.clear()
    async with (
        pipeline(config, {"store": connection}, standins.catalogue()),
        stores_byhand.clickhouse(server.port) as insert,
    ):
        sides = [Given(_supply(batches)), Given(stores_byhand.one_by_one(insert, batches))]
        beside = await _turns(sides, effort, per=1000)
        for table, each in zip(TABLES, sides, strict=True):
            [[count]] = server.access.rows(f"SELECT count() FROM {table}")
            _see(count, each.batches * 1000)
    return beside


def s3parts(effort: Effort) -> list[Row]:
    """Messages in batches of a thousand, as parts of 16 MiB."""
    with service(S3) as server:
        beside = on_one_core(_parts_beside(server, effort))
    limit = "aioboto3's upload of prepared bytes"
    return clock_rows("s3parts", beside, limit, unit="part", least=0.9)


async def _parts_beside(server: S3, effort: Effort) -> tuple[Compared, Compared]:
    """Return what a part costs either side."""
    batches = messages.batches(1000, 2)  # few: in a server they have just been made, and are near
    many = PART_BYTES // max(len(encode_lines(batch)) for batch in batches)
    given = list(islice(cycle(batches), many))
    part = b"".join(map(encode_lines, given))
    target = {
        "type": "s3",
        "connection": "store",
        "prefix": "ours",
        "rotate": {"max_rows": many * 1000},
    }
    config = {"id": "ours", "inputs": [{"type": "supply"}], "outputs": [target]}
    connection = {
        "type": "s3",
        "bucket": BUCKET,
        "endpoint": server.url,
        "allow_http": True,
        "access_key_id": KEY,
        "secret_access_key": SECRET,
    }
    objects = server.objects / "ours"
    standins.supplies.clear()
    async with (
        pipeline(config, {"store": connection}, standins.catalogue()),
        stores_byhand.s3(server.url, KEY, SECRET, BUCKET) as upload,
    ):
        supply = standins.supplies["ours"]
        supply.give(given)

        async def ours(parts: int) -> None:
            supply.hand_out(parts * many)
            while _bytes_in(objects) < parts * len(part):  # noqa: ASYNC110 - a store tells nobody
                await asyncio.sleep(LOOK_SECONDS)

        by_hand = stores_byhand.one_by_one(upload, [part])
        sides = [Emptied(ours, objects), Emptied(by_hand, server.objects / "by-hand")]
        return await _turns(sides, effort, least=MANY_PARTS if effort.pairs > 1 else 1)


class Given:
    """One side that is given batches, or parts, to write."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self.batches = 0
        """What it has been given."""

    async def cost(self, batches: int, per: int) -> Cost:
        """Return what one of so many batches takes, or one of the ``per`` messages in each."""
        self.batches += batches
        return await timed(self._put(batches), batches * per)

    async def fitting(self, effort: Effort) -> int:
        """Return how many batches fill a turn. Warms up on the way."""
        wanted, batches = ingest.LONGER * effort.seconds, 1
        while (taken := (await self.cost(batches, 1))[0] * batches) < wanted / 2:
            batches *= 2
        return max(int(batches * wanted / taken), 1)


class Emptied(Given):
    """One side whose objects are gone before each turn: they are many gigabytes in all."""

    def __init__(self, put: Put, objects: Path) -> None:
        super().__init__(put)
        self._objects = objects

    async def cost(self, batches: int, per: int) -> Cost:
        """Return what one part of so many takes."""
        for each in _parts_in(self._objects):
            each.unlink()
        return await super().cost(batches, per)


def _bytes_in(folder: Path) -> int:
    """Return how many bytes the parts have that are there."""
    return sum(each.stat().st_size for each in _parts_in(folder))


def _parts_in(folder: Path) -> Iterator[Path]:
    """Yield the files of parts: not those that are still being written."""
    return (each for each in folder.glob("*") if not each.name.startswith("."))


async def _turns(
    sides: Sequence[Given], effort: Effort, *, per: int = 1, least: int = 1
) -> tuple[Compared, Compared]:
    """Return what both sides cost, turn and turn about."""
    collect_less()
    counts = [max(await each.fitting(effort), least) for each in sides]
    return both(
        [
            [await each.cost(count, per) for each, count in zip(sides, counts, strict=True)]
            for _ in range(effort.pairs)
        ]
    )


def _supply(batches: list[Any]) -> Put:
    """Return what has the pipeline write so many batches."""
    supply = standins.supplies["ours"]
    assert isinstance(supply, standins.Confirmed)
    supply.give(batches)

    async def put(count: int) -> None:
        supply.hand_out(count)
        await supply.through()

    return put


def _table(id: str, kind: str, source: Config) -> Config:
    """Return the config of a pipeline that writes the ten columns."""
    target = {"type": kind, "connection": "store", "table": TABLES[0], "columns": COLUMNS}
    return {"id": id, "inputs": [source], "outputs": [target]}


def _see(found: int, sent: int) -> None:
    if found != sent:
        raise RuntimeError(f"{found} rows are in the store of {sent} that were sent")
