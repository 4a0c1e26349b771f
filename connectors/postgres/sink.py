"""What a `postgres` output writes to: a table, over connections that are made again when they are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed, BuildRefused, HeadraceError, Unreachable
from headrace.compiler.language.context import Context
from headrace.connectors.postgres.arrays import literal, of_large
from headrace.connectors.postgres.column_types import Types, bounds, remarks, unfit
from headrace.connectors.postgres.connection import PostgresServer
from headrace.connectors.postgres.keys import Latest
from headrace.connectors.postgres.postgres_table import Table
from headrace.connectors.postgres.setup import create, rehearse, types
from headrace.connectors.postgres.sqlstates import (
    ends_session,
    is_loss,
    is_rolled_back,
    more,
    refusal,
    spoken,
)
from headrace.connectors.tables.rows import Rows

if TYPE_CHECKING:
    from asyncpg import Connection
    from asyncpg.prepared_stmt import PreparedStatement

    from headrace.connectors.postgres import PostgresOutput

Arrays = Sequence[str]
"""What is to be written: the array of each column."""

WRITE_SECONDS = 30.0
"""How long a batch may take before the server counts as gone."""
STATEMENT_SECONDS = 25.0
"""How long the server may take over it, waiting for locks included: then it gives up and says so."""
PAUSES = (0.1, 0.4)
"""Seconds before a batch is written again that others were in the way of: they need time to go on, or
who waits for whom is the same again."""
GOODBYE_SECONDS = 1.0
MOST_TOLD = 100
"""Refusals in different words that the log has more of, each once."""

MOST_BYTES = (1 << 30) - (1 << 16)
"""At what size of a batch the server hangs up, less what is around the values: a gibibyte."""

_LIMIT = """
SELECT set_config('statement_timeout', $1, false) FROM pg_settings
WHERE name = 'statement_timeout' AND setting::int NOT BETWEEN 1 AND $1::int
"""
"""Bounds what a statement may take, unless the server bounds it closer. Units: milliseconds."""


class PostgresSink(AwaitingSink):
    """Inserts each batch with one statement, which is a transaction: all of its rows or none."""

    def __init__(
        self, config: PostgresOutput, table: Table, rows: Rows, server: PostgresServer, ctx: Context
    ) -> None:
        self.at_once = config.pool
        self._ctx, self._table, self._creates = ctx, table, config.create_table
        self._unbounded = self._rows = rows
        self._literals = [literal(each.type) for each in table.columns]
        self._latest: Latest | None = None
        self._links = [Link(table, server, ctx) for _ in range(config.pool)]
        self._idle = [*self._links]

    async def start(self) -> None:
        """Connect, create the table if that is wanted, and learn what it keeps of these rows."""
        there = await self._links[0].set_up(creates=self._creates)
        for remark in remarks(self._table, there):
            self._ctx.warn(remark)
        self._rows = self._unbounded.bounded(bounds(self._table, there))
        self._latest = Latest(self._table, there) if self._table.on_conflict == "update" else None

    async def write(self, batch: Batch) -> None:
        """Insert the rows of a batch; return when the server has committed them.

        Raises:
            Unreachable: the connection is lost, and so is the one made in its place.
            BatchFailed: a message does not fit, or the server refuses the batch.
        """
        arrays = await self._large(batch) if is_large(batch) else self._arrays(batch)
        if not arrays:
            return
        link = self._idle.pop()  # there is one: no more are written at once
        try:
            await link.insert(arrays)
        finally:
            self._idle.append(link)

    def _arrays(self, batch: Batch) -> Arrays:
        """Return what is to be written; nothing for a batch of which no row is left."""
        columns = self._rows(batch)
        if not columns[0]:
            return ()
        if self._latest is not None:
            columns = self._latest(columns)
        return [write(column) for write, column in zip(self._literals, columns, strict=True)]

    async def _large(self, batch: Batch) -> Arrays:
        """The same for a large batch, in turns with others."""
        clock = self._ctx.clock
        columns = await self._rows.of_large(batch)
        if not columns[0]:
            return ()
        if self._latest is not None:
            columns = await self._latest.of_large(columns, clock)
        return [await of_large(write, columns.pop(0), clock) for write in self._literals]

    async def finish(self) -> None:
        """Hang up."""
        await asyncio.gather(*(link.close() for link in self._links))


class Link:
    """One connection and its statement: made when they are needed, and again when they are lost."""

    def __init__(self, table: Table, server: PostgresServer, ctx: Context) -> None:
        self._server, self._ctx, self._table = server, ctx, table
        self._insertion = table.insertion()
        self._connection: Connection | None = None
        self._statement: PreparedStatement[Any] | None = None
        self._told: set[str] = set()
        self._leaving: set[asyncio.Task[None]] = set()

    async def set_up(self, *, creates: bool) -> Types:
        """Connect and have the table ready; return its types. Raises as `Sink.start` does."""
        from asyncpg import PostgresError

        clock = self._ctx.clock
        try:
            self._connection = connection = await self._server.connect()
            with clock.outside():
                if creates:
                    await create(connection, self._table, clock)
                await rehearse(connection, self._table, clock)
                found = await types(connection, self._table, clock)
            if (fault := unfit(self._table, found)) is not None:
                raise fault
            return found
        except PostgresError as cause:
            self._drop()
            raise self._server.refusal(cause, ("table",)) from None
        except Exception as cause:
            self._drop()
            raise self._server.lost(cause) if is_loss(cause) else cause from None
        except asyncio.CancelledError:
            self._give_up()
            raise

    async def insert(self, arrays: Arrays) -> None:
        """Insert rows; once more if it was not them that it failed for, twice if others were in the way.

        Raises as `PostgresSink.write` does.
        """
        try:
            return await self._insert(arrays)
        except HeadraceError:
            raise
        except Exception as cause:
            if is_loss(cause) or spoken(cause) is None:
                self._drop()
                _check_size(arrays)
            if not (is_loss(cause) or is_rolled_back(cause)):
                raise self._failure(cause) from None
            if is_rolled_back(cause):
                await self._ctx.clock.sleep(PAUSES[0])
        for pause in (PAUSES[1], None):
            try:
                return await self._insert(arrays)
            except Exception as cause:
                if pause is None or not is_rolled_back(cause):
                    raise self._failure(cause) from None
                await self._ctx.clock.sleep(pause)

    async def close(self) -> None:
        """Hang up, in order if that is soon done."""
        self._give_up()
        await asyncio.gather(*self._leaving)

    def _give_up(self) -> None:
        """Let go of the connection without waiting for it.

        If the server is at a statement, it is asked to leave that: it would go on otherwise, and commit
        what counts as lost.
        """
        connection, self._connection, self._statement = self._connection, None, None
        if connection is not None:
            leaving = asyncio.ensure_future(self._leave(connection))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _leave(self, connection: Connection) -> None:
        try:
            with self._ctx.clock.outside():
                async with self._ctx.clock.timeout(GOODBYE_SECONDS):
                    await connection.close()
        except Exception:  # nobody listens any more
            connection.terminate()

    async def _insert(self, arrays: Arrays) -> None:
        """Insert rows. Raises what the driver does, and what connecting does."""
        connection, clock = await self._connected(), self._ctx.clock
        try:
            with clock.outside():
                async with clock.timeout(WRITE_SECONDS):
                    statement = self._statement or await self._prepared(connection)
                    await statement.fetch(*arrays)
        except asyncio.CancelledError:
            self._give_up()
            raise

    async def _connected(self) -> Connection:
        """Return the connection; a new one if there is none, or none any more."""
        if self._connection is None or self._connection.is_closed():
            self._drop()
            try:
                self._connection = await self._server.connect()
            except BuildRefused as refused:  # since it was built: not for every batch anew
                raise Unreachable(str(refused)) from None
        return self._connection

    async def _prepared(self, connection: Connection) -> PreparedStatement[Any]:
        """Return the statement, prepared for a session whose statements have a limit."""
        await connection.fetch(_LIMIT, str(round(STATEMENT_SECONDS * 1000)))
        self._statement = await connection.prepare(self._insertion)
        return self._statement

    def _failure(self, cause: Exception) -> Exception:
        """Return what to raise for a batch that is not written; let go of what is of no more use."""
        if isinstance(cause, HeadraceError):
            return cause
        if is_loss(cause) or ends_session(cause):
            self._drop()
        if is_loss(cause):
            return self._server.lost(cause)
        failure = refusal(cause)
        # Once: it holds values, so it may be another each time. Not ever new ones: the words are those
        # of the server, and a function of its administrator's may put values into them.
        if failure not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(failure)
            if said := more(cause, failure):
                self._ctx.warn(f"{failure}: {self._server.quoted(said)}")
        return BatchFailed(failure)

    def _drop(self) -> None:
        """Let go of the connection, whatever it is doing."""
        connection, self._connection, self._statement = self._connection, None, None
        if connection is not None:
            connection.terminate()


def _check_size(arrays: Arrays) -> None:
    """Raise `BatchFailed` for rows at whose size the server hangs up."""
    if sum(len(each.encode()) for each in arrays) > MOST_BYTES:
        raise BatchFailed(
            f"the batch is too large for the database: more than {MOST_BYTES >> 20} MiB"
        )
