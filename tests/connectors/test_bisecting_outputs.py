"""Outputs whose batches are refused for some of their messages: those are told, the rest is there, once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from headrace.authoring.configfiles import catalogue
from headrace.compiler.component.families import Output
from headrace.compiler.delivery import LARGE_BATCH, Batch
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed
from headrace.compiler.runtime.bisectingsink import BisectingSink
from tests.clickhouse_sides import context as clickhouse_context
from tests.clickhouse_sides import named, output
from tests.clickhouse_sides import started as clickhouse_started
from tests.compiler.runtime.refusing import failed
from tests.connected import started
from tests.http_sides import sink as http_sink
from tests.kafka_sides import context as kafka_context
from tests.kafka_sides import create, values
from tests.kafka_sides import sink as kafka_sink
from tests.peer import Peer, peer, replies
from tests.postgres_relay import Relay, relayed
from tests.postgres_sides import column, done, found, until, unused
from tests.postgres_sides import context as postgres_context
from tests.postgres_sides import sink as postgres_sink
from tests.promises import promise
from tests.services.clickhouse import Access
from tests.services.kafka import Kafka
from tests.services.postgres import Postgres

BAD = range(50, 1000, 100)
"""One of each hundred of a thousand."""
GOOD = [n for n in range(1000) if n not in BAD]

COLUMNS = [column("n", "integer")]
N = {"name": "n", "type": "integer"}


def thousand() -> Batch:
    """Return a thousand messages that are numbered, of which some are bad for their number."""
    return [{"n": 100_000 + n if n in BAD else n} for n in range(1000)]


# PostgreSQL


@pytest.mark.parametrize("constraint", ["check (n < 100000)", "check (n < 100000), unique (n)"])
@promise("postgres.output.at_fault")
async def test_of_a_batch_for_postgres_the_rows_that_a_constraint_breaks_are_told(
    postgres: Postgres, constraint: str
) -> None:
    table = unused("bisected")
    await done(postgres, f"create table {table} (n integer, {constraint})")

    async with started(postgres_sink(postgres, table, COLUMNS, create_table=False)) as sink:
        failure = await failed(BisectingSink(sink, 100), thousand())

    assert (failure.failure, [*failure.refused]) == ("invalid", [*BAD])
    assert all("SQLSTATE 23514" in said for said in failure.refused.values())
    assert await found(postgres, f"select n from {table} order by n") == GOOD


async def test_what_does_not_fit_a_column_costs_no_try(postgres: Postgres) -> None:
    table = unused("bisected")
    batch: Batch = [{"n": "none"} if n in BAD else {"n": n} for n in range(1000)]

    async with started(postgres_sink(postgres, table, COLUMNS)) as sink:
        failure = await failed(BisectingSink(sink, 5), batch)

    assert [*failure.refused] == [*BAD]
    assert await found(postgres, f"select n from {table} order by n") == GOOD
    [statements] = await found(postgres, f"select count(distinct received_at) from {table}")
    assert statements == 1


async def test_when_the_schema_changes_for_postgres_nothing_more_is_refused(
    postgres: Postgres,
) -> None:
    table = unused("bisected")
    await done(postgres, f"create table {table} (n integer check (n < 0))")

    async with started(postgres_sink(postgres, table, COLUMNS, create_table=False)) as sink:
        it = BisectingSink(sink, 20)
        first = await failed(it, thousand())
        await done(postgres, f"alter table {table} drop constraint {table}_n_check")
        await it.write(thousand()[20:])

    assert (first.failure, [*first.refused]) == ("misconfigured", [*range(20)])
    assert "nothing more is set aside: the database refuses the batch" in str(first)
    assert len(await found(postgres, f"select n from {table}")) == 980


class Watched(AwaitingSink):
    """Hands on what it is given; of the batch whose turn it is the answer is lost, and then the server."""

    def __init__(
        self, sink: AwaitingSink, relay: Relay, lost: int, written: Awaitable[None]
    ) -> None:
        self._sink, self._relay, self._left, self._written = sink, relay, lost, written

    async def write(self, batch: Batch) -> None:
        self._left -= 1
        if self._left:
            return await self._sink.write(batch)
        self._relay.is_mute = True
        writing = asyncio.ensure_future(self._sink.write(batch))
        await self._written
        self._relay.is_away = True
        self._relay.cut()
        await writing


async def test_a_half_that_was_cut_off_and_is_written_is_not_refused_for_its_keys(
    postgres: Postgres,
) -> None:
    table = unused("bisected")
    await done(postgres, f"create table {table} (n integer primary key, check (n < 1000))")
    batch = [{"n": n} for n in (0, 1, 2, 3, 4, 5, 6, 1000)]

    async with relayed(postgres) as relay:
        ctx = postgres_context(postgres, connection={"port": relay.port})
        async with started(postgres_sink(ctx, table, COLUMNS, create_table=False)) as sink:
            written = until(postgres, f"select count(*) = 4 from {table}")
            it = BisectingSink(Watched(sink, relay, 2, written), 100)
            first = await failed(it, batch)
            relay.is_mute = relay.is_away = False
            again = await failed(it, [*batch])

    assert (first.failure, first.refused) == ("unclear", {})
    assert (again.failure, [*again.refused]) == ("invalid", [7])
    assert await found(postgres, f"select n from {table} order by n") == [*range(7)]


# ClickHouse


@pytest.fixture
def table(clickhouse: Access) -> Iterator[str]:
    """Give the name of a table that is not there."""
    with named(clickhouse) as name:
        yield name


@promise("clickhouse.output.at_fault")
async def test_of_a_batch_for_clickhouse_the_rows_that_a_constraint_breaks_are_told(
    clickhouse: Access, table: str
) -> None:
    clickhouse.ask(
        f"CREATE TABLE {table} (n Int32, CONSTRAINT small CHECK n < 100000)"
        " ENGINE = MergeTree ORDER BY n PARTITION BY intDiv(n, 500)"
    )
    async with clickhouse_started(output(table, N), clickhouse_context(clickhouse)) as sink:
        failure = await failed(BisectingSink(sink, 100), thousand())

    assert (failure.failure, [*failure.refused]) == ("invalid", [*BAD])
    assert clickhouse.rows(f"SELECT n FROM {table} ORDER BY n") == [[n] for n in GOOD]


async def test_a_batch_for_too_many_partitions_of_clickhouse_is_written_in_parts(
    clickhouse: Access, table: str
) -> None:
    clickhouse.ask(
        f"CREATE TABLE {table} (n Int32) ENGINE = MergeTree ORDER BY n PARTITION BY intDiv(n, 5)"
    )
    options = {"settings": {"max_partitions_per_insert_block": 100}}
    batch = [{"n": n} for n in range(1000)]
    async with clickhouse_started(
        output(table, N, **options), clickhouse_context(clickhouse)
    ) as sink:
        await BisectingSink(sink, 100).write(batch)

    assert clickhouse.rows(f"SELECT n FROM {table} ORDER BY n") == [[n] for n in range(1000)]


@contextmanager
def viewed(clickhouse: Access, table: str) -> Iterator[None]:
    """Have a materialized view behind a table that fails on what is bad, and is gone afterwards."""
    clickhouse.ask(f"CREATE TABLE {table} (n Int32) ENGINE = MergeTree ORDER BY n")
    clickhouse.ask(
        f"CREATE MATERIALIZED VIEW {table}_view ENGINE = MergeTree ORDER BY n"
        f" AS SELECT n, throwIf(n >= 100000) AS t FROM {table}"
    )
    try:
        yield
    finally:
        clickhouse.ask(f"DROP TABLE IF EXISTS {table}_view")


async def test_what_a_view_of_clickhouse_refuses_is_not_tried_in_halves(
    clickhouse: Access, table: str
) -> None:
    with viewed(clickhouse, table):
        async with clickhouse_started(output(table, N), clickhouse_context(clickhouse)) as sink:
            failure = await failed(BisectingSink(sink, 100), thousand())
        rows = clickhouse.rows(f"SELECT count(), uniqExact(n) FROM {table}")

    assert (failure.failure, failure.refused, failure.took_nothing) == ("invalid", {}, False)
    # They may all be there, whatever the server says: it depends on which of the two comes first.
    assert rows in ([[0, 0]], [[1000, 1000]])


# Kafka


@promise("kafka.output.at_fault")
async def test_of_a_batch_for_kafka_the_record_that_is_too_large_is_told(kafka: Kafka) -> None:
    topic = "bisected-large"
    batch: Batch = [*range(20)]
    batch[7] = "x" * 2_000_000

    async with started(kafka_sink(kafka_context(kafka.bootstrap), topic)) as sink:
        failure = await failed(BisectingSink(sink, 100), batch)

    assert (failure.failure, [*failure.refused]) == ("invalid", [7])
    written = [b"%d" % n for n in range(20) if n != 7]
    assert await values(kafka.bootstrap, topic) == written


async def test_a_record_that_does_not_suit_its_topic_costs_no_other_one(kafka: Kafka) -> None:
    topic = "bisected-compacted"
    await create(kafka.bootstrap, topic, {"cleanup.policy": "compact"})
    batches: list[Batch] = [[{"k": f"{n}-{m}"} for m in range(50)] for n in range(4)]
    batches[1][7] = batches[2][0] = {}
    batches[3] = [{}]

    async with started(kafka_sink(kafka_context(kafka.bootstrap), topic, key="k")) as sink:
        it = BisectingSink(sink, 100)
        rests = [rest for rest in map(it.begin, batches) if rest is not None]
        told = await asyncio.gather(*(rest() for rest in rests), return_exceptions=True)

    refused = [each.refused if isinstance(each, BatchFailed) else None for each in told]
    said = f"'{topic}' refuses records: UNKNOWN"
    assert refused == [None, {7: said}, {0: said}, {0: said}]
    written = [
        json.dumps(each, separators=(",", ":")) for batch in batches for each in batch if each
    ]
    assert sorted(await values(kafka.bootstrap, topic)) == sorted(map(str.encode, written))


async def test_indices_of_a_large_batch_for_kafka_are_found_in_time(kafka: Kafka) -> None:
    topic = "bisected-many"
    await create(kafka.bootstrap, topic, {"cleanup.policy": "compact"})
    count = 2 * LARGE_BATCH
    bad = range(0, count, 100)
    batch: Batch = [{} if n in bad else {"k": str(n)} for n in range(count)]

    async with started(kafka_sink(kafka_context(kafka.bootstrap), topic, key="k")) as sink:
        failure = await failed(BisectingSink(sink, 100), batch)

    assert [*failure.refused] == [*bad]
    assert len(await values(kafka.bootstrap, topic)) == count - len(bad)


# HTTP


@pytest_asyncio.fixture
async def server():
    async with peer() as it:
        yield it


def taking(server: Peer, status: int, most: int = 1000) -> list[Any]:
    """Have a server refuse what holds a bad message with a status, and what is longer with a 413."""
    taken: list[Any] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        messages = await request.json()
        if len(messages) > most:
            return await replies(status=413)(request)
        if any(message["n"] >= 100_000 for message in messages):
            return await replies(status=status)(request)
        taken.extend(message["n"] for message in messages)
        return web.Response()

    server.answers = [answer] * 1000
    return taken


@promise("http.output.at_fault")
async def test_of_a_body_that_is_too_large_halves_are_sent(server: Peer) -> None:
    taken = taking(server, 400, most=300)

    async with http_sink({"url": server.url()}) as sink:
        await BisectingSink(sink, 100).write([{"n": n} for n in range(1000)])

    assert taken == [*range(1000)]
    assert len(server.received) == 7


@pytest.mark.parametrize("status", [400, 422])
@promise("http.output.at_fault")
async def test_with_bisect_the_messages_are_told_for_which_a_server_refuses_a_body(
    server: Peer, status: int
) -> None:
    taken = taking(server, status)

    async with http_sink({"url": server.url(), "bisect": True}) as sink:
        failure = await failed(BisectingSink(sink, 100), thousand())

    assert (failure.failure, [*failure.refused]) == ("invalid", [*BAD])
    assert taken == GOOD


async def test_without_bisect_a_body_that_is_refused_is_not_sent_in_halves(server: Peer) -> None:
    taken = taking(server, 422)

    async with http_sink({"url": server.url()}) as sink:
        failure = await failed(BisectingSink(sink, 100), thousand())

    assert (failure.failure, failure.refused, failure.done) == ("invalid", {}, ())
    assert (taken, len(server.received)) == ([], 1)


@pytest.mark.parametrize("status", [401, 404, 429, 503])
async def test_with_bisect_too_what_is_not_about_the_content_goes_out(
    server: Peer, status: int
) -> None:
    taking(server, status)

    async with http_sink({"url": server.url(), "bisect": True}) as sink:
        failure = await failed(BisectingSink(sink, 100), thousand())

    assert failure.failure in ("misconfigured", "unavailable")
    assert len(server.received) == 1


async def test_messages_that_are_sent_one_by_one_go_on_behind_the_one_that_is_refused(
    server: Peer,
) -> None:
    statuses = [200, 422, 200, 422, 422, 200]
    server.answers = [replies(status=each) for each in statuses]

    async with http_sink({"url": server.url(), "body": "message"}) as sink:
        failure = await failed(BisectingSink(sink, 100), [*range(6)])

    assert ([*failure.refused], [*failure.done]) == ([1, 3, 4], [0, 2, 5])
    assert server.bodies() == [b"%d" % n for n in range(6)]


# What each output states


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *[(kind, "halves") for kind in ("clickhouse", "http", "postgres")],
        *[(kind, "index") for kind in ("kafka", "mqtt", "nats", "redis")],
        *[(kind, "never") for kind in ("file", "s3", "stdout")],
    ],
)
def test_each_output_states_how_messages_at_fault_are_found(kind: str, how: str) -> None:
    made = catalogue().named("output", kind)

    assert made is not None
    assert issubclass(made, Output)
    assert made.bisection.how == how
    assert made.bisection.says
