"""The ClickHouse output at work: makes the table, sends each batch as one insert."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hashlib import blake2b
from itertools import count

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable, class_of
from headrace.compiler.httpfailures import CUT_OFF
from headrace.compiler.largejson import WritingTurn
from headrace.compiler.text.diagnostics import Fault, Path
from headrace.connectors.clickhouse.clickhouse_table import (
    ClickHouseTable,
    described,
    finer,
    has_other_types,
    narrow,
    unfit,
)
from headrace.connectors.clickhouse.connection import (
    ClickHouseServer,
    ConnectionLost,
    ErrorAnswer,
    NotAnswered,
)
from headrace.connectors.clickhouse.errorcodes import (
    ACCESS_DENIED,
    MAY_BE_CONTENT,
    NOT_CONVERTED,
    TURNED_AWAY,
    UNKNOWN_DATABASE,
    UNKNOWN_TABLE,
)
from headrace.connectors.clickhouse.native import Blocks
from headrace.connectors.tables.output import PAYLOAD
from headrace.connectors.tables.rows import Rows

HASHED_BYTES = 1024 * 1024
"""What is hashed in one turn: a millisecond."""

ALWAYS = {
    # The answer to an insert is to mean that it is stored.
    "async_insert": "0",
    # A NULL for a column that cannot be NULL is an error, not a zero.
    "input_format_null_as_default": "0",
}


class ClickHouseSink(AwaitingSink):
    """Sends batches one after the other over one connection."""

    def __init__(
        self,
        server: ClickHouseServer,
        database: str,
        table: ClickHouseTable,
        rows: Rows,
        ctx: Context,
        *,
        creates: bool,
        settings: Mapping[str, str],
        has_tokens: bool,
    ) -> None:
        self._server, self._table, self._rows, self._ctx = server, table, rows, ctx
        self._creates, self._has_tokens = creates, has_tokens
        self._parameters = {"database": table.database or database, **ALWAYS, **settings}
        self._insertion, self._blocks = table.insertion, Blocks(table.columns)
        self._tokens = DeduplicationTokens()
        self._told: set[str] = set()

    async def start(self) -> None:
        """Sign in, create the table if that is wanted, and look whether it takes our rows."""
        try:
            if await self._asked("SELECT 1", ("connection",)) != b"1\n":
                raise self._server.stranger()
            if self._creates:
                await self._asked(self._table.creation, ("table",))
            await self._look()
        except BaseException:
            await self.finish()
            raise

    async def write(self, batch: Batch) -> None:
        """Insert a batch; nothing is sent for one of which no row is left.

        Raises:
            Unreachable: the server does not answer, or not now.
            BatchFailed: a value does not fit, or the server refuses the batch.
        """
        rows = await self._rows.of(batch)
        if not rows[0]:
            return
        if is_large(batch):
            block = await self._blocks.of_large(rows, self._ctx.clock)
        else:
            block = self._blocks.block(rows)
        try:
            await self._insert(batch, block)
        except ErrorAnswer as said:
            raise self._failure(said) from None
        except BuildRefused as refused:  # since it was built: not for every batch anew
            raise Unreachable(str(refused), class_of(refused)) from None
        except NotAnswered as cause:
            if not cause.is_sent:
                raise
            raise Unreachable(str(cause), CUT_OFF.failure) from None

    async def finish(self) -> None:
        """Hang up."""
        await self._server.close()

    async def _insert(self, batch: Batch, block: bytes) -> None:
        """Send a block; once more if the connection breaks and the server knows it again."""
        parameters = self._parameters
        if self._has_tokens:
            token = await self._tokens.of(batch, block, self._ctx.clock)
            parameters = {**parameters, "insert_deduplication_token": token}
        try:
            await self._sent(block, parameters)
        except ConnectionLost as lost:
            if not self._has_tokens:
                raise
            try:
                await self._sent(block, parameters)
            except Unreachable as cause:
                is_sent = lost.is_sent or (isinstance(cause, NotAnswered) and cause.is_sent)
                raise NotAnswered(str(cause), is_sent=is_sent) from None
        self._tokens.forget()

    async def _sent(self, block: bytes, parameters: Mapping[str, str]) -> None:
        await self._server.ask(
            self._insertion, parameters, block, seconds=self._server.limits.insert_seconds
        )

    async def _asked(self, statement: str, path: Path) -> bytes:
        """Run a statement of the start; refuse the output with what the server says against it."""
        try:
            return await self._server.ask(statement, self._parameters)
        except ErrorAnswer as said:
            raise self._refusal(said, path) from None

    async def _look(self) -> None:
        """Look at the table as it is, unless that is forbidden.

        Raises:
            BuildRefused: there is none, it lacks a column, or has one of a type that nothing of ours
                is converted to.
        """
        statement = f"DESCRIBE TABLE {self._table.quoted} FORMAT JSONCompactEachRow"
        try:
            found = described(await self._server.ask(statement, self._parameters))
        except ErrorAnswer as said:
            if said.code == ACCESS_DENIED:
                return
            raise self._refusal(said, ("table",)) from None
        except ValueError:
            raise self._server.stranger() from None
        if (fault := unfit(self._table, found)) is not None:
            raise fault
        self._blocks = Blocks(self._table.columns, finer(self._table, found))
        if has_other_types(self._table, found):
            await self._convert_nothing()
        for remark in narrow(self._table, found):
            self._ctx.warn(remark)

    async def _convert_nothing(self) -> None:
        """Insert a block without rows, for which the server says whether it converts its types.

        Raises:
            BuildRefused: it does not convert one of them.
        """
        nothing = self._blocks.block([[] for _ in self._table.columns])
        try:
            await self._server.ask(self._insertion, self._parameters, nothing)
        except ErrorAnswer as said:
            if said.code in NOT_CONVERTED.codes:
                path: Path = ("table",)
                named, columns = said.column(self._table.names), self._table.columns
                if named is not None and columns[0] is not PAYLOAD:
                    path = ("columns", self._table.names.index(named), "type")
                raise self._refusal(said, path) from None

    def _refusal(self, said: ErrorAnswer, path: Path) -> Exception:
        """Return what to raise for a no while the output is started."""
        where, words = self._server.where, self._server.quoted(said.words)
        if said.is_passing:
            return Unreachable(f"{where} says '{said.title}'")
        if said.code == UNKNOWN_DATABASE and self._table.database:
            path = ("table",)
        if said.code == UNKNOWN_TABLE and not self._creates:
            message = f"{where} has no table '{self._table.name}'"
            remedy: str | None = "a table, or 'create_table: true'"
        else:
            may_not = said.code == ACCESS_DENIED and self._creates
            message = f"{where} says '{words}'"
            remedy = "the right to create it, or 'create_table: false'" if may_not else None
        return BuildRefused(Fault("turned-away", message, expected=remedy, path=path))

    def _failure(self, said: ErrorAnswer) -> Exception:
        """Return what to raise for a batch that is refused, in words that are the same each time."""
        signature = said.signature(self._table.names)
        text = f"{self._server.where} says {signature}"
        if said.is_passing or said.code in TURNED_AWAY.codes:
            return Unreachable(text, said.failure, is_answered=said.code in MAY_BE_CONTENT)
        if said.sentence and signature not in self._told:
            self._told.add(signature)
            self._ctx.warn(f"{text}: {self._server.quoted(said.sentence)} (told this once)")
        return BatchFailed(
            text,
            said.failure,
            is_answered=said.failure == "invalid",
            took_nothing=said.took_nothing,
        )


class DeduplicationTokens:
    """What the server knows a batch by, if it is sent twice.

    The same content is sent again on purpose as well, so a token is that of one delivery: its place
    among those of this run is part of it.
    """

    def __init__(self) -> None:
        self._run = secrets.token_hex(8)
        self._numbers = count(1)
        self._latest: tuple[Batch, str] | None = None

    async def of(self, batch: Batch, block: bytes, clock: Clock) -> str:
        """Return the token of a batch: the same one, if it is tried again. Others have their turns."""
        if self._latest is None or self._latest[0] is not batch:
            self._latest = batch, await self.next(block, clock)
        return self._latest[1]

    def forget(self) -> None:
        """Note that the latest batch is written."""
        self._latest = None

    async def next(self, block: bytes, clock: Clock) -> str:
        """Return the token of a block that has not been sent yet."""
        digest = blake2b(digest_size=16)
        if len(block) <= HASHED_BYTES:
            digest.update(block)
        else:
            turn = WritingTurn(clock)
            for start in range(0, len(block), HASHED_BYTES):
                digest.update(memoryview(block)[start : start + HASHED_BYTES])
                await turn.end()
        return f"{digest.hexdigest()}-{self._run}-{next(self._numbers)}"
