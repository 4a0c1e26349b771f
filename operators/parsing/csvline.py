"""The form of one line of CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence

from headrace.compiler import csvtext
from headrace.compiler.casts import DECIMAL_MARKS
from headrace.compiler.code import Code
from headrace.compiler.csvtext import MOST_COLUMNS, CsvSeparator
from headrace.compiler.schema.fields import Choice
from headrace.compiler.schema.partnames import NameOrNull, named_twice
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.text.counting import counted
from headrace.compiler.text.diagnostics import Fault
from headrace.operators.parsing.form import MANY, InOrder, Insist
from headrace.operators.parsing.values import Mismatch


class CsvLineForm(Record, InOrder):
    """One line of CSV: cells in order, in double quotes where they hold a separator."""

    word = "csv"
    usual_nulls = ("",)

    columns: tuple[str | None, ...] = option(
        ListOf(NameOrNull(), at_least=1, at_most=MOST_COLUMNS),
        "What each cell is called, in order; null leaves one out.",
        elsewhere="fields headers names",
    )
    separator: str = option(
        CsvSeparator(),
        "What stands between cells.",
        default=csvtext.COMMA,
        elsewhere="delimiter",
    )
    decimal: str = option(
        Choice(*DECIMAL_MARKS),
        "What stands before the decimals of a `float`.",
        default=".",
        elsewhere="decimal_point decimal_separator",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse a name that stands twice, and no name at all."""
        yield from named_twice(self.columns, "columns")

    @property
    def parts(self) -> Sequence[str | None]:
        """The columns, as they are given."""
        return self.columns

    @property
    def at_once(self) -> int:
        """A quarter: all of it is cut into cells, however many columns there are."""
        return min(super().at_once, MANY // 4)

    def cut(self, text: str) -> Sequence[str]:
        """Return the cells."""
        cells = self._cells()(text)
        if len(cells) != len(self.columns):
            columns = counted(len(self.columns), "column")
            raise Mismatch(f"{counted(len(cells), 'cell')} for {columns}")
        return cells

    def cut_source(self, code: Code, text: str, demand: Insist) -> str:
        """Call what cuts; it may raise."""
        cells = code.let(f"{code.constant(self._cells(), 'cells')}({text})", "cells")
        demand(f"len({cells}) == {len(self.columns)}")
        return cells

    def may_raise(self, values: object) -> bool:
        """A text may be no CSV at all."""
        return True

    def _cells(self) -> Callable[[str], list[str]]:
        """Return what cuts one text. Without a character in it there is one empty cell."""
        rows_of, separator = csvtext.rows_of, self.separator

        def cells(text: str) -> list[str]:
            try:
                return next(rows_of((text,), separator)) or [""]
            except csv.Error as cause:
                raise Mismatch(csvtext.fault(cause)) from None

        return cells
