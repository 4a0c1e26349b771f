"""PostgreSQL that is killed, hangs, cuts sessions off, or is not there yet."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import Refused, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.connectors.postgres.connection import Limits
from tests.clients import PATIENCE
from tests.connected import started
from tests.postgres_sides import (
    column,
    context,
    cut_off,
    done,
    filed,
    found,
    operator,
    output,
    sink,
    until,
    unused,
)
from tests.promises import promise
from tests.services.postgres import Postgres
from tests.stand_ins import RawTold, pipeline, reads, running
from tests.stopwatch import Stopwatch

TEXT = [column("v", "text")]
NUMBER = [column("n", "integer")]
BACK_SECONDS = 3.0
"""What may pass between the return of a server and the next row."""


async def test_a_session_that_was_ended_while_idle_costs_no_batch(postgres: Postgres):
    table, ctx = unused(), context(postgres, pipeline="idle")

    async with started(sink(ctx, table, TEXT)) as it:
        await it.write([{"v": "a"}])
        await cut_off(postgres, "idle")
        await it.write([{"v": "b"}])

    assert await found(postgres, f"select v from {table} order by v") == ["a", "b"]


@promise(
    "postgres.output.away", "postgres.output_keyed.away", "postgres.output.fails.session_ended"
)
async def test_a_batch_during_which_the_session_ends_is_tried_once_more(postgres: Postgres):
    table, ctx = unused(), context(postgres, pipeline="broken")
    waits = (
        "select count(*) from pg_stat_activity"
        " where application_name = 'headrace-broken' and wait_event_type = 'Lock'"
    )

    async with started(sink(ctx, table, TEXT)) as it, operator(postgres) as client:
        async with client.transaction():
            await client.execute(f"lock table {table}")
            writing = asyncio.ensure_future(it.write([{"v": "a"}]))
            await until(postgres, waits)
            await cut_off(postgres, "broken")
            await until(postgres, waits)
        await writing

        async with client.transaction():
            await client.execute(f"lock table {table}")
            writing = asyncio.ensure_future(it.write([{"v": "b"}]))
            for _ in range(2):
                await until(postgres, waits)
                await cut_off(postgres, "broken")
            with pytest.raises(Unreachable) as failed:
                await writing

    assert str(failed.value) == (
        f"{postgres.address} says 'terminating connection due to administrator command'"
    )
    assert failed.value.failure == "unavailable"
    assert await found(postgres, f"select v from {table}") == ["a"]


@promise("postgres.output.fails.connection")
@pytest.mark.long
async def test_a_server_that_is_gone_is_unreachable_until_it_is_back(tmp_path):
    with Postgres(tmp_path) as server:
        async with started(sink(server, "t", TEXT)) as it:
            await it.write([{"v": "a"}])
            await asyncio.to_thread(server.kill)
            told = set()
            for _ in range(3):
                with pytest.raises(Unreachable) as failed:
                    await it.write([{"v": "lost"}])
                told.add((str(failed.value), failed.value.failure))
            await asyncio.to_thread(server.start)
            await it.write([{"v": "b"}])

        assert await found(server, "select v from t order by v") == ["a", "b"]
    assert told == {(f"{server.address} does not answer: connection refused", "unavailable")}


@pytest.mark.long
async def test_a_server_that_hangs_is_unreachable_and_holds_nobody_up(tmp_path):
    limits = Limits(connect_seconds=0.2, answer_seconds=0.2)
    with Postgres(tmp_path) as server:
        async with started(sink(server, "t", TEXT, limits=limits)) as it:
            await it.write([{"v": "a"}])
            with server.halted():
                with pytest.raises(Unreachable) as failed:
                    await it.write([{"v": "x" * (32 << 20)}])  # more than the system takes
                watch = Stopwatch()
                await it.finish()
                assert watch.seconds < 0.5
    assert str(failed.value) == f"{server.address} does not answer"
    assert failed.value.failure == "unclear"  # how much of it was sent nobody knows


@pytest.mark.long
async def test_a_server_that_hangs_is_left_within_a_second(tmp_path):
    with Postgres(tmp_path) as server:
        async with started(sink(server, "t", TEXT)) as it:
            with server.halted():
                watch = Stopwatch()
                await it.finish()
                assert watch.seconds < 1.5


async def test_a_write_that_is_given_up_leaves_nothing_behind(postgres: Postgres):
    table, ctx = unused(), context(postgres, pipeline="left")
    ours = "from pg_stat_activity where application_name = 'headrace-left'"

    async with started(sink(ctx, table, TEXT)) as it, operator(postgres) as client:
        async with client.transaction():
            await client.execute(f"lock table {table}")
            writing = asyncio.ensure_future(it.write([{"v": "a"}]))
            await until(postgres, f"select count(*) {ours} and wait_event_type = 'Lock'")
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
        await it.finish()
        await until(postgres, f"select count(*) = 0 {ours}")


async def test_a_password_that_is_refused_later_is_not_tried_for_every_batch(postgres: Postgres):
    user = unused("user")
    await done(
        postgres,
        f"create role {user} login password 'open-sesame'",
        f"grant create on schema public to {user}",
    )
    ctx = context(postgres, pipeline="later", connection={"user": user})

    async with started(sink(ctx, unused(), TEXT)) as it:
        await done(postgres, f"alter role {user} password 'abracadabra'")
        await cut_off(postgres, "later")
        with pytest.raises(Unreachable) as failed:
            await it.write([{"v": "a"}])

    said = f'password authentication failed for user "{user}"'
    assert str(failed.value) == f"{postgres.address} says '{said}'"


@promise("postgres.output.fails.session_ended")
@pytest.mark.long
async def test_a_server_that_shuts_down_is_tried_again(tmp_path):
    with Postgres(tmp_path) as server:
        ctx = context(server, pipeline="late")
        # It waits for the sessions that it has, and takes no others.
        async with started(sink(ctx, "t", TEXT)) as it, operator(server):
            await cut_off(server, "late")
            os.kill(server.pid, signal.SIGTERM)
            await asyncio.to_thread(server.has_printed, "received smart shutdown request")
            with pytest.raises(Unreachable) as failed:
                await it.write([{"v": "a"}])
    assert str(failed.value) == f"{server.address} says 'the database system is shutting down'"
    assert failed.value.failure == "unavailable"


@asynccontextmanager
async def engine(server: Postgres) -> AsyncIterator[Engine]:
    """Give an engine whose connection `db` is that server; close it in the end."""
    made = Engine(
        Clock(asyncio.get_running_loop()),
        connections={"db": filed(server)},
        secrets=Secrets({"PASSWORD": server.password}, {}),
    )
    try:
        yield made
    finally:
        await made.close()


async def occurs(it: Engine, holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Return when something holds, or fail."""
    watch = Stopwatch()
    while not holds():
        assert watch.seconds < seconds, "it never happened"
        await it.clock.sleep(0.01)


