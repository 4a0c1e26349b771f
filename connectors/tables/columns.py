"""Columns: how one field of a message becomes a column, in the same words for every database."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from headrace.compiler import dottedpaths
from headrace.compiler.schema.fields import Boolean, Choice, MessageField, Text, refused
from headrace.compiler.schema.records import Record, option
from headrace.compiler.text.diagnostics import Codes, Fault, shown
from headrace.connectors.tables import cells, moments
from headrace.connectors.tables.rows import StoredColumn

CODES: Codes = {
    "not-an-identifier": "A table or a column has a name that is no plain identifier.",
}

CELLS: Mapping[str, cells.Cell] = MappingProxyType(
    {
        "text": cells.text(),
        "integer": cells.integer(32),
        "bigint": cells.integer(64),
        "float": cells.float_(),
        "decimal": cells.decimal(),
        "boolean": cells.boolean(),
        "timestamp": moments.timestamp(),
        "date": moments.date(),
        "uuid": cells.uuid(),
        "json": cells.json(),
    }
)
"""The cell of every type, by its word in a config, for a database that takes whatever Python can hold.

What a driver is handed:

- text: str, without lone surrogates
- integer, bigint: int, of 32 and 64 bits
- float: float, finite
- decimal: Decimal, finite, with the digits as written
- boolean: bool
- timestamp: datetime, always aware, of whatever offset
- date: date
- uuid: str, 8-4-4-4-12 hexadecimal digits of either case
- json: bytes, compact JSON text in UTF-8

A database overrides what it takes otherwise: ``{**CELLS, "text": text(nul=False)}``.
"""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TABLE = re.compile(rf"{_IDENTIFIER.pattern}(\.{_IDENTIFIER.pattern})?", re.ASCII)

_OTHER_NAMES = {
    "text": "string str varchar char",
    "integer": "int int4 int16 int32 smallint",
    "bigint": "int64 uint32 long",
    "float": "double double_precision float4 float8 float32 float64 number real",
    "decimal": "numeric",
    "boolean": "bool",
    "timestamp": "datetime datetime64 timestamptz",
    "date": "date32",
    "uuid": "guid",
    "json": "array jsonb list map object",
}
"""What the types are called elsewhere, by our word."""


class ColumnName(Text):
    """The name of a column, taken as it is: it is quoted wherever it goes, so its case is kept."""

    noun = "column name"

    expects = "letters, digits and underscores, no digit first"

    def read(self, value: Any) -> str:
        """Take an identifier."""
        return _identifier(super().read(value), _IDENTIFIER, "column", self.expects)


class TableName(Text):
    """The name of a table, alone or behind that of its schema or database."""

    expects = "one name, or two joined by a dot, of letters, digits and underscores, no digit first"

    def read(self, value: Any) -> str:
        """Take one or two identifiers."""
        table: str = super().read(value)
        return _identifier(table, _TABLE, "table", self.expects, self.instead(table))


class Claim(Boolean):
    """A boolean that is false unless it is said: an echo leaves false out, null says nothing."""

    never_absent = True
    is_null_absent = False


class Column(Record):
    """How one field becomes a column."""

    name: str = option(
        ColumnName(), "Name of the column; quoted, so its case is kept.", elsewhere="as column"
    )
    type: str = option(
        Choice(*CELLS, elsewhere=_OTHER_NAMES),
        "Type of the column. Values are checked, never converted.",
    )
    field: str | None = option(
        MessageField(),
        "Field it is taken from; without it, the name.",
        default=None,
        elsewhere="from path source",
    )
    message: bool = option(
        Claim(), "Store the whole message; of type `json`, and without `field`.", default=False
    )
    nullable: bool = option(
        Boolean(), "Whether the column may be NULL; `false` makes it NOT NULL.", default=True
    )
    on_missing: str | None = option(
        Choice(
            "null",
            "error",
            "skip_row",
            null_word=True,
            elsewhere={"error": "fail", "skip_row": "drop ignore omit skip"},
        ),
        "For a message without the field, or with null there: `null` writes NULL, `error` fails the "
        "batch, `skip_row` leaves the message out. Without it `null`, or `error` where the column is "
        "not nullable.",
        default=None,
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse what excludes each other."""
        if self.message and self.field is not None:
            yield Fault(
                "conflict",
                "a column stores the whole message or a field of it, not both",
                expected="'message' or 'field'",
                path=("field",),
            )
        if self.message and self.type != "json":
            yield Fault(
                "conflict",
                f"a whole message cannot be stored as '{self.type}'",
                found=self.type,
                expected="json",
                path=("type",),
            )
        if not self.nullable and self.on_missing == "null":
            yield Fault(
                "conflict",
                "a column that is not nullable cannot take null for a missing field",
                found="null",
                expected="error or skip_row",
                path=("on_missing",),
            )

    @property
    def path(self) -> str | None:
        """The field it is taken from, as a config writes it; None for the whole message."""
        return None if self.message else self.field or self.name

    def stored(self, *, is_needed: bool) -> StoredColumn:
        """Return the column as it is written; one that is needed, as a key is, cannot be NULL."""
        is_nullable = self.nullable and not is_needed
        policy = self.on_missing or "null"
        if policy == "null" and not is_nullable:
            policy = "error"
        field = None if self.path is None else dottedpaths.DottedPath(self.path)
        return StoredColumn(self.name, self.type, field, is_nullable, policy)


def _identifier(
    text: str, form: re.Pattern[str], what: str, expected: str, hint: str | None = None
) -> str:
    if form.fullmatch(text):
        return text
    raise refused(
        "not-an-identifier",
        f"{shown(text)} cannot be the name of a {what}",
        found=text,
        expected=expected,
        hint=hint,
    )
