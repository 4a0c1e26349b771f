"""The format `csv`: a payload is a table, each row of it a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import ClassVar

from headrace.compiler.casts import CastError
from headrace.compiler.csvtext import MOST_COLUMNS
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.formats.characters import pieces
from headrace.compiler.formats.csvcells import (
    CellCast,
    ColumnCast,
    ColumnCheck,
    as_strings,
    cast_of,
    checking,
    converting,
    source_of,
)
from headrace.compiler.formats.csvobjects import (
    MOST_WRITTEN_OUT,
    NamedCell,
    ObjectsOf,
    objects_of,
)
from headrace.compiler.formats.csvoptions import CsvOptions
from headrace.compiler.formats.csvrows import TableRow, rows
from headrace.compiler.formats.format import FormatMisfit, FormatOptions, Intake, PayloadFormat
from headrace.compiler.jsontext import Decoding
from headrace.compiler.text.counting import counted

CELLS_AT_ONCE = 4_096
"""Cells that are converted before others may have their turn: of the costliest types, some milliseconds."""
CELLS_ONE_BY_ONE = 1_024
"""The same of those that are cast cell by cell."""


class CsvTable(PayloadFormat, word="csv", elsewhere="table tsv"):
    """An empty cell is null; cells are strings where no type is given."""

    is_table: ClassVar = True

    def __init__(self, options: FormatOptions) -> None:
        self._options, self._encoding = options.csv or CsvOptions(), options.encoding

    def slices(
        self, payload: bytes | bytearray, into: Intake, decoding: Decoding
    ) -> Iterator[None]:
        """Make a message of each row behind the header."""
        options = self._options
        columns = None
        if not options.has_header:
            columns = Columns(options.columns or (), options, decoding)
        row = options.skip_rows
        for some in rows(self._texts(payload), options.separator):
            if columns is None and some:
                some, passed = _from_header(some)
                row += passed
                if some:
                    columns = self._columns(some[0], decoding)
                    some = some[1:]
                    row += 1
            if columns is not None and some:
                yield from columns.slices(some, row, into)
                row += len(some)
            yield
        if columns is None and payload:
            raise FormatMisfit("there is no header")

    def fields(self) -> Iterable[str] | None:
        """Those of `columns`; a header is known when it has come."""
        columns = self._options.columns
        return None if columns is None else [name for name in columns if name is not None]

    def _texts(self, payload: bytes | bytearray) -> Iterator[str]:
        """Yield the text behind the lines that are passed over."""
        skip = self._options.skip_rows
        for text in pieces(payload, self._encoding):
            while skip and (end := text.find("\n") + 1):
                text, skip = text[end:], skip - 1
            yield "" if skip else text

    def _columns(self, header: TableRow | FormatMisfit, decoding: Decoding) -> Columns:
        """Return the columns that a header has.

        Raises:
            FormatMisfit: a name stands there twice, or is none, or there are too many.
        """
        if isinstance(header, FormatMisfit):
            raise FormatMisfit(f"the header: {header}")
        if (named := self._options.columns) is not None:
            if len(header) != len(named):
                raise FormatMisfit(
                    f"the header has {counted(len(header), 'cell')}, and 'columns' names {len(named):,}",
                    "the header has another number of cells than 'columns' names",
                )
            return Columns(named, self._options, decoding)
        if len(header) > MOST_COLUMNS:
            raise FormatMisfit(
                f"the header has {len(header):,} cells, at most {MOST_COLUMNS:,} are taken",
                f"the header has more than {MOST_COLUMNS:,} cells",
            )
        if not all(header):
            raise FormatMisfit(
                f"cell {header.index('') + 1:,} of the header is empty",
                "a cell of the header is empty",
            )
        if len(set(header)) < len(header):
            twice = next(place for place, name in enumerate(header) if name in header[:place])
            raise FormatMisfit(
                f"cell {twice + 1:,} of the header is a name that stood before",
                "a name stands twice in the header",
            )
        for name in self._options.types or ():
            if name not in header:
                raise FormatMisfit(f"the header has no '{name}', which 'types' gives a type")
        return Columns(header, self._options, decoding)


class Columns:
    """The columns of one table: what makes messages of its rows."""

    def __init__(
        self, names: Sequence[str | None], options: CsvOptions, decoding: Decoding
    ) -> None:
        types, decimal = options.types or {}, options.decimal
        self._width, self._separator = len(names), options.separator
        self._named_by = "the header has" if options.has_header else "'columns' names"
        self._names: list[str] = []
        self._converts: list[tuple[int, ColumnCast]] = []
        self._casts: list[tuple[int, str, CellCast]] = []
        for place, name in enumerate(names):
            if name is None:
                continue
            word = types.get(name, "text")
            self._names.append(name)
            is_plain = word == "text"
            convert = as_strings if is_plain else converting(word, decimal, decoding)
            self._converts.append((place, convert))
            self._casts.append((place, name, str if is_plain else cast_of(word, decimal, decoding)))
        self._checks: list[tuple[int, ColumnCheck, str]] = []
        self._objects_of: ObjectsOf | None = None
        if self._width <= MOST_WRITTEN_OUT:
            self._write_out(types, decimal, decoding)
        self._json = [place for place, name, _ in self._casts if types.get(name) == "json"]
        self._keeps_digits = decoding.keeps_digits
        """Whether each number remembers how it was written, and is an object therefore."""
        self._floats = sum(types.get(name) == "float" for name in self._names)
        self._at_once = max(CELLS_AT_ONCE // self._width, 1)
        self._one_by_one = max(CELLS_ONE_BY_ONE // self._width, 1)

    def slices(
        self, some: Sequence[TableRow | FormatMisfit], before: int, into: Intake
    ) -> Iterator[None]:
        """Make messages of some rows, of which ``before`` are ahead of the first."""
        for begin in range(0, len(some), self._at_once):
            part = some[begin : begin + self._at_once]
            containers = self._containers(part) if into.counts_containers else 0
            try:
                messages = self._together(part)
            except (ValueError, TypeError):
                into.add_containers(containers)
                yield from self._each(part, before + begin, into)
            else:
                into.take(messages, containers)
                into.add_cells(len(messages) * len(self._names))
            yield

    def _write_out(self, types: Mapping[str, str], decimal: str, decoding: Decoding) -> None:
        cells: list[NamedCell | None] = [None] * self._width
        for place, name, cast in self._casts:
            word = types.get(name, "text")
            cells[place] = NamedCell(name, source_of(word, decimal, decoding), cast)
            if check := checking(word, decimal, decoding):
                self._checks.append((place, check, name))
        self._objects_of = objects_of(cells)

    def _containers(self, some: Sequence[TableRow | FormatMisfit]) -> int:
        """Return how many lists and objects are in the cells of some rows, or more."""
        found = len(some) * self._floats if self._keeps_digits else 0
        for place in self._json:
            cells = [row[place] for row in some if isinstance(row, list) and len(row) > place]
            text = "".join(cells)
            found += text.count("[") + text.count("{")
            found += len(cells) + text.count(",") if self._keeps_digits else 0
        return found

    def _together(self, some: Sequence[TableRow | FormatMisfit]) -> Batch:
        """Return the messages of rows, a column at a time.

        Raises:
            ValueError, TypeError: something about them is unusual.
        """
        if not all(some):
            some = [row for row in some if row]
        if self._objects_of is not None:
            messages = self._objects_of(some)  # type: ignore[arg-type]  # of a misfit: TypeError
            for place, check, name in self._checks if messages else ():
                check([row[place] for row in some], messages, name)  # type: ignore[index]
            return messages
        if set(map(len, some)) != {self._width}:  # type: ignore[arg-type]  # of a misfit: TypeError
            if not some:
                return []
            raise ValueError
        columns = [*zip(*some, strict=True)]
        converted = [convert(columns[place]) for place, convert in self._converts]
        return [*map(dict, map(zip, repeat(self._names), zip(*converted, strict=True)))]

    def _each(
        self, some: Sequence[TableRow | FormatMisfit], before: int, into: Intake
    ) -> Iterator[None]:
        """Make the messages row by row, and find those that do not fit."""
        made: Batch = []
        for index, row in enumerate(some, 1):
            try:
                if row:
                    made.append(self._message(row, before + index, into.numbers_rows))
            except FormatMisfit as cause:
                into.misfit(cause, self._text(row))
            if not index % self._one_by_one:
                into.take(made)
                into.add_cells(len(made) * len(self._names))
                made = []
                yield
        into.take(made)
        into.add_cells(len(made) * len(self._names))

    def _text(self, row: TableRow | FormatMisfit) -> bytes | None:
        """Return the cells of a row as a text; what could not be read as cells has none."""
        if isinstance(row, FormatMisfit):
            return None
        return self._separator.join(row).encode("utf-8", "replace")

    def _message(self, row: TableRow | FormatMisfit, number: int, numbers_rows: bool) -> JsonValue:
        """Return the message of one row: the plain truth.

        Raises:
            FormatMisfit: it has another number of cells, or one of them will not convert.
        """
        place_of_row = number if numbers_rows else None
        if isinstance(row, FormatMisfit):
            raise FormatMisfit(str(row), row.kind, place_of_row)
        if len(row) != self._width:
            raise FormatMisfit(
                f"{counted(len(row), 'cell')}, {self._named_by} {self._width:,}",
                f"a row with another number of cells than {self._named_by}",
                place_of_row,
            )
        message = {}
        for place, name, cast in self._casts:
            cell = row[place]
            try:
                message[name] = cast(cell) if cell else None
            except CastError as cause:
                raise FormatMisfit(
                    f"column '{name}': {cause}", f"column '{name}': {cause}", place_of_row
                ) from None
        return message


def _from_header(some: list[TableRow | FormatMisfit]) -> tuple[list[TableRow | FormatMisfit], int]:
    """Return rows from the first on that is not blank, and how many are before."""
    blank = next((place for place, row in enumerate(some) if row), len(some))
    return some[blank:], blank
