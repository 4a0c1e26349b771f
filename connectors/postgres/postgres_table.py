"""A table in the words of PostgreSQL: what creates it, what inserts a batch, and what is there of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from headrace.compiler.errors import BuildRefused
from headrace.compiler.schema.fields import Boolean
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.tables.columns import ColumnName
from headrace.connectors.tables.rows import StoredColumn

if TYPE_CHECKING:
    from asyncpg import Connection

LONGEST = 63
"""Bytes of a name; a longer one is cut."""

RECEIVED_AT = '"received_at" TIMESTAMPTZ NOT NULL DEFAULT now()'
ID = '"id" BIGSERIAL PRIMARY KEY'
PLACE = '"#"'
"""The place of a row in its batch, by a name that no column of a config can have."""

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "text": "TEXT",
        "integer": "INTEGER",
        "bigint": "BIGINT",
        "float": "DOUBLE PRECISION",
        "decimal": "NUMERIC",
        "boolean": "BOOLEAN",
        "timestamp": "TIMESTAMPTZ",
        "date": "DATE",
        "uuid": "UUID",
        "json": "JSONB",
    }
)
"""The types of columns here, by their word in a config."""

IS_THERE = "SELECT to_regclass($1) IS NOT NULL"
INDEXES = """
SELECT relname FROM pg_catalog.pg_index JOIN pg_catalog.pg_class ON oid = indexrelid
WHERE indrelid = to_regclass($1)
"""
TYPES = """
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


class Declared(NamedTuple):
    """The type of a column as it is declared, and what it is if that is a domain."""

    called: str
    type: str

    def __str__(self) -> str:
        return self.called if self.called == self.type else f"{self.called}, which is {self.type}"


Types = Mapping[str, Declared]
"""The types of the columns of a table."""


class Index(Record):
    """An index of the table."""

    columns: tuple[str, ...] = option(
        ListOf(ColumnName(), at_least=1),
        "Mapped columns that it is made of, in their order.",
        elsewhere="column fields on",
    )
    unique: bool = option(
        Boolean(), "Whether no two rows may have the same values there.", default=False
    )

    def name(self, table: str) -> str:
        """Return what it is called: after its table, without a schema, and its columns."""
        suffix = "key" if self.unique else "idx"
        return "_".join([table.rpartition(".")[2], *self.columns, suffix])[:LONGEST]


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table as an output is to find it.

    ``on_conflict`` is ``error``, ``ignore`` or ``update``.
    """

    name: str
    columns: Sequence[StoredColumn]
    primary_key: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = ()
    on_conflict: str = "error"

    @property
    def quoted(self) -> str:
        """The name with its schema, each in quotes."""
        return ".".join(map(quoted, self.name.split(".")))

    def creation(self) -> str:
        """Return what creates the table where there is none."""
        return f"CREATE TABLE IF NOT EXISTS {self.quoted} ({', '.join(self._defined())})"

    def index_creations(self) -> dict[str, str]:
        """Return what creates each index, by its name."""
        made = {}
        for each in self.indexes:
            name, kind = each.name(self.name), "UNIQUE INDEX" if each.unique else "INDEX"
            place = f"{self.quoted} ({_listed(each.columns)})"
            made[name] = f"CREATE {kind} IF NOT EXISTS {quoted(name)} ON {place}"
        return made

    def insertion(self, types: Types) -> str:
        """Return the one statement that inserts a batch, whatever its size.

        It wants the literal of an array for each column. ``types`` are those of the table that is there:
        a row is written over once by a statement, so of several with one key it takes the last one, and
        which keys are one is up to their type.
        """
        names = _listed(each.name for each in self.columns)
        arrays = (f"${n}::TEXT::{KINDS[e.type]}[]" for n, e in enumerate(self.columns, 1))
        rows, changed = f"unnest({', '.join(arrays)})", self._changed()
        if changed:
            key = ", ".join(
                f"{quoted(name)}::{self._type(name, types)}" for name in self.primary_key
            )
            rows = (
                f"(SELECT DISTINCT ON ({key}) * FROM {rows} WITH ORDINALITY AS batch ({names}, {PLACE})"
                f" ORDER BY {key}, {PLACE} DESC) AS latest ORDER BY {PLACE}"
            )
        chosen = names if changed else "*"
        return (
            f"INSERT INTO {self.quoted} ({names}) SELECT {chosen} FROM {rows}{self._on_conflict()}"
        )

    def implied(self) -> list[str]:
        """Return what a table that is created has beside its columns."""
        names = {each.name for each in self.columns}
        implied = {} if self.primary_key else {"id": ID, "received_at": RECEIVED_AT}
        return [definition for name, definition in implied.items() if name not in names]

    def _defined(self) -> Iterator[str]:
        yield from self.implied()
        for each in self.columns:
            bound = "" if each.is_nullable else " NOT NULL"
            yield f"{quoted(each.name)} {KINDS[each.type]}{bound}"
        if self.primary_key:
            yield f"PRIMARY KEY ({_listed(self.primary_key)})"

    def _type(self, name: str, types: Types) -> str:
        """Return the type that a column has in the table, or is to have."""
        if name in types:
            return types[name].type
        return next(KINDS[each.type] for each in self.columns if each.name == name)

    def _changed(self) -> list[str]:
        """Return the columns, in quotes, that are written over in a row that is there."""
        return [
            quoted(each.name)
            for each in self.columns
            if self.on_conflict == "update" and each.name not in self.primary_key
        ]

    def _on_conflict(self) -> str:
        if self.on_conflict == "error":
            return ""
        if not (changed := self._changed()):
            return " ON CONFLICT DO NOTHING"
        changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in changed)
        return f" ON CONFLICT ({_listed(self.primary_key)}) DO UPDATE SET {changes}"


def quoted(name: str) -> str:
    """Return an identifier as it is written where its case is to count. It holds no quotes."""
    return f'"{name}"'


def _listed(names: Iterator[str] | Sequence[str]) -> str:
    return ", ".join(map(quoted, names))


async def create(connection: Connection, table: PostgresTable, seconds: float) -> None:
    """Create what is missing of a table and its indexes within so many seconds, all of it or nothing.

    What is there is not asked to be created if it is not: that takes rights, and locks out writers.

    Raises:
        BuildRefused: the name of an index belongs to something else.
        Exception: what the driver raises.
    """
    import asyncpg

    for is_last in (False, True):
        creations = table.index_creations()
        if await connection.fetchval(IS_THERE, table.quoted):
            there = await _indexes(connection, table)
            missing = [each for name, each in creations.items() if name not in there]
        else:
            missing = [table.creation(), *creations.values()]
        if not missing:
            break
        try:
            await connection.execute(";".join(missing), timeout=seconds)
            break
        except (
            asyncpg.UniqueViolationError,
            asyncpg.DuplicateTableError,
            asyncpg.DuplicateObjectError,
        ):
            # Somebody else creates it as well, and was faster. Rows that are not unique stay so.
            if is_last:
                raise
    await _check_indexes(connection, table)


async def _check_indexes(connection: Connection, table: PostgresTable) -> None:
    """Refuse an index that something else keeps from being created: the server says nothing."""
    there = await _indexes(connection, table) if table.indexes else set()
    for place, name in enumerate(table.index_creations()):
        if name not in there:
            raise BuildRefused(
                Fault(
                    "turned-away",
                    f"the index would be called '{name}', and so is something else in its schema",
                    found=name,
                    expected="another index",
                    path=("indexes", place),
                )
            )


async def _indexes(connection: Connection, table: PostgresTable) -> set[str]:
    return {each[0] for each in await connection.fetch(INDEXES, table.quoted)}
