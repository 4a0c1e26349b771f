"""ClickHouse that is not there, hangs or breaks off. The engine is real, the HTTP front is ours.

These tests stop the server: none of them is about the one that ``CLICKHOUSE_URL`` names.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Input
from headrace.compiler.errors import Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.connectors.clickhouse.connection import Limits
from tests.clickhouse_sides import (
    N,
    Passage,
    connection,
    context,
    fault,
    output,
    started,
)
from tests.promises import promise
from tests.services.authority import Authority
from tests.services.clickhouse import Access, ClickHouse
from tests.services.server import free_port
from tests.stand_ins import Told, batches, pipeline, reads, running
from tests.stopwatch import Stopwatch
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("front_of_ours")

BACK_SECONDS = 3.0
"""What may pass between the return of a server and the next row."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClickHouse]:
    """Give a server with a password."""
    folder = tmp_path_factory.mktemp("guarded")
    with ClickHouse(folder, user="writer", password="open-sesame") as server:
        yield server


# Who is not there


async def test_a_server_that_is_not_there_is_unreachable():
    port = free_port()
    for host, why in (
        ("127.0.0.1", "connection refused"),
        ("nowhere.invalid", "the host name cannot be resolved"),
    ):
        told = await fault(Access(f"http://{host}:{port}", "u", "p", "d"))
        assert isinstance(told, Unreachable)
        assert str(told) == f"{host}:{port} does not answer: {why}"


@pytest.mark.parametrize("with_tls", [False, True], ids=["plain", "TLS"])
async def test_a_server_that_hangs_is_unreachable_and_holds_nobody_up(
    authority: Authority, tmp_path: Path, with_tls: bool
):
    options = {"ca_file": str(authority.ca_file)} if with_tls else {}
    with ClickHouse(tmp_path, tls=authority if with_tls else None) as server:
        ctx = context(server.access, tls=options)
        async with started(output("t", N), ctx, Limits(insert_seconds=0.1)) as it:
            with server.halted():
                with pytest.raises(Unreachable) as failed:
                    await it.write([{"n": 1}])
                watch = Stopwatch()
                await it.finish()
                assert watch.seconds < 1

    assert str(failed.value) == f"{server.address} does not answer within 0.1 s"


async def test_a_write_that_is_given_up_leaves_nothing_behind(guarded: ClickHouse):
    async with started(output("t", N), context(guarded.access)) as it:
        with guarded.halted():
            writing = asyncio.ensure_future(it.write([{"n": 1}]))
            await asyncio.sleep(0)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            watch = Stopwatch()
            await it.finish()
            assert watch.seconds < 1.5


@pytest.mark.long
async def test_an_outage_is_one_text_until_the_server_is_back(tmp_path: Path):
    with ClickHouse(tmp_path) as server:
        async with started(output("t", N), context(server.access)) as it:
            await it.write([{"n": 1}])
            await asyncio.to_thread(server.kill)
            told = set()
            for n in range(3):
                with pytest.raises(Unreachable) as failed:
                    await it.write([{"n": n}])
                told.add(str(failed.value))
            await asyncio.to_thread(server.start)
            await it.write([{"n": 2}])

            assert server.access.rows("SELECT n FROM t ORDER BY n") == [[1], [2]]
    assert told == {f"{server.address} does not answer: connection refused"}


async def test_a_connection_that_nobody_used_is_not_trusted(guarded: ClickHouse):
    limits = Limits(idle_seconds=0.05)
    async with (
        Passage(guarded.access) as way,
        started(output("t", N), context(way.access), limits) as it,
    ):
        await it.write([{"n": 1}])
        before = way.connections
        await it.write([{"n": 2}])
        assert way.connections == before
        await Clock(asyncio.get_running_loop()).sleep(0.1)
        await it.write([{"n": 3}])

        assert way.connections == before + 1


async def test_a_server_that_hangs_up_is_unreachable():
    async with hanging_up() as access:
        told = await fault(access)
        assert isinstance(told, Unreachable)
        assert str(told) == f"{access.where} closed the connection"


