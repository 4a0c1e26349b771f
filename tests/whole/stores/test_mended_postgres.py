"""A table that takes rows no more, for one reason or another, until somebody mends that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.promises import promise
from tests.server import serving
from tests.services.postgres import Postgres
from tests.whole.aside import Aside
from tests.whole.figures import Figure
from tests.whole.linking import linked, statuses
from tests.whole.stores.kinds.every import POSTGRES
from tests.whole.stores.lines import Line

pytestmark = pytest.mark.long

PASSWORD = "open-sesame"

Client = Any
Change = Callable[[Client, str], Awaitable[list[int]]]
"""Changes a table, and returns the numbers that were in it and are there no more."""


@dataclass(frozen=True)
class Trouble:
    """What is done to a table, how it is undone, and what is said of it meanwhile."""

    begin: Change
    end: Change
    text: str


def by(statement: str) -> Change:
    """Return a change that a statement makes. A role is named as its table is."""

    async def change(client: Client, table: str) -> list[int]:
        await client.execute(statement.format(table=table))
        return []

    return change


def emptying(statement: str) -> Change:
    """Return one that empties the table; nobody writes between the look into it and the change."""

    async def change(client: Client, table: str) -> list[int]:
        async with client.transaction():
            await client.execute(f"lock table {table}")
            numbers = [row["n"] for row in await client.fetch(f"select n from {table}")]
            await client.execute(statement.format(table=table))
        return numbers

    return change


async def lock_out(client: Client, table: str) -> list[int]:
    """Let the role in no more, and end what it has open."""
    await client.execute(f"alter role {table} nologin")
    ended = "select pg_terminate_backend(pid) from pg_stat_activity where usename = $1"
    await client.execute(ended, table)
    return []


async def create(client: Client, table: str) -> list[int]:
    """Make a table that its role may write to, from its first moment."""
    async with client.transaction():
        await client.execute(f"create table {table} (n bigint not null, temp float8)")
        await client.execute(f"grant insert on {table} to {table}")
    return []


TROUBLES = {
    "the table is dropped": Trouble(emptying("drop table {table}"), create, "42P01"),
    "a column is renamed": Trouble(
        by("alter table {table} rename temp to heat"),
        by("alter table {table} rename heat to temp"),
        "42703",
    ),
    "a column is wanted that nobody writes": Trouble(
        emptying("truncate {table}; alter table {table} add unit text not null"),
        by("alter table {table} drop unit"),
        "23502",
    ),
    "a column gets another type": Trouble(
        by("alter table {table} alter temp type boolean using null"),
        by("alter table {table} alter temp type float8 using null"),
        "42804",
    ),
    "the right to write is revoked": Trouble(
        by("revoke insert on {table} from {table}"),
        by("grant insert on {table} to {table}"),
        "42501",
    ),
    "the role may not log in": Trouble(
        lock_out, by("alter role {table} login"), "not permitted to log in"
    ),
}
"""Each with what its failure is known by, the SQLSTATE if it may be."""
TABLES = {name: f"table_{number}" for number, name in enumerate(TROUBLES)}


@asynccontextmanager
async def administrating(database: Postgres) -> AsyncIterator[Client]:
    """Connect as who may do everything."""
    client = await asyncpg.connect(database.url)
    try:
        yield client
    finally:
        client.terminate()


async def prepare(database: Postgres) -> None:
    """Make every table and its role."""
    async with administrating(database) as client:
        for table in TABLES.values():
            await client.execute(f"create role {table} login password '{PASSWORD}'")
            await create(client, table)


def changing(aside: Aside, database: Postgres, change: Change, table: str) -> list[int]:
    """Have a table changed."""

    async def changed() -> list[int]:
        async with administrating(database) as client:
            return await change(client, table)

    return aside.do(changed())


@promise("delivery.case.altered")
def test_rows_are_refused_for_one_reason_until_it_is_mended(tmp_path: Path, figure: Figure) -> None:
    with Postgres(tmp_path / "postgres") as database, Aside() as aside:
        aside.do(prepare(database))
        connections = {
            table: POSTGRES.connection(database, user=table, password=PASSWORD)
            for table in TABLES.values()
        }
        config = [
            {
                "id": name,
                "inputs": [{"type": "http"}],
                "outputs": [POSTGRES.output(table, table, create_table=False)],
            }
            for name, table in TABLES.items()
        ]
        folder = tmp_path / "headrace"
        with serving(folder, config, *linked(folder, connections)) as server:
            lines = [
                Line(aside, server, name, POSTGRES, database, table)
                for name, table in TABLES.items()
            ]
            for line in lines:
                line.wait_until_writing()
            for line, trouble, table in zip(lines, TROUBLES.values(), TABLES.values(), strict=True):
                line.begin(partial(changing, aside, database, trouble.begin, table))
            for line, trouble, table in zip(lines, TROUBLES.values(), TABLES.values(), strict=True):
                line.end(partial(changing, aside, database, trouble.end, table))

            assert set(statuses(server).values()) == {"running"}
            for line, trouble in zip(lines, TROUBLES.values(), strict=True):
                figure(line.pipeline, f"{line.lost()} batches: {line.reason()}")
                assert line.failures == line.lost()
                assert trouble.text in line.reason()
