"""Getting a table ready: what is missing is created, what is there is left as it is, and then asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BuildRefused
from headrace.compiler.language.diagnostics import Fault
from headrace.connectors.postgres.column_types import Declared, Types
from headrace.connectors.postgres.postgres_table import Table

if TYPE_CHECKING:
    from asyncpg import Connection

ASK_SECONDS = 30.0
CREATE_SECONDS = 600.0
"""How long creating may take: the index of a table that is large already takes its time."""

_IS_THERE = "SELECT to_regclass($1) IS NOT NULL"
_INDEXES = """
SELECT relname FROM pg_catalog.pg_index JOIN pg_catalog.pg_class ON oid = indexrelid
WHERE indrelid = to_regclass($1)
"""
_TYPES = """
WITH RECURSIVE declared (name, called, type, modifier) AS (
    SELECT attname, format_type(atttypid, atttypmod), atttypid, atttypmod
    FROM pg_catalog.pg_attribute
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT name, called, typbasetype, typtypmod
    FROM declared JOIN pg_catalog.pg_type ON pg_type.oid = type WHERE typtype = 'd'
)
SELECT name, called, format_type(type, modifier)
FROM declared JOIN pg_catalog.pg_type ON pg_type.oid = type WHERE typtype <> 'd'
"""
"""A domain may be one over another: of interest is what is at the bottom."""


async def create(connection: Connection, table: Table, clock: Clock) -> None:
    """Create what is missing of a table and its indexes, all of it or nothing.

    What is there is not asked to be created if it is not: that takes rights, and locks out writers.

    Raises:
        BuildRefused: the name of an index belongs to something else.
        Exception: what the driver raises.
    """
    import asyncpg

    for is_last in (False, True):
        if not (missing := await _missing(connection, table, clock)):
            break
        try:
            async with clock.timeout(CREATE_SECONDS):
                await connection.execute(";".join(missing))
            break
        except (
            asyncpg.UniqueViolationError,
            asyncpg.DuplicateTableError,
            asyncpg.DuplicateObjectError,
        ):
            # Somebody else creates it as well, and was faster. Rows that are not unique stay so.
            if is_last:
                raise
    await _check_indexes(connection, table, clock)


async def rehearse(connection: Connection, table: Table, clock: Clock) -> None:
    """Have the server look at the statement: whether the table takes it, and us. Inserts nothing.

    Raises: what the driver does.
    """
    async with clock.timeout(ASK_SECONDS):
        await connection.fetch(f"EXPLAIN {table.insertion()}", *("{}" for _ in table.columns))


async def types(connection: Connection, table: Table, clock: Clock) -> Types:
    """Return the types that the columns of a table have. Raises what the driver does."""
    async with clock.timeout(ASK_SECONDS):
        rows = await connection.fetch(_TYPES, table.quoted)
    return {name: Declared(called, type) for name, called, type in rows}


async def _missing(connection: Connection, table: Table, clock: Clock) -> list[str]:
    """Return the statements that create what is missing."""
    async with clock.timeout(ASK_SECONDS):
        if not await connection.fetchval(_IS_THERE, table.quoted):
            return [table.creation(), *table.index_creations().values()]
        there = await _indexes(connection, table)
    return [each for name, each in table.index_creations().items() if name not in there]


async def _check_indexes(connection: Connection, table: Table, clock: Clock) -> None:
    """Refuse an index that something else keeps from being created: the server says nothing."""
    async with clock.timeout(ASK_SECONDS):
        there = await _indexes(connection, table) if table.indexes else set()
    for place, (name, _) in enumerate(table.named_indexes()):
        if name not in there:
            message = f"the index would be called '{name}', and so is something else in its schema"
            raise BuildRefused(
                Fault("turned-away", message, name, "another index", path=("indexes", place))
            )


async def _indexes(connection: Connection, table: Table) -> set[str]:
    return {each[0] for each in await connection.fetch(_INDEXES, table.quoted)}
