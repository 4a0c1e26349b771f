"""What a `postgres` output writes to: a table, over connections that are made again when they are lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from asyncpg import Connection, PostgresError

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed, BuildRefused, HeadraceError, Unreachable
from headrace.connectors.postgres.arrayliterals import of_large, plain, strings
from headrace.connectors.postgres.column_types import bounds, remarks, unfit
from headrace.connectors.postgres.connection import (
    PostgresServer,
    SaysNo,
    ends_session,
    failure_class,
    is_key_there,
    is_loss,
    is_rolled_back,
    may_be_content,
    more,
    refusal,
    spoken,
)
from headrace.connectors.postgres.postgres_table import (
    TYPES,
    Declared,
    PostgresTable,
    Types,
    create,
)
from headrace.connectors.postgres.sqlstates import CUT_OFF
from headrace.connectors.tables.rows import Rows

Arrays = Sequence[str]
"""What is to be written: the array of each column."""


class KeyIsThere(BatchFailed):
    """A key of a batch is there that was cut off before: it may well be its own."""


class PostgresSink(AwaitingSink):
    """Inserts each batch with one statement, which is a transaction: all of its rows or none."""

    def __init__(
        self,
        table: PostgresTable,
        rows: Rows,
        server: PostgresServer,
        ctx: Context,
        *,
        creates: bool,
        connections: int,
    ) -> None:
        self.at_once = connections
        self._ctx, self._table, self._creates = ctx, table, creates
        self._rows = rows
        self._literals = [strings if each.type == "text" else plain for each in table.columns]
        self._inserters = [Inserter(server, ctx) for _ in range(connections)]
        self._idle = [*self._inserters]
        self._cut_off: deque[Batch] = deque(maxlen=connections)
        """The batches that were cut off last: if one is tried again, a key that is there is its own."""

    async def start(self) -> None:
        """Connect, create the table if that is wanted, and learn what it keeps of these rows."""
        types = await self._inserters[0].set_up(self._table, creates=self._creates)
        for remark in remarks(self._table, types):
            self._ctx.warn(remark)
        self._rows.bound(bounds(self._table, types))
        for each in self._inserters:
            each.insertion = self._table.insertion(types)

    async def write(self, batch: Batch) -> None:
        """Insert the rows of a batch; return when the server has committed them.

        Raises:
            Unreachable: the connection is lost, and so is the one made in its place.
            BatchFailed: a message does not fit, or the server refuses the batch.
        """
        columns = await self._rows.of(batch)
        if not columns[0]:  # no row of it is left
            return
        if is_large(batch):
            arrays = [
                await of_large(form, columns.pop(0), self._ctx.clock) for form in self._literals
            ]
        else:
            arrays = [form(column) for form, column in zip(self._literals, columns, strict=True)]
        is_again = any(each is batch for each in self._cut_off)
        inserter = self._idle.pop()  # there is one: no more are written at once
        try:
            await inserter.insert(arrays, may_be_there=is_again)
        except BatchFailed as cause:
            if is_again and isinstance(cause, KeyIsThere):
                return
            if not is_again and cause.failure == CUT_OFF.failure:
                self._cut_off.append(batch)
            raise
        finally:
            self._idle.append(inserter)

    async def finish(self) -> None:
        """Hang up."""
        await asyncio.gather(*(each.close() for each in self._inserters))


class Inserter:
    """Inserts over one connection, which is made when it is needed, and again when it is lost."""

    def __init__(self, server: PostgresServer, ctx: Context) -> None:
        self._server, self._ctx, self._limits = server, ctx, server.limits
        self.insertion = ""
        self._connection: Connection | None = None
        self._is_sent = False
        self._told: set[str] = set()
        self._leaving: set[asyncio.Task[None]] = set()

    async def set_up(self, table: PostgresTable, *, creates: bool) -> Types:
        """Connect and have the table ready; return its types. Raises as `Sink.start` does."""
        try:
            with self._ctx.clock.outside():
                self._connection = connection = await self._server.connect()
                if creates:
                    await create(connection, table, self._limits.create_seconds)
                rows = await connection.fetch(TYPES, table.quoted)
                types = {name: Declared(called, type) for name, called, type in rows}
                # Whether the table takes it, and us. Inserts nothing.
                explanation = f"EXPLAIN {table.insertion(types)}"
                await connection.execute(explanation, *["{}"] * len(table.columns))
                if (fault := unfit(table, types)) is not None:
                    raise fault
                await self._server.limit(connection)
            return types
        except asyncio.CancelledError:
            self._give_up()
            raise
        except Exception as cause:
            self._drop()
            if isinstance(cause, PostgresError):
                raise self._server.refusal(cause, ("table",)) from None
            raise self._server.lost(cause) if is_loss(cause) else cause from None

    async def insert(self, arrays: Arrays, *, may_be_there: bool = False) -> None:
        """Insert rows; once more if it was not them that it failed for, twice if others were in the way.

        ``may_be_there``: they were sent before, and cut off. Raises as `PostgresSink.write` does.
        """
        try:
            return await self._insert(arrays)
        except HeadraceError:
            raise
        except Exception as cause:
            may_be_there = may_be_there or self._may_be_there(cause)
            if is_loss(cause) or spoken(cause) is None:
                self._drop()
                if sum(len(each.encode()) for each in arrays) > self._limits.batch_bytes:
                    # At that size the server hangs up.
                    raise BatchFailed(
                        "the batch is too large for the database: more than"
                        f" {self._limits.batch_bytes >> 20} MiB",
                        took_nothing=True,
                    ) from None
            if not (is_loss(cause) or is_rolled_back(cause)):
                raise self._failure(cause, may_be_there=may_be_there) from None
            if is_rolled_back(cause):
                await self._ctx.clock.sleep(self._limits.pauses[0])
        for pause in (self._limits.pauses[1], None):
            try:
                return await self._insert(arrays)
            except Exception as cause:
                may_be_there = may_be_there or self._may_be_there(cause)
                if pause is None or not is_rolled_back(cause):
                    raise self._failure(cause, may_be_there=may_be_there) from None
                await self._ctx.clock.sleep(pause)

    async def close(self) -> None:
        """Hang up, in order if that is soon done."""
        self._give_up()
        await asyncio.gather(*self._leaving)

    async def _insert(self, arrays: Arrays) -> None:
        """Insert rows. Raises what the driver does, and what connecting does."""
        self._is_sent = False
        try:
            with self._ctx.clock.outside():
                connection = self._connection
                if connection is None or connection.is_closed():
                    connection = self._connection = await self._server.connect()
                    await self._server.limit(connection)
                self._is_sent = True
                await connection.execute(self.insertion, *arrays)
        except asyncio.CancelledError:
            self._give_up()
            raise
        except BuildRefused as refused:  # since it was built: not for every batch anew
            failure = refused.failure if isinstance(refused, SaysNo) else "misconfigured"
            raise Unreachable(str(refused), failure) from None

    def _may_be_there(self, cause: Exception) -> bool:
        """Return whether a batch may be written that failed: of one that is not the server says why."""
        return self._is_sent and is_loss(cause) and spoken(cause) is None

    def _failure(self, cause: Exception, *, may_be_there: bool = False) -> Exception:
        """Return what to raise for a batch that is not written; let go of what is of no more use."""
        its_class = failure_class(cause, may_be_there=may_be_there)
        if isinstance(cause, HeadraceError):
            return Unreachable(str(cause), its_class)
        if is_loss(cause) or ends_session(cause):
            self._drop()
        if is_loss(cause):
            return Unreachable(str(self._server.lost(cause)), its_class)
        failure = refusal(cause)
        # Once: it holds values, so it may be another each time. Not ever new ones: the words are those
        # of the server, and a function of its administrator's may put values into them.
        if failure not in self._told and len(self._told) < self._limits.told:
            self._told.add(failure)
            if said := more(cause, failure):
                self._ctx.warn(f"{failure}: {self._server.quoted(said)}")
        if may_be_there and is_key_there(cause):
            return KeyIsThere(failure, its_class)
        is_invalid = its_class == "invalid"  # and the transaction is rolled back
        is_answered = may_be_content(cause) or is_invalid
        return BatchFailed(failure, its_class, is_answered=is_answered, took_nothing=is_invalid)

    def _drop(self) -> None:
        """Let go of the connection, whatever it is doing."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    def _give_up(self) -> None:
        """Let go of the connection without waiting for it.

        If the server is at a statement, it is asked to leave that: it would go on otherwise, and commit
        what counts as lost.
        """
        connection, self._connection = self._connection, None
        if connection is not None:
            leaving = asyncio.ensure_future(self._leave(connection))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _leave(self, connection: Connection) -> None:
        clock = self._ctx.clock
        with suppress(Exception), clock.outside():  # if nobody listens any more, the driver cuts it
            async with clock.timeout(self._limits.close_seconds):
                await connection.close()
