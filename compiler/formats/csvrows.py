"""The rows of a table: text that is cut into rows, and rows into cells, a slice at a time.

Python's reader does the work, a piece of text at a time: whole rows. Where a quoted cell goes on behind the
piece, its row is read once more with the next one. Rows have a longest length, so that is bounded.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterator
from itertools import islice

from headrace.compiler import csvtext
from headrace.compiler.formats.format import FormatMisfit

MOST_ROW = 256 * 1024
"""Characters of a row. The reader takes 14 ns for each of the costliest, empty cells: 4 ms."""
ROWS_AT_ONCE = 256
"""Rows that are read before others may have their turn."""

TableRow = list[str]
"""Cells; none in a blank line."""

RowReading = Generator[list[TableRow | FormatMisfit], None, str]
"""Yields rows, and returns the text of one that is not over."""

_LONG = f"longer than {MOST_ROW:,} characters"


def rows(texts: Iterator[str], separator: str) -> Iterator[list[TableRow | FormatMisfit]]:
    """Yield the rows of a text, or why one is none, in order; nothing wherever others may have a turn."""
    rest = ""
    is_cut = False
    """Whether the row that goes on was too long, and its end is yet to come."""
    for text in texts:
        if is_cut:
            end = text.find("\n") + 1
            if not end:
                yield []
                continue
            text, is_cut = text[end:], False
        text = rest + text
        end = text.rfind("\n") + 1
        whole, rest = text[:end], text[end:]
        if whole:
            begun = yield from _whole(whole, separator, is_last=False)
            rest = begun + rest
        if len(rest) > MOST_ROW:
            is_cut = not rest.endswith("\n")
            rest = ""
            yield [FormatMisfit(_LONG)]
        yield []
    if rest:
        yield from _whole(rest, separator, is_last=True)


def _whole(text: str, separator: str, *, is_last: bool) -> RowReading:
    """Yield the rows of whole lines: many at a time, as long as nothing is wrong with them."""
    reader = csvtext.rows_of(io.StringIO(text, newline="\n"), separator)
    read = 0
    """Lines whose rows are known."""
    try:
        while some := [*islice(reader, ROWS_AT_ONCE)]:
            read = reader.line_num
            yield [*some]
    except csv.Error:
        lines = io.StringIO(text, newline="\n").readlines()
        return (yield from _one_by_one(lines[read:], separator, is_last=is_last))
    return ""


def _one_by_one(lines: list[str], separator: str, *, is_last: bool) -> RowReading:
    following = iter(lines)
    read = 0
    """Lines whose rows are known."""
    some: list[TableRow | FormatMisfit] = []
    while read < len(lines):
        reader = csvtext.rows_of(following, separator)
        begun = read
        try:
            for row in reader:
                read = begun + reader.line_num
                some.append(row)
                if len(some) >= ROWS_AT_ONCE:
                    yield some
                    some = []
        except csv.Error as cause:
            why = csvtext.fault(cause)
            if why == csvtext.NOT_OVER and not is_last:
                yield some
                return "".join(lines[read:])
            read = begun + reader.line_num
            some.append(FormatMisfit(why))
        if len(some) >= ROWS_AT_ONCE:
            yield some
            some = []
    yield some
    return ""
