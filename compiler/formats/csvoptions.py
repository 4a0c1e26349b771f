"""The options of the format `csv`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace.compiler.casts import CASTS, DECIMAL_MARKS, OTHER_NAMES
from headrace.compiler.csvtext import COMMA, MOST_COLUMNS, CsvSeparator
from headrace.compiler.schema.fields import Boolean, Choice, Integer
from headrace.compiler.schema.partnames import NameOrNull, named_twice
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf, ObjectOf
from headrace.compiler.text.diagnostics import Fault, shown

MOST_SKIPPED = 1_000
"""Rows that may be left out before the header."""


class CsvOptions(Record):
    """How a table is read."""

    header: bool | None = option(
        Boolean(),
        "Whether the first row of each payload has names; absent, it has where `columns` does not.",
        default=None,
        elsewhere="has_header header_row headers",
    )
    columns: Sequence[str | None] | None = option(
        ListOf(NameOrNull(), at_least=1, at_most=MOST_COLUMNS),
        "Names in order, in place of those of the header; null leaves a column out.",
        default=None,
        elsewhere="column_names fieldnames fields names",
    )
    separator: str = option(
        CsvSeparator(),
        'Between cells. A `"` quotes a cell, and is doubled inside.',
        default=COMMA,
        elsewhere="comma delimiter sep",
    )
    types: Mapping[str, str] | None = option(
        ObjectOf(Choice(*CASTS, elsewhere=OTHER_NAMES), noun="type", null_is_absent=True),
        "Types of columns by their names, as `cast` has them. A cell is a string otherwise.",
        default=None,
        elsewhere="column_types dtypes",
    )
    decimal: str = option(
        Choice(*DECIMAL_MARKS),
        "What stands before the decimals of a `float`.",
        default=".",
        elsewhere="decimal_mark decimal_separator",
    )
    skip_rows: int = option(
        Integer(min=0, max=MOST_SKIPPED),
        "Lines before the header, or the first row, that are passed over.",
        default=0,
        elsewhere="skip skip_lines skiprows",
    )

    @property
    def has_header(self) -> bool:
        """Whether the first row is none of the table."""
        return self.columns is None if self.header is None else self.header

    def rules(self) -> Iterator[Fault]:
        """Refuse a table whose columns nobody names, or of which a name stands twice."""
        if not self.has_header and self.columns is None:
            yield Fault(
                "missing-key",
                "without a 'header' nothing names the columns",
                expected="'columns': their names in order",
                path=("columns",),
            )
        if self.columns is not None:
            yield from named_twice(self.columns, "columns")
        names = [each for each in self.columns or () if each is not None]
        for name in self.types or () if self.columns is not None else ():
            if name not in names:
                yield Fault(
                    "unknown-key",
                    f"there is no column {shown(name)}",
                    found=shown(name),
                    expected="one of " + ", ".join(names),
                    path=("types", name),
                    on_key=True,
                )
