"""A table of a database that nobody has, for tests of what all databases have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.compiler.component.catalogue import Catalogue, scan
from headrace.compiler.config.program import load_program
from headrace.compiler.schema.fields import Boolean
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.text.diagnostics import Diagnostic
from headrace.connectors.tables.columns import ColumnName
from headrace.connectors.tables.output import Key, TableOutput
from tests.compiler.catalogued import plain, written


class Mark(Record):
    """Columns that are looked things up by."""

    columns: tuple[str, ...] = option(ListOf(ColumnName(), at_least=1), "Which.")
    unique: bool = option(Boolean(), "Whether each is there once.", default=False)


class Shelf(TableOutput, kind="shelf"):
    """A table with both sorts of keys, of a database that takes eight columns."""

    sorted_by: tuple[str, ...] = option(ListOf(ColumnName()), "Its key.", default=())
    marks: tuple[Mark, ...] = option(ListOf(RecordOf(Mark)), "Its indexes.", default=())

    def most_columns(self) -> int:
        """Eight."""
        return 8

    def keys(self) -> Iterator[Key]:
        """The key and the indexes."""
        if self.sorted_by:
            yield Key(self.sorted_by, ("sorted_by",), is_needed=True)
        for place, mark in enumerate(self.marks):
            yield Key(mark.columns, ("marks", place, "columns"))


CATALOGUE = Catalogue([*scan("headrace.operators", "headrace.connectors"), Shelf])


def shelf(**options: Any) -> Shelf:
    """Return a table called ``t`` with these options."""
    return Shelf.load({"table": "t", **options})


def columns(*names: str, **options: Any) -> list[dict[str, Any]]:
    """Return columns of text as a config has them."""
    return [{"name": name, "type": "text", **options} for name in names]


def diagnostics_of(output: str, *transforms: str) -> list[Diagnostic]:
    """Return what is said of a table on line 6, or further down behind transforms from line 6 on."""
    lines = ["- id: a", "  inputs:", "    - {type: http}"]
    lines += ["  transforms:", *(f"    - {each}" for each in transforms)] if transforms else []
    text = "\n".join(["", *lines, "  outputs:", f"    - {output}"])
    return load_program(written(text), CATALOGUE)[1]


def diagnosed(output: str, *transforms: str) -> list[str]:
    """Return the same as lines: where, path, message."""
    return plain(diagnostics_of(output, *transforms))
