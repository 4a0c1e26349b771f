"""PostgreSQL: the connection, and the output that inserts rows into a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.compiler.component.bisection import Bisection
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.promises import OutputPromises
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.schema.fields import (
    Choice,
    ConnectionName,
    Identifier,
    Integer,
    Name,
    SecretText,
    refused,
)
from headrace.compiler.schema.records import option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.text.diagnostics import Fault, Path, repeated, shown
from headrace.connectors.network.tls import TlsConnection
from headrace.connectors.postgres.arrayliterals import postgres_cells
from headrace.connectors.postgres.postgres_table import LONGEST, Index, PostgresTable
from headrace.connectors.postgres.sqlstates import FAILURE_CLASSES
from headrace.connectors.tables.cells import Cell
from headrace.connectors.tables.columns import ColumnName
from headrace.connectors.tables.output import Key, TableOutput

if TYPE_CHECKING:
    from headrace.connectors.postgres.connection import Limits, PostgresServer

MOST_CONNECTIONS = 100
MOST_COLUMNS = 1600
RESERVED = "pg_"
"""How the names of the server's own schemas begin. What is in that of temporary tables, ``pg_temp``, is
gone with the connection.

Source: https://www.postgresql.org/docs/current/ddl-schemas.html#DDL-SCHEMAS-CATALOG
"""
_HOST = re.compile(r"[^\s:/@,\[\]\x00-\x1f\x7f]+|[0-9A-Fa-f:.]+(%\w+)?")


class Host(Name):
    """The name or the address of a host, without a port."""

    expects = "a host name or an IP address"

    def read(self, value: Any) -> str:
        """Take what can be looked up."""
        host: str = super().read(value)
        if not _HOST.fullmatch(host):
            raise refused(
                "not-an-address",
                f"{shown(host)} is no host: {self._wrong(host)}",
                found=host,
                expected=self.expects,
            )
        return host

    def _wrong(self, host: str) -> str:
        if "://" in host:
            return "it is a url"
        if host.startswith("/"):
            return "it is a path, and servers are reached over TCP"
        name, colon, port = host.rpartition(":")
        if colon and port.isdigit() and _HOST.fullmatch(name.strip("[]")):
            return "the port has a key of its own"
        return "hosts are not written so"


class ServerName(Identifier):
    """What a server calls something: a user, a database."""

    def read(self, value: Any) -> str:
        """Take a name without a NUL, which would end it."""
        name: str = super().read(value)
        if "\0" in name:
            raise refused(
                "control-character",
                "a name on a server holds no NUL character",
                found=name,
                expected=self.expects,
            )
        return name


class PostgresConnection(
    TlsConnection, kind="postgres", listed=3, elsewhere="pg postgresql timescaledb"
):
    """A PostgreSQL server, and one of its databases.

    With `tls` the connection is made over TLS or not at all, without it never. Users sign in with a
    password (SCRAM-SHA-256, or whatever older way the server asks for), or with the certificate of
    `cert_file` where the server takes that; then the password does not matter. What the environment
    says to other programs (``PGSSLMODE``, ``PGPASSFILE``) does not count.
    """

    drivers = ("headrace.connectors.postgres.connection",)

    host: str = option(
        Host(), "Name or address of the server.", elsewhere="address hostname server url"
    )
    port: int = option(Integer(max=65_535), "Its port.", default=5432)
    database: str = option(
        ServerName(), "Database to connect to; it must exist.", elsewhere="db dbname"
    )
    user: str = option(ServerName(), "User to sign in as.", elsewhere="login username")
    password: Secret = option(
        SecretText(), "Password of the user, usually a ${NAME} reference.", elsewhere="pass"
    )

    def server(self, ctx: Context, limits: Limits | None = None) -> PostgresServer:
        """Return the server as one component reaches it.

        Raises:
            BuildRefused: the password does not resolve, or a file for TLS cannot be used.
        """
        from headrace.connectors.postgres.connection import Limits, PostgresServer  # the driver

        return PostgresServer(
            self.host,
            self.port,
            self.database,
            self.user,
            ctx.resolve(self.password),
            self.tls_context(ctx) if self.tls else None,
            ctx,
            limits or Limits(),
        )

    async def reach(self, ctx: Context) -> None:
        """Sign in to the database, and hang up."""
        server = self.server(ctx)
        with ctx.clock.outside():
            connection = await server.connect()
            with suppress(Exception):  # if nobody listens any more, the driver cuts it
                await connection.close(timeout=server.limits.close_seconds)


_COMMITTED = "the server has committed the batch, which is one transaction"
_AWAY = "a batch on its way is tried once more; then batches are lost and counted, and never written later"
OUTPUT = OutputPromises(
    row="output",
    written=_COMMITTED,
    away=_AWAY,
    twice="what the server committed and could not confirm",
)
OUTPUT_KEYED = OutputPromises(
    row="output_keyed",
    when=", `on_conflict` `ignore` or `update`",
    written=_COMMITTED,
    away=_AWAY,
    twice="nothing (a row whose key is there is left as it is, or written over)",
    is_repeatable=True,
)


class PostgresOutput(
    TableOutput, kind="postgres", listed=6, elsewhere="pg postgresql sql sql_insert timescaledb"
):
    """Insert each message as a row of a table in PostgreSQL.

    A batch is one statement, and so one transaction: all of its rows are written, or none. It is
    written when the server has committed it. A batch that the server refuses, for a key that is there
    already or a value that does not fit, is lost as a whole and reported; later ones go on. One during
    which the connection breaks is tried once more.

    A table that is created has an `id` and a `received_at` beside its columns, unless there is a
    primary key or a column of that name.
    """

    drivers = ("asyncpg",)
    promises: ClassVar = (OUTPUT, OUTPUT_KEYED)
    failure_classes = FAILURE_CLASSES
    bisection: ClassVar = Bisection(
        "halves", "always: a batch is one statement, of which all is taken or nothing"
    )

    connection: str = option(ConnectionName("postgres"), "Connection to write to.")
    primary_key: tuple[str, ...] = option(
        ListOf(ColumnName()),
        "Mapped columns that tell rows apart; they become NOT NULL. The table then has no `id` and no"
        " `received_at`.",
        default=(),
        elsewhere="key keys pk",
    )
    indexes: tuple[Index, ...] = option(
        ListOf(RecordOf(Index), noun="index"), "Indexes to create with the table.", default=()
    )
    on_conflict: str = option(
        Choice(
            "error",
            "ignore",
            "update",
            elsewhere={
                "error": "fail",
                "ignore": "do_nothing nothing skip",
                "update": "merge overwrite replace upsert",
            },
        ),
        "For a row whose key is there already: `error` fails the batch, `ignore` leaves the row out,"
        " `update` writes its other columns over those of the row that is there.",
        default="error",
        additive=True,
        elsewhere="conflict",
    )
    pool: int = option(
        Integer(min=1, max=MOST_CONNECTIONS),
        "Connections to use. With 1 batches are written in order; with more, so many at a time.",
        default=1,
        additive=True,
        elsewhere="max_connections pool_size",
    )

    def promised(self) -> OutputPromises:
        """Return what a key comes to."""
        return OUTPUT if self.on_conflict == "error" else OUTPUT_KEYED

    def most_columns(self) -> int:
        """Return how many columns a table has room for, beside those that it is created with."""
        return MOST_COLUMNS - len(self._wanted().implied() if self.create_table else ())

    def keys(self) -> Iterator[Key]:
        """Yield the primary key and the indexes."""
        if self.primary_key:
            yield Key(self.primary_key, ("primary_key",), is_needed=True)
        for place, each in enumerate(self.indexes):
            yield Key(each.columns, ("indexes", place, "columns"))

    def unapplied(self) -> Iterator[Key]:
        """Return the keys of a table that is not created, less the one that tells of conflicts."""
        tells = self.on_conflict != "error"
        return (key for key in super().unapplied() if not (tells and key.is_needed))

    def rules(self) -> Iterator[Fault]:
        """Refuse indexes of one name, and what can never conflict or has no order to keep."""
        yield from super().rules()
        yield from self._misnamed()
        yield from self._conflicting()

    def cells(self) -> Mapping[str, Cell]:
        """Return those of PostgreSQL."""
        return postgres_cells()

    def kept_as(self) -> str:
        """Return the connection and the table."""
        return f"{self.kind} {self.connection} {self.table}"

    def open(self, ctx: Context, limits: Limits | None = None) -> AwaitingSink:
        """Build the writer. Connects to nothing yet."""
        from headrace.connectors.postgres.sink import PostgresSink  # the driver

        return PostgresSink(
            self._wanted(),
            self.rows(ctx),
            ctx.connection(PostgresConnection, self.connection).server(ctx, limits),
            ctx,
            creates=self.create_table,
            connections=self.pool,
        )

    def _wanted(self) -> PostgresTable:
        """Return the table as it is to be found."""
        return PostgresTable(
            self.table,
            self.stored_columns(),
            self.primary_key,
            self.indexes,
            self.on_conflict,
        )

    def _misnamed(self) -> Iterator[Fault]:
        """Yield names that the server cuts, so that two may be one, and schemas that are its own.

        And indexes of one name.
        """
        schema, _, table = self.table.rpartition(".")
        yield from _too_long(schema, "schema", ("table",))
        yield from _too_long(table, "table", ("table",))
        for index, column in enumerate(self.columns):
            yield from _too_long(column.name, "column", ("columns", index, "name"))
        if schema.startswith(RESERVED):
            yield Fault(
                "conflict",
                f"'{schema}' is a schema of PostgreSQL's own: its tables are not for rows to keep",
                found=schema,
                expected=f"a schema whose name does not begin with '{RESERVED}'",
                path=("table",),
            )
        yield from repeated(
            ((each.name(self.table), ("indexes", at)) for at, each in enumerate(self.indexes)),
            said="the index would be called '{name}', as {place} is",
            expected="indexes whose names differ in their first 63 characters",
        )

    def _conflicting(self) -> Iterator[Fault]:
        has_unique = any(each.unique for each in self.indexes) or not self.create_table
        if self.on_conflict == "update" and not self.primary_key:
            yield Fault(
                "conflict",
                "'update' needs a key that tells which row to write over",
                found="update",
                expected="'primary_key'",
                path=("on_conflict",),
            )
        elif self.on_conflict == "ignore" and not (self.primary_key or has_unique):
            yield Fault(
                "conflict",
                "'ignore' needs a key or a unique index: nothing else is there already",
                found="ignore",
                expected="'primary_key', or an index that is unique",
                path=("on_conflict",),
            )
        if self.on_conflict == "update" and self.pool > 1:
            yield Fault(
                "conflict",
                "'update' needs the order of the batches: over several connections it is lost",
                found=str(self.pool),
                expected="1",
                path=("pool",),
            )


def _too_long(name: str, what: str, path: Path) -> Iterator[Fault]:
    """Yield what is wrong with a name that the server would cut."""
    if len(name) > LONGEST:
        yield Fault(
            "out-of-range",
            f"a name of {len(name):,} characters: PostgreSQL cuts that of a {what} to {LONGEST}",
            found=name,
            expected=f"at most {LONGEST} characters",
            path=path,
        )
