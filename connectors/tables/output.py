"""Tables: what the outputs of all databases have in common.

A database subclasses `TableOutput`, says with `keys` which of its options name columns, and gets the
rules of them all. What its sink works with is `stored_columns`, with the keys applied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.families import Fits
from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.schema.fields import Boolean, Choice
from headrace.compiler.schema.records import listed, option
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.schema.templates import Fixed
from headrace.compiler.text.composing import FAULTS
from headrace.compiler.text.diagnostics import Codes, Fault, Path, Severity, repeated
from headrace.compiler.text.suggest import nearest, one_of
from headrace.connectors.tables.cells import Cell
from headrace.connectors.tables.columns import CELLS, Column, TableName
from headrace.connectors.tables.rows import Rows, StoredColumn

CODES: Codes = {
    "not-applied": "A setting does nothing, because of another one.",
    "unknown-column": "A key or an index names a column that is not mapped.",
}

PAYLOAD = StoredColumn("payload", "json", None, is_nullable=False, on_missing="error")
"""The column of a table without `columns`: the whole message."""


@dataclass(frozen=True, slots=True)
class Key:
    """Columns that an option of a table names: a primary key, an index, a sorting key.

    ``path`` leads to the list of names; its first step is the option. With ``is_needed`` it is a key
    in the strict sense: its columns become NOT NULL, and it names each of them once.
    """

    columns: tuple[str, ...]
    path: Path
    is_needed: bool = False


class TableOutput(QueuedOutput):
    """An output that writes rows into a table.

    A database says with `keys` which of its options name columns, overrides `needed` and `unapplied`
    where it knows more, and asks for `stored_columns` and `rows` when it opens.
    """

    table: str = option(TableName(fixed=Fixed()), "Table to write to.", elsewhere="into relation")
    columns: tuple[Column, ...] = option(
        ListOf(RecordOf(Column), noun="column"),
        "Which fields become which columns. Without it each message is stored whole, as JSON, in a "
        "column named `payload`.",
        default=(),
        elsewhere="fields mapping schema",
    )
    create_table: bool = option(
        Boolean(),
        "Create the table if there is none. One that is there is never altered.",
        default=True,
    )
    on_extra_fields: str = option(
        Choice(
            "ignore",
            "error",
            never_absent=True,
            elsewhere={"ignore": "drop omit skip", "error": "fail"},
        ),
        "For a message with a field that no column takes: `ignore` leaves the field out, `error` fails "
        "the batch.",
        default="ignore",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse columns that are there twice, and keys of columns that are not there."""
        yield from super().rules()
        yield from islice(self._wrong(), FAULTS)

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Remark on keys that do nothing."""
        yield from super().examine(context)
        if options := [*dict.fromkeys(str(key.path[0]) for key in self.unapplied())]:
            do = "does" if len(options) == 1 else "do"
            yield Fault(
                "not-applied",
                f"{listed(options)} {do} nothing: 'create_table' is false",
                path=(options[0],),
                on_key=True,
                severity=Severity.WARNING,
            )

    def field_use(self) -> FieldUse:
        """It asks for the fields of its columns, each of which is certain to be NULL if it is missing.

        What else it reads is not told: a whole message is everything that is there.
        """
        fields = {path for each in self.columns if (path := each.path) is not None}
        return replace(FieldUse.unknown(), asks=frozenset(fields))

    def keeps_digits(self) -> bool:
        """A decimal column takes numbers as they were written."""
        return any(each.type == "decimal" for each in self.columns)

    def most_columns(self) -> int:
        """Return how many columns the database takes in one table, beside those it has anyway."""
        return 10_000

    def keys(self) -> Iterator[Key]:
        """Yield what the options of this database name columns for."""
        return iter(())

    def needed(self) -> frozenset[str]:
        """Return the columns that become NOT NULL, whatever they say themselves."""
        return frozenset(
            name
            for key in self.keys()
            if self.create_table and key.is_needed
            for name in key.columns
        )

    def unapplied(self) -> Iterator[Key]:
        """Yield the keys that do nothing: those of a table that is not created."""
        if not self.create_table:
            yield from self.keys()

    def stored_columns(self) -> tuple[StoredColumn, ...]:
        """Return the columns as they are written: the mapped ones, or the whole message."""
        needed = self.needed()
        mapped = tuple(each.stored(is_needed=each.name in needed) for each in self.columns)
        return mapped or (PAYLOAD,)

    def cells(self) -> Mapping[str, Cell]:
        """Return what makes cells of values, by type of column."""
        return CELLS

    def rows(self, ctx: Context) -> Rows:
        """Return what makes rows of batches."""
        return Rows(
            self.stored_columns(), self.cells(), ctx, refuses_extra=self.on_extra_fields == "error"
        )

    def fits(self, ctx: Context) -> Fits:
        """Return what makes rows of a batch. What the table that is there bounds is not known."""
        return self.rows(ctx)

    def _wrong(self) -> Iterator[Fault]:
        if len(self.columns) > (most := self.most_columns()):
            expected = f"at most {most:,} columns"
            found = f"{len(self.columns):,}"
            yield Fault(
                "out-of-range",
                f"expected {expected}, found {found}",
                found,
                expected,
                path=("columns",),
            )
        names = ((each.name, ("columns", at, "name")) for at, each in enumerate(self.columns))
        said = "the column '{name}' is {place} already"
        yield from repeated(names, said=said, expected="each column once")
        if not self.columns:
            # What has no meaning where nothing is mapped.
            named = dict.fromkeys(key.path[0] for key in self.keys())
            for name in (*named, *(["on_extra_fields"] if self.on_extra_fields == "error" else [])):
                yield Fault(
                    "conflict",
                    f"'{name}' needs 'columns': without them the whole message is stored",
                    expected="'columns'",
                    path=(name,),
                    on_key=True,
                )
            return
        mapped = {each.name for each in self.columns}
        for key in self.keys():
            yield from _wrong_in(key, mapped)


def _wrong_in(key: Key, mapped: Collection[str]) -> Iterator[Fault]:
    """Yield what is wrong with the names of a key or an index."""
    first: dict[str, int] = {}
    for index, name in enumerate(key.columns):
        path = (*key.path, index)
        if name not in mapped:
            yield Fault(
                "unknown-column",
                f"there is no column '{name}' among the mapped ones",
                found=name,
                expected=one_of(sorted(mapped)),
                path=path,
            ).meaning(nearest(name, mapped))
        elif key.is_needed and first.setdefault(name, index) != index:
            yield Fault(
                "duplicate",
                f"the key names the column '{name}' twice",
                found=name,
                expected="each column once",
                path=path,
            )