def failures(it: Engine) -> dict[str, int]:
    """Return the failures of the output with their counts."""
    signatures = running(it, "p").failures.table.latest()
    return {each.message: each.count for each in signatures if each.stage == "output"}


class Counting(RawTold):
    """Counts up, a message every other millisecond or so."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, ())
        self.counted = 0

    async def read(self):
        while True:
            self.counted += 1
            yield [(b'{"n":%d}' % self.counted, None)]
            await self._clock.sleep(0.002)


@promise("delivery.case.late")
@pytest.mark.long
async def test_a_pipeline_waits_for_its_server(tmp_path):
    with Postgres(tmp_path) as server:
        await asyncio.to_thread(server.kill)
        async with engine(server) as it:
            source = Counting(it.clock)
            await it.compile(pipeline("p", [reads(source)], [], [output("t", NUMBER)]))
            assert running(it, "p").status == "starting"

            await asyncio.to_thread(server.start)
            await occurs(it, lambda: running(it, "p").status == "running")
            await occurs(it, lambda: source.counted > 20)
            await it.dispose("p")

        written = await found(server, "select n from t order by id")
    assert written == [*range(1, source.counted + 1)]


async def test_a_pipeline_is_refused_by_a_server_that_says_no(postgres: Postgres):
    async with engine(postgres) as it:
        config = pipeline("p", [reads(Counting(it.clock))], [], [output("nowhere.t", NUMBER)])
        with pytest.raises(Refused) as refused:
            await it.compile(config)

    [diagnostic] = refused.value.diagnostics
    assert (diagnostic.code, diagnostic.path) == ("turned-away", "outputs[0].table")
    assert diagnostic.message == f"""{postgres.address} says 'schema "nowhere" does not exist'"""


async def test_a_pipeline_goes_on_when_its_server_is_back_and_knows_what_it_lost(tmp_path):
    with Postgres(tmp_path) as server:
        async with engine(server) as it:
            source = Counting(it.clock)
            config = pipeline("p", [reads(source)], [], [output("t", NUMBER, primary_key=["n"])])
            await it.compile(config)
            await occurs(it, lambda: source.counted > 100)

            await asyncio.to_thread(server.kill)
            await occurs(it, lambda: sum(failures(it).values()) > 100)
            await asyncio.to_thread(server.start)
            back, watch = source.counted, Stopwatch()
            await until(server, f"select count(*) from t where n > {back}")
            assert watch.seconds < BACK_SECONDS
            assert running(it, "p").status == "running"
            view = running(it, "p").failures
            await it.dispose("p")

        [written] = await found(server, "select count(*) from t")
    lost = sum(each.count for each in view.table.latest())
    # One outage is one failure with its count, however its first try ended.
    assert (
        len({each.message for each in view.table.latest() if "duplicate" not in each.message}) == 1
    )
    # One may have been written before the answer was lost, and then be there already.
    assert source.counted - lost <= written <= source.counted - lost + 1


@pytest.mark.long
async def test_a_pipeline_ends_in_time_while_its_server_hangs(tmp_path):
    with Postgres(tmp_path) as server:
        async with engine(server) as it:
            await it.compile(pipeline("p", [reads(Counting(it.clock))], [], [output("t", NUMBER)]))
            with server.halted():
                watch = Stopwatch()
                await it.dispose("p")
                assert watch.seconds < 6.5


async def test_a_batch_that_is_given_up_is_not_written_when_the_table_is_free_again(postgres):
    table, ctx = unused(), context(postgres, pipeline="given-up-batch")
    ours = "from pg_stat_activity where application_name = 'headrace-given-up-batch'"

    async with operator(postgres) as client, started(sink(ctx, table, [column("v", "text")])) as it:
        async with client.transaction():
            await client.execute(f"lock table {table}")
            writing = asyncio.ensure_future(it.write([{"v": "a"}]))
            await until(postgres, f"select count(*) {ours} and wait_event_type = 'Lock'")
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            given_up = Stopwatch()
            await until(postgres, f"select count(*) = 0 {ours}")
            assert given_up.seconds < BACK_SECONDS  # the server's limit would end it much later
        await it.write([{"v": "b"}])

    assert await found(postgres, f"select v from {table}") == ["b"]
