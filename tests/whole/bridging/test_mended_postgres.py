"""A table is dropped and made again, a password is changed and changed back: `retry` waits for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.promises import promise
from tests.server import Server, serving
from tests.services.kafka import Kafka
from tests.services.postgres import Postgres
from tests.whole.arrived import Arrived
from tests.whole.aside import Aside
from tests.whole.bridging.bridges import (
    RATE,
    errors,
    figure_of,
    late,
    pause,
    wait_until_written,
)
from tests.whole.bridging.targets import TOGETHER
from tests.whole.brokers.kinds.every import KAFKA
from tests.whole.brokers.kinds.kind import Json
from tests.whole.brokers.peers import Load
from tests.whole.figures import Figure
from tests.whole.linking import linked
from tests.whole.stores.kinds.every import POSTGRES

pytestmark = pytest.mark.long

PASSWORD = "open-sesame"
WAITS = 15.0
"""Seconds until somebody mends it."""
TOPIC = "misconfigured"

Client = Any
Numbers = list[int]


async def drop(client: Client, table: str) -> Numbers:
    """Drop a table; return the numbers that were in it."""
    async with client.transaction():
        await client.execute(f"lock table {table}")
        numbers = await rows(client, table)
        await client.execute(f"drop table {table}")
    return numbers


async def create(client: Client, table: str) -> Numbers:
    """Make a table that its role may write to, from its first moment."""
    async with client.transaction():
        await client.execute(f"create table {table} (n bigint not null, temp float8)")
        await client.execute(f"grant insert on {table} to {table}")
    return []


async def change_password(client: Client, table: str) -> Numbers:
    """Have the role sign in with another password, from now on."""
    await client.execute(f"alter role {table} password 'close-sesame'")
    ended = "select pg_terminate_backend(pid) from pg_stat_activity where usename = $1"
    await client.execute(ended, table)
    return []


async def change_back(client: Client, table: str) -> Numbers:
    """Have it sign in with the one that it knows."""
    await client.execute(f"alter role {table} password '{PASSWORD}'")
    return []


async def rows(client: Client, table: str) -> Numbers:
    """Return the numbers in a table, in the order in which they came."""
    return [row["n"] for row in await client.fetch(f"select n from {table} order by ctid")]


@dataclass(frozen=True)
class Trouble:
    """What is done to a table or its role, named alike; how it is undone, and what is said of it."""

    table: str
    begin: Callable[[Client, str], Awaitable[Numbers]]
    end: Callable[[Client, str], Awaitable[Numbers]]
    text: str


TROUBLES = (
    Trouble("dropped", drop, create, "42P01"),
    Trouble("signed_out", change_password, change_back, "password authentication failed"),
)


def pipeline(table: str) -> Json:
    """Return a pipeline into a table."""
    reading = KAFKA.input("kafka", TOPIC, group=table, max_batch=TOGETHER)
    output = POSTGRES.output(table, table, create_table=False, retry={})
    return {"id": table, "inputs": [reading], "outputs": [output]}


def link(server: Server, pipeline: str) -> Json:
    """Return how the output of a pipeline is."""
    [found] = [each for each in server.get("/api/pipelines").value if each["id"] == pipeline]
    [output] = found["outputs"]
    return {"health": found["health"], **output}


@promise("delivery.retry.misconfigured")
def test_what_somebody_has_to_mend_is_waited_for(
    tmp_path: Path, kafka: Kafka, figure: Figure
) -> None:
    KAFKA.create(kafka, TOPIC)
    folder = tmp_path / "headrace"
    with ExitStack() as running:
        database = running.enter_context(Postgres(tmp_path / "postgres"))
        aside = running.enter_context(Aside())

        def have(change: Callable[[Client, str], Awaitable[Numbers]], table: str) -> Numbers:
            async def had() -> Numbers:
                client = await asyncpg.connect(database.url)
                try:
                    return await change(client, table)
                finally:
                    client.terminate()

            return aside.do(had())

        async def prepare(client: Client, table: str) -> Numbers:
            await client.execute(f"create role {table} login password '{PASSWORD}'")
            return await create(client, table)

        for trouble in TROUBLES:
            have(prepare, trouble.table)
        signed = {
            each.table: POSTGRES.connection(database, user=each.table, password=PASSWORD)
            for each in TROUBLES
        }
        given = linked(folder, {"kafka": KAFKA.connection(kafka), **signed})
        config = [pipeline(each.table) for each in TROUBLES]
        server = running.enter_context(serving(folder, config, *given))
        load = Load(aside, KAFKA, kafka, TOPIC, rate=RATE)
        for each in TROUBLES:
            wait_until_written(server, each.table, RATE)

        gone = {each.table: have(each.begin, each.table) for each in TROUBLES}
        pause(WAITS)
        for each in TROUBLES:
            told = link(server, each.table)
            assert told["state"] == "down", told
            assert each.text in told["why"], told
            assert told["health"] == "degraded"
            labels = {"pipeline": each.table, "class": "misconfigured"}
            assert figure_of(server, "headrace_output_waiting", **labels) == 1
        for each in TROUBLES:
            have(each.end, each.table)

        promised = load.stop()
        for each in TROUBLES:
            wait_until_written(server, each.table, len(promised))
            arrived = Arrived()
            arrived.add([*gone[each.table], *have(rows, each.table)])
            lost = figure_of(server, "headrace_messages_lost_total", pipeline=each.table)
            tries = figure_of(server, "headrace_retries_total", pipeline=each.table)
            said = errors(server, each.table)
            count = f"{len(promised)}, {len(arrived.missing(promised))} lost"
            figure(each.table, f"{count}, {arrived.duplicates} twice; {tries} tries; {said}")
            assert arrived.missing(promised) == []
            assert (arrived.duplicates, late(arrived), lost) == (0, 0, 0)
            [error] = said
            assert each.text in error
            assert tries <= 3
            assert link(server, each.table)["state"] == "up"
