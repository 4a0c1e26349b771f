"""What CSV is here, for all who read or write it: what parts cells, what quotes them, and what is none.

Inputs read tables (`formats`), `parse` reads a line, and outputs write rows. What an output writes is read
with the same separator, unless it is longer than who reads it takes.

Source: RFC 4180, as Python's reader has it where it is strict; a line ends with LF as well.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Any, Protocol

from headrace.compiler.schema.fields import Text, refused
from headrace.compiler.text.diagnostics import shown

COMMA = ","
"""What stands between cells unless a config says otherwise."""
MOST_COLUMNS = 1_000
"""Columns of a table, or of a line."""
MOST_CELL = 128 * 1024
"""Characters of a cell that is read: the limit of Python's reader, where nobody has changed it."""

QUOTE = '"'
SIGNS = frozenset("=+-@")
"""What a string begins with that a spreadsheet takes for a formula."""
_MARKS = QUOTE + "\r\n\0"
"""What means something else wherever it stands."""

NOT_OVER = "a quote is never closed"
_WORDS = (
    ("expected after", "a quote closes before the end of its cell"),
    ("field larger", f"a cell of more than {MOST_CELL:,} characters"),
    ("new-line character", "a line end or carriage return outside of quotes"),
    ("unexpected end", NOT_OVER),
)


class CsvSeparator(Text):
    """What stands between the cells that are read: one character."""

    expects = "one character that is no quote and ends no line"

    def read(self, value: Any) -> str:
        """Take one that tells where a cell ends."""
        text: str = super().read(value)
        if len(text) != 1 or not self.parts_cells(text):
            raise refused(
                "not-a-choice",
                f"expected {self.expects}, found {shown(text)}",
                found=text,
                expected=self.expects,
                hint='write "\\t"' if text.lower() in ("\\t", "tab") else None,
            )
        return text

    def parts_cells(self, character: str) -> bool:
        """Return whether cells can be told from each other by it."""
        return character not in _MARKS


class WrittenSeparator(CsvSeparator):
    """What stands between the cells that are written: numbers and words have none of it, and no quotes."""

    expects = "one character that is no letter, digit, quote, line end, or one of + - . = @"

    def parts_cells(self, character: str) -> bool:
        """Return whether nothing that is written without quotes has it in it."""
        is_free = not character.isalnum() and character not in {*SIGNS, "."}
        return is_free and super().parts_cells(character)


class CsvRows(Protocol):
    """Rows as they are read, one after the other."""

    line_num: int
    """Lines that were taken for them so far."""

    def __iter__(self) -> CsvRows: ...
    def __next__(self) -> list[str]:
        """Return the cells of the next row, none of a blank line.

        Raises: `csv.Error`, of which `fault` tells why.
        """


def rows_of(lines: Iterable[str], separator: str) -> CsvRows:
    """Return the rows of lines that have their ends. What is no row raises `csv.Error`."""
    return csv.reader(lines, delimiter=separator, quotechar=QUOTE, strict=True)


def fault(cause: csv.Error) -> str:
    """Return why something is no row."""
    said = str(cause)
    return next((ours for theirs, ours in _WORDS if theirs in said), "no row of a table")


def quoted(text: str) -> str:
    """Return a text as a cell that may have any character in it."""
    return QUOTE + text.replace(QUOTE, QUOTE + QUOTE) + QUOTE
