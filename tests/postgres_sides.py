"""A `postgres` output over a server, and what an operator sees and does there by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import asyncpg

from headrace.compiler.component.families import Connection
from headrace.connectors.postgres import PostgresConnection, PostgresOutput
from headrace.connectors.postgres.connection import Limits
from headrace.connectors.postgres.sink import PostgresSink
from tests.clients import PATIENCE
from tests.doubles import StubContext
from tests.services.postgres import Postgres

_numbers = count()


def unused(stem: str = "t") -> str:
    """Return the name of a table that no other test has."""
    return f"{stem}_{next(_numbers)}"


def filed(server: Postgres, **options: Any) -> Connection:
    """Return the connection of a server's superuser, or another one to it."""
    document = {
        "host": server.host,
        "port": server.port,
        "database": server.database,
        "user": server.user,
        "password": "${PASSWORD}",
    }
    return PostgresConnection.load(document | options)


def context(server: Postgres, *, password: str | None = None, **options: Any) -> StubContext:
    """Return a context whose connection `db` is that server; the password is its secret."""
    secrets = {"PASSWORD": server.password if password is None else password}
    connections = {"db": filed(server, **options.pop("connection", {}))}
    return StubContext(connections=connections, secrets=secrets, **options)


def column(name: str, type: str, **options: Any) -> dict[str, Any]:
    """Return a column as a config has it."""
    return {"name": name, "type": type, **options}


def output(table: str, columns: Sequence[dict[str, Any]] = (), **options: Any) -> PostgresOutput:
    """Return an output to a table."""
    mapped = {"columns": [*columns]} if columns else {}
    return PostgresOutput.load({"connection": "db", "table": table, **mapped, **options})


def sink(
    server: Postgres | StubContext,
    table: str,
    columns: Sequence[dict[str, Any]] = (),
    *,
    limits: Limits | None = None,
    **options: Any,
) -> PostgresSink:
    """Return a writer that has not connected."""
    ctx = context(server) if isinstance(server, Postgres) else server
    made = output(table, columns, **options).open(ctx, limits)
    assert isinstance(made, PostgresSink)
    return made


@asynccontextmanager
async def operator(server: Postgres) -> AsyncIterator[asyncpg.Connection]:
    """Give a client of the superuser."""
    client = await asyncpg.connect(
        server.url,
        ssl=server.trusting() if server.tls else False,
        direct_tls=False,
        target_session_attrs="any",
        gsslib="gssapi",
    )
    try:
        yield client
    finally:
        client.terminate()


async def done(server: Postgres, *statements: str) -> None:
    """Have the superuser do something."""
    async with operator(server) as client:
        for statement in statements:
            await client.execute(statement)


async def found(server: Postgres, query: str) -> list[Any]:
    """Return what a query of the superuser finds: rows as tuples, of one column as values."""
    async with operator(server) as client:
        rows = await client.fetch(query)
    return [row[0] if len(row) == 1 else tuple(row) for row in rows]


async def until(server: Postgres, query: str) -> None:
    """Return when a query of the superuser finds what is true, or what is not nothing."""
    async with operator(server) as client, asyncio.timeout(PATIENCE):
        while not await client.fetchval(query):
            pass


async def cut_off(server: Postgres, pipeline: str = "p1") -> None:
    """End the sessions of a pipeline; return when they are over, whatever it does then."""
    ours = f"select pid from pg_stat_activity where application_name = 'headrace-{pipeline}'"
    ended = ", ".join(map(str, await found(server, ours)))
    await done(server, f"select pg_terminate_backend(pid) from unnest(array[{ended}]) as pid")
    await until(server, f"select count(*) = 0 from pg_stat_activity where pid in ({ended})")
