"""ClickHouse: the connection, and the output that inserts rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from headrace.compiler.component.bisection import Bisection
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.families import Connection
from headrace.compiler.component.promises import OutputPromises
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.compiler.schema.fields import (
    Boolean,
    ConnectionName,
    Identifier,
    Integer,
    SecretText,
)
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.schema.urls import HttpUrl, ParsedUrl
from headrace.compiler.text.diagnostics import Fault, Path
from headrace.connectors.clickhouse.clickhouse_table import RECEIVED_AT, ClickHouseTable
from headrace.connectors.clickhouse.errorcodes import CLICKHOUSE_FAILURES
from headrace.connectors.disk.paths import FilePath
from headrace.connectors.network.refusal import turned_away
from headrace.connectors.network.tls import TlsFiles
from headrace.connectors.tables.cells import Cell, decimal
from headrace.connectors.tables.columns import CELLS, ColumnName
from headrace.connectors.tables.moments import date, timestamp
from headrace.connectors.tables.output import Key, TableOutput

if TYPE_CHECKING:
    from headrace.connectors.clickhouse.connection import ClickHouseServer, Limits

FIRST_DAY, LAST_DAY = "1900-01-01", "2299-12-31"
"""What `Date32` and `DateTime64` know."""

# Source: RFC 9110, section 5.5: what no header carries, or loses on its way.
_NOT_IN_A_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|^[ \t]|[ \t]$")


class ClickHouseConnection(Connection, kind="clickhouse", listed=4):
    """A ClickHouse server, over its HTTP interface.

    The certificate of an ``https://`` server is always verified. A redirect is not followed, and no
    proxy is taken from the environment.
    """

    drivers = ("headrace.connectors.clickhouse.connection",)

    url: ParsedUrl = option(
        HttpUrl(), "Base url of its HTTP interface.", elsewhere="address endpoint host server"
    )
    database: str = option(Identifier(), "Database; it has to exist.", elsewhere="db dbname")
    user: str = option(Identifier(), "User name.", elsewhere="login username")
    password: Secret = option(SecretText(), "Password of the user; may be empty.", elsewhere="pass")
    allow_http: bool = option(
        Boolean(),
        "Whether an `http://` url will do, over which rows and password are sent in the clear.",
        default=False,
    )
    ca_file: str | None = option(
        FilePath(),
        "PEM file with the authorities to trust, instead of the system's; a relative path starts at"
        " the directory of the config.",
        default=None,
        additive=True,
    )

    @property
    def is_https(self) -> bool:
        """Whether it is made over TLS."""
        return self.url.text.lower().startswith("https://")

    def rules(self) -> Iterator[Fault]:
        """Refuse what stands in the wrong place."""
        if self.url.user is not None:
            yield Fault(
                "conflict",
                "'url' holds user info, and the connection has 'user' and 'password'",
                expected="a url without user info",
                path=("url",),
            )
        if "?" in self.url.location:
            yield Fault(
                "not-a-url",
                "a base url has no query ('?...')",
                expected="a url without a query",
                path=("url",),
            )
        if self.ca_file is not None and not self.is_https:
            yield Fault(
                "conflict",
                "'ca_file' means nothing without TLS",
                expected="an https:// url",
                path=("ca_file",),
            )
        if _NOT_IN_A_HEADER.search(self.user):
            yield _not_sent("user", ("user",))

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Tell of a server that would be sent the password in the clear."""
        yield from super().examine(context)
        yield from self._in_the_clear(("url",))

    def _in_the_clear(self, path: Path) -> Iterator[Fault]:
        if not self.is_https and not self.allow_http:
            yield Fault(
                "conflict",
                f"'{self.url}' sends rows and password in the clear",
                expected="an https:// url, or 'allow_http: true'",
                path=path,
            )

    def readings(self) -> Iterator[TlsFiles]:
        """Yield what TLS is made of."""
        if self.is_https:
            yield TlsFiles(self.ca_file)

    def server(self, ctx: Context, limits: Limits | None = None) -> ClickHouseServer:
        """Return the server.

        Raises:
            BuildRefused: its url is refused, the password does not resolve, or cannot be sent.
        """
        from headrace.connectors.clickhouse.connection import ClickHouseServer, Limits  # the driver

        for fault in self._in_the_clear(("connection",)):
            raise BuildRefused(fault)
        password = ctx.resolve(self.password)
        if _NOT_IN_A_HEADER.search(password):
            raise BuildRefused(_not_sent("password", ("connection",)))
        return ClickHouseServer(
            self.url,
            self.user,
            password,
            ctx.read(TlsFiles(self.ca_file)) if self.is_https else None,
            ctx,
            limits or Limits(),
        )

    async def reach(self, ctx: Context) -> None:
        """Ask for the number 1, in the database."""
        from headrace.connectors.clickhouse.connection import ErrorAnswer

        server = self.server(ctx)
        try:
            if await server.ask("SELECT 1", {"database": self.database}) != b"1\n":
                raise server.stranger()
        except ErrorAnswer as said:
            if said.is_passing:
                raise Unreachable(f"{server.where} says '{said.title}'") from None
            raise turned_away(f"{server.where} says '{server.quoted(said.words)}'") from None
        finally:
            await server.close()


def _not_sent(key: str, path: Path) -> Fault:
    return Fault(
        "illegal-header",
        f"'{key}' holds what no header can carry",
        expected="no line breaks or control characters, and no blanks around it",
        path=path,
    )


