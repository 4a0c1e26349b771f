"""Messages as rows of CSV, as outputs write them into parts.

`CsvRowWriter` is written twice. The plain way makes cell by cell. Before it a batch goes the usual way,
which is generated: strings are put in unseen, and what they may hold that has to be quoted is looked for
once in all rows together. Where that is found, the rows are made again with a look at each string.

Measured on 3.11, ns a message of five columns, batches of 100: usually 800, with a look at each string
1,230, plainly 2,200; as `ndjson` 180, by the `csv` module, which writes booleans and some numbers
otherwise, 730.

Source: RFC 4180; line ends are LF, as those of `ndjson`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headrace.compiler.batchloops import of_each
from headrace.compiler.code import Code
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.csvtext import COMMA, MOST_COLUMNS, QUOTE, SIGNS, WrittenSeparator, quoted
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.errors import BatchFailed
from headrace.compiler.jsontext import encode
from headrace.compiler.schema.fields import Boolean, MessageField
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.text.diagnostics import Fault, repeated
from headrace.compiler.texttemplates import put_in

LONGEST_ROW = 1024 * 1024
"""Characters of a row. Quoting takes up to 10 ns for each."""
INLINE_COLUMNS = 50
"""Columns up to which the usual values are written in place: it takes 0.5 ms a column to compile."""
UNUSUAL_BATCHES = 16
"""Batches that are made with a look at each string from the start, where one had to be made again."""


class CsvWriting(Record):
    """How rows of CSV are written.

    A string is quoted where it has a separator, a quote or a line end in it, and where it begins with one
    of `=`, `+`, `-` and `@`, which spreadsheets take for a formula: quoted, and not changed. That is no
    protection: a spreadsheet that opens the file calculates it nevertheless. A number or boolean is as JSON
    writes it, a list or an object is its JSON text, and a field that is missing or null is an empty cell. A
    batch with a row of more than 1,048,576 characters fails.
    """

    columns: tuple[str, ...] = option(
        ListOf(MessageField(), at_least=1, at_most=MOST_COLUMNS, noun="dotted path"),
        "The fields that are written, in order, up to 1,000; as they are spelt here, they are the header.",
        elsewhere="fields names",
    )
    header: bool = option(
        Boolean(),
        "Whether each part begins with a row of the names.",
        default=True,
        elsewhere="has_header headers write_header",
    )
    separator: str = option(
        WrittenSeparator(),
        'What stands between cells; a tab is `"\\t"`.',
        default=COMMA,
        elsewhere="comma delimiter delim sep",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse columns that are there twice."""
        yield from repeated(
            ((name, ("columns", at)) for at, name in enumerate(self.columns)),
            said="the column '{name}' is {place} already",
            expected="each column once",
        )


class CsvRowWriter:
    """Makes rows of batches."""

    def __init__(self, config: CsvWriting, ctx: Context) -> None:
        self._paths = [*map(DottedPath, config.columns)]
        self._separator = config.separator
        self._commas = len(self._paths) - 1
        place = f"{ctx.pipeline} {ctx.place}"
        self._careful = of_each(self._carefully, f"{place} csv, cell by cell")
        self._usual = of_each(self._usually, f"{place} csv") if self._is_inline else None
        self._unusual = 0
        """Batches from now on that are made with a look at each string."""

    def header(self) -> bytes:
        """Return the row of the names."""
        return self._line([path.text for path in self._paths]).encode()

    def __call__(self, batch: Batch) -> bytes:
        """Return the rows of a batch, each with its line end.

        Raises:
            BatchFailed: a row is too long.
            ValueError, TypeError, RecursionError: as `jsontext.encode` does.
        """
        try:
            return self._quickly(batch)
        except Exception:  # told by the plain way, if there is a fault at all
            return "".join(map(self._row, batch)).encode()

    def _quickly(self, batch: Batch) -> bytes:
        if self._usual is not None and not self._unusual:
            rows = self._usual(batch)
            text = "".join(rows)
            if (
                text.count(self._separator) == len(batch) * self._commas
                and text.count("\n") == len(batch)
                and QUOTE not in text
                and "\r" not in text
            ):
                return self._bounded(rows, text)
            self._unusual = UNUSUAL_BATCHES
        self._unusual = max(self._unusual - 1, 0)
        rows = self._careful(batch)
        return self._bounded(rows, "".join(rows))

    def _bounded(self, rows: Sequence[str], text: str) -> bytes:
        if len(text) > LONGEST_ROW and max(map(len, rows)) > LONGEST_ROW:
            raise _too_long()
        return text.encode()

    def _row(self, message: JsonValue) -> str:
        """Return the row of a message, the plain way."""
        row = self._line([path.read(message) for path in self._paths])
        if len(row) > LONGEST_ROW:
            raise _too_long()
        return row

    def _line(self, values: Sequence[Any]) -> str:
        cells = [self._cell(None if value is MISSING else value) for value in values]
        return self._separator.join(cells) + "\n"

    @property
    def _is_inline(self) -> bool:
        """Whether usual values are written in place. The one cell of a row may not be nothing at all."""
        return 1 < len(self._paths) <= INLINE_COLUMNS

    def _usually(self, code: Code) -> str:
        """Write a row as source, in which strings are put as they are but for signs."""
        signs = code.constant(SIGNS, "signs")
        return self._written(code, f"{{0}}[:1] not in {signs}")

    def _carefully(self, code: Code) -> str:
        """Write a row as source, with a look at each string."""
        return self._written(code, "False")

    def _written(self, code: Code, is_plain: str) -> str:
        cell = code.constant(self._cell, "cell")
        cells = []
        for path in self._paths:
            name = code.read(path)
            value = f"{cell}({name})"
            if self._is_inline:
                value = _inline(name, is_plain.format(name), value)
            cells.append(f"{{{value}}}")
        return "f'" + self._separator.replace("\\", "\\\\").replace("'", "\\'").join(cells) + "\\n'"

    def _cell(self, value: JsonValue) -> str:
        """Return a value as it stands in a row."""
        if value.__class__ is str:
            text: str = value
        elif value is None:
            text = ""
        else:
            text = encode(value).decode()
            if text == "null":  # no number: only arithmetic makes one
                text = ""
            elif value.__class__ is not list and value.__class__ is not dict:
                return text
        if len(text) > LONGEST_ROW:
            raise _too_long()
        if (
            self._separator in text
            or QUOTE in text
            or "\n" in text
            or "\r" in text
            or text[:1] in SIGNS
            or not (text or self._commas)  # else the row is an empty line
        ):
            return quoted(text)
        return text


def _inline(name: str, is_plain: str, otherwise: str) -> str:
    """Return a cell as source, with the usual values in place."""
    words = f'"true" if {name} is True else "false" if {name} is False else "" if {name} is None'
    return put_in(name, is_plain, f"{words} else {otherwise}")


def _too_long() -> BatchFailed:
    return BatchFailed(f"a row of CSV is longer than {LONGEST_ROW:,} characters")