@asynccontextmanager
async def hanging_up() -> AsyncIterator[Access]:
    """Give a server that reads what comes first, and closes the connection."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    async with await asyncio.start_server(served, "127.0.0.1", 0) as it:
        port = it.sockets[0].getsockname()[1]
        yield Access(f"http://127.0.0.1:{port}", "u", "p", "d")


async def test_a_connection_that_breaks_within_a_large_batch_is_lost(guarded: ClickHouse):
    made = output("long", {"name": "s", "type": "text"})
    async with Passage(guarded.access) as way, started(made, context(way.access)) as it:
        way.cut()
        with pytest.raises(Unreachable) as failed:
            await it.write([{"s": "x" * 8_000_000}] * 4)
        await it.write([{"s": "y"}])

        assert str(failed.value) == f"{way.access.where} closed the connection"
    assert guarded.access.rows("SELECT s FROM long") == [["y"]]


# Answers that are lost


@pytest.fixture
def deduplicating(guarded: ClickHouse) -> Iterator[Access]:
    """Give a server on which the table `t` knows a token again, as those that are replicated do."""
    guarded.access.ask("DROP TABLE IF EXISTS t")
    guarded.access.ask(
        "CREATE TABLE t (n Nullable(Int32)) ENGINE = MergeTree ORDER BY tuple()"
        " SETTINGS non_replicated_deduplication_window = 100"
    )
    yield guarded.access
    guarded.access.ask("DROP TABLE t")


@promise("clickhouse.output.away", "clickhouse.output.twice")
async def test_without_a_token_nothing_is_sent_twice(deduplicating: Access):
    async with Passage(deduplicating) as way:
        async with started(output("t", N), context(way.access)) as it:
            way.lose()
            with pytest.raises(Unreachable) as failed:
                await it.write([{"n": 1}])
            await it.write([{"n": 2}])

        assert way.inserts == 2
        assert str(failed.value) == f"{way.access.where} closed the connection"
    # Nobody knew; this time it was written.
    assert deduplicating.rows("SELECT n FROM t ORDER BY n") == [[1], [2]]


@promise("clickhouse.output_tokens.away", "clickhouse.output_tokens.twice")
async def test_with_a_token_a_batch_is_sent_again_and_stored_once(deduplicating: Access):
    async with Passage(deduplicating) as way:
        made = output("t", N, deduplicate_token=True)
        async with started(made, context(way.access)) as it:
            way.lose()
            await it.write([{"n": 1}])
            await it.write([{"n": 2}])

        assert way.inserts == 3
    assert deduplicating.rows("SELECT n FROM t ORDER BY n") == [[1], [2]]


async def test_a_batch_that_is_tried_again_has_its_token_and_is_stored_once(deduplicating: Access):
    async with Passage(deduplicating) as way:
        made = output("t", N, deduplicate_token=True)
        async with started(made, context(way.access)) as it:
            batch = [{"n": 1}]
            way.lose(2)
            with pytest.raises(Unreachable) as failed:
                await it.write(batch)
            assert failed.value.failure == "unclear"
            await it.write(batch)
            await it.write([{"n": 1}])  # another one

        assert way.inserts == 4
    assert deduplicating.rows("SELECT n FROM t") == [[1], [1]]


@promise("clickhouse.output_tokens.twice")
async def test_equal_batches_are_stored_as_often_as_they_come(deduplicating: Access):
    made = output("t", N, deduplicate_token=True)
    for _ in range(2):
        async with started(made, context(deduplicating)) as it:
            await it.write([{"n": 1}])
            await it.write([{"n": 1}])

    assert deduplicating.rows("SELECT n FROM t") == [[1]] * 4


# Pipelines


@asynccontextmanager
async def engine(server: ClickHouse) -> AsyncIterator[Engine]:
    """Give an engine whose connection `ch` is that server; close it in the end."""
    made = Engine(
        Clock(asyncio.get_running_loop()),
        connections={"ch": connection(server.access)},
        secrets=Secrets({"PASSWORD": server.password}, {}),
    )
    try:
        yield made
    finally:
        await made.close()


def steady(it: Engine) -> Input:
    """Return an input that sends a message every 20 ms."""
    arrivals: list[Any] = [batches([{"n": 1}]), 0.02]
    return reads(Told(it.clock, arrivals * 10_000))


def failures(it: Engine) -> dict[str, int]:
    """Return the failures of the output with their counts."""
    signatures = running(it, "p").failures.table.latest()
    return {each.message: each.count for each in signatures if each.stage == "output"}


async def test_a_pipeline_goes_on_when_its_server_is_back_with_its_data(tmp_path: Path):
    with ClickHouse(tmp_path, user="writer", password="open-sesame") as server:

        def count() -> int:
            [[rows]] = server.access.rows("SELECT count() FROM t")
            return rows

        async with engine(server) as it:
            await it.compile(pipeline("p", [steady(it)], [], [output("t")]))
            await until(lambda: count() > 3)
            await asyncio.to_thread(server.kill)
            await until(lambda: sum(failures(it).values()) > 3)
            await asyncio.to_thread(server.start)
            before = count()
            await until(lambda: count() > before, BACK_SECONDS)

            assert before > 3
            assert running(it, "p").status == "running"
            assert {*failures(it)} <= {
                f"{server.address} does not answer: connection refused",
                f"{server.address} closed the connection",
            }


@promise("delivery.case.late")
async def test_a_pipeline_waits_for_a_server_that_is_not_there_yet(tmp_path: Path, caplog):
    server = ClickHouse(tmp_path)
    async with engine(server) as it:
        building = asyncio.ensure_future(it.compile(pipeline("p", [steady(it)], [], [output("t")])))
        await until(lambda: server.address in caplog.text)
        try:
            await asyncio.to_thread(server.start)
            await building
            await until(lambda: running(it, "p").status == "running")
            await until(lambda: server.access.rows("SELECT count() > 0 FROM t") == [[1]])
            await it.dispose("p")
        finally:
            server.kill()