class InsertSettings(Record):
    """Settings of ClickHouse for each insert; those that are left out are the user's on the server."""

    deduplicate_blocks_in_dependent_materialized_views: bool | None = option(
        Boolean(), "Whether materialized views leave out repeated inserts, too.", default=None
    )
    distributed_foreground_insert: bool | None = option(
        Boolean(),
        "Whether an insert into a `Distributed` table is over when the shards have it.",
        default=None,
    )
    insert_deduplicate: bool | None = option(
        Boolean(), "Whether a replicated table leaves out repeated inserts.", default=None
    )
    insert_quorum: int | None = option(
        Integer(), "Replicas that have to have an insert before it is over.", default=None
    )
    insert_quorum_timeout: int | None = option(
        Integer(), "Milliseconds that these replicas may take.", default=None
    )
    materialized_views_ignore_errors: bool | None = option(
        Boolean(), "Whether rows stay that a materialized view fails on.", default=None
    )
    max_partitions_per_insert_block: int | None = option(
        Integer(),
        "Partitions that a batch may have rows for; 0 is no limit, 100 that of most servers.",
        default=None,
    )

    def parameters(self) -> dict[str, str]:
        """Return those that are given, as parameters of a request."""
        return {name: str(int(value)) for name, value in self.values().items() if value is not None}


_WRITTEN = "the server has answered the insert of the batch"
OUTPUT = OutputPromises(
    row="output",
    written=_WRITTEN,
    away="batches are lost and counted, and never sent later; one on its way may be stored all the same",
    twice="nothing",
)
OUTPUT_TOKENS = OutputPromises(
    row="output_tokens",
    when=", `deduplicate_token`",
    written=_WRITTEN,
    away="a batch on its way is sent once more; then batches are lost and counted, and never sent later;"
    " one on its way may be stored all the same",
    twice="nothing that is tried again in one run, where the table leaves out what it has had (a batch is"
    " sent again under its token); what comes again after the process or the pipeline has ended is written"
    " again",
    is_repeatable=True,
)


class ClickHouseOutput(TableOutput, kind="clickhouse", listed=7):
    """Insert each batch into a ClickHouse table, with one insert.

    A batch is written when the server says so: asynchronous inserts are off. One that it refuses is
    lost as a whole, and so is one of which a value does not fit its column. A sorting key does not
    deduplicate.

    When the connection breaks during an insert, nobody knows whether the server has the rows. With
    ``deduplicate_token`` the batch is sent once more, and a table that deduplicates inserts takes it
    once. Without, it counts as lost. A batch that comes again after a restart has another token.
    """

    drivers = ("aiohttp",)
    promises: ClassVar = (OUTPUT, OUTPUT_TOKENS)
    failure_classes: ClassVar = CLICKHOUSE_FAILURES
    bisection: ClassVar = Bisection(
        "halves",
        "where the server refuses rows before it makes a part of any: not where a materialized view or"
        " another server refuses them, or for a code that nobody knows",
    )

    connection: str = option(ConnectionName("clickhouse"), "Connection to write to.")
    order_by: tuple[str, ...] = option(
        ListOf(ColumnName(), noun="column name"),
        "Columns that a new table is sorted by; they become NOT NULL. Without it the table gets a"
        " column `received_at`, unless one is mapped, and is sorted by that.",
        default=(),
        elsewhere="key keys primary_key sorting_key",
    )
    settings: InsertSettings | None = option(
        RecordOf(InsertSettings), "Settings for each insert.", default=None, additive=True
    )
    deduplicate_token: bool = option(
        Boolean(),
        "Give each batch a token of its own (`insert_deduplication_token`), and send it once more"
        " when the connection breaks. For tables that deduplicate inserts: replicated ones do.",
        default=False,
        additive=True,
    )

    def promised(self) -> OutputPromises:
        """Return what tokens come to."""
        return OUTPUT_TOKENS if self.deduplicate_token else OUTPUT

    def rules(self) -> Iterator[Fault]:
        """Refuse tokens that nobody looks at."""
        yield from super().rules()
        if self.deduplicate_token and self.settings and self.settings.insert_deduplicate is False:
            yield Fault(
                "conflict",
                "with 'insert_deduplicate: false' a batch that is sent again is stored again",
                expected="'insert_deduplicate: true', or no 'deduplicate_token'",
                path=("settings", "insert_deduplicate"),
            )

    def keys(self) -> Iterator[Key]:
        """Yield the sorting key."""
        if self.order_by:
            yield Key(self.order_by, ("order_by",), is_needed=True)

    def needed(self) -> frozenset[str]:
        """Return the columns of the sorting key; a mapped ``received_at`` may be all of it."""
        is_by_arrival = self.create_table and not self.order_by
        return super().needed() | ({RECEIVED_AT} if is_by_arrival else frozenset())

    def cells(self) -> Mapping[str, Cell]:
        """Return those of ClickHouse."""
        return _CELLS

    def kept_as(self) -> str:
        """Return the connection and the table."""
        return f"{self.kind} {self.connection} {self.table}"

    def open(self, ctx: Context, limits: Limits | None = None) -> AwaitingSink:
        """Build what inserts. Opens nothing yet."""
        from headrace.connectors.clickhouse.sink import ClickHouseSink  # the driver

        connection = ctx.connection(ClickHouseConnection, self.connection)
        database, _, name = self.table.rpartition(".")
        return ClickHouseSink(
            connection.server(ctx, limits),
            connection.database,
            ClickHouseTable(database, name, self.stored_columns(), self.order_by),
            self.rows(ctx),
            ctx,
            creates=self.create_table,
            settings=self.settings.parameters() if self.settings else {},
            has_tokens=self.deduplicate_token,
        )


_CELLS = {
    **CELLS,
    "decimal": decimal(before=29, after=9),
    "timestamp": timestamp(FIRST_DAY, LAST_DAY),
    "date": date(FIRST_DAY, LAST_DAY),
}
