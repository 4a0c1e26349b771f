"""A table in the words of PostgreSQL: what creates it, its indexes, and what inserts a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from headrace.connectors.tables.rows import StoredColumn

LONGEST = 63
"""Bytes of a name; a longer one is cut."""

RECEIVED_AT = '"received_at" TIMESTAMPTZ NOT NULL DEFAULT now()'
ID = '"id" BIGSERIAL PRIMARY KEY'


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


@dataclass(frozen=True, slots=True)
class TableIndex:
    """An index, by the columns it is made of."""

    columns: tuple[str, ...]
    is_unique: bool

    def name(self, table: str) -> str:
        """Return what it is called: after its table, without a schema, and its columns."""
        suffix = "key" if self.is_unique else "idx"
        parts = [table.rpartition(".")[2], *self.columns, suffix]
        return "_".join(parts)[:LONGEST]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as an output is to find it.

    ``on_conflict`` is ``error``, ``ignore`` or ``update``.
    """

    name: str
    columns: Sequence[StoredColumn]
    primary_key: tuple[str, ...] = ()
    indexes: tuple[TableIndex, ...] = ()
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
        return {name: self._indexed(name, each) for name, each in self.named_indexes()}

    def named_indexes(self) -> Iterator[tuple[str, TableIndex]]:
        """Yield the indexes with their names."""
        for each in self.indexes:
            yield each.name(self.name), each

    def insertion(self) -> str:
        """Return the one statement that inserts a batch, whatever its size.

        It wants the literal of an array for each column.
        """
        arrays = (f"${n}::TEXT::{KINDS[e.type]}[]" for n, e in enumerate(self.columns, 1))
        return (
            f"INSERT INTO {self.quoted} ({_listed(each.name for each in self.columns)})"
            f" SELECT * FROM unnest({', '.join(arrays)}){self._on_conflict()}"
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

    def _indexed(self, name: str, index: TableIndex) -> str:
        kind = "UNIQUE INDEX" if index.is_unique else "INDEX"
        columns = _listed(index.columns)
        return f"CREATE {kind} IF NOT EXISTS {quoted(name)} ON {self.quoted} ({columns})"

    def _on_conflict(self) -> str:
        if self.on_conflict == "error":
            return ""
        others = [quoted(e.name) for e in self.columns if e.name not in self.primary_key]
        if self.on_conflict == "ignore" or not others:
            return " ON CONFLICT DO NOTHING"
        changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in others)
        return f" ON CONFLICT ({_listed(self.primary_key)}) DO UPDATE SET {changes}"


def quoted(name: str) -> str:
    """Return an identifier as it is written where its case is to count. It holds no quotes."""
    return f'"{name}"'


def _listed(names: Iterator[str] | Sequence[str]) -> str:
    return ", ".join(map(quoted, names))
