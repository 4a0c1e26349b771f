"""Tables: their rows are those of Python's reader, their cells what casts make of them."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.casts import CASTS
from headrace.compiler.csvtext import MOST_CELL, MOST_COLUMNS
from headrace.compiler.decimals import Written
from headrace.compiler.formats.characters import PIECE
from headrace.compiler.formats.csvrows import MOST_ROW
from tests.compiler.formats.reading import kept, made


def test_a_row_is_a_message_and_an_empty_cell_is_null() -> None:
    assert made("csv", b"m,t\r\npress,21.5\r\noven,\r\n") == [
        {"m": "press", "t": "21.5"},
        {"m": "oven", "t": None},
    ]
    assert made("csv", b"m,t\n") == made("csv", b"") == []


def test_blank_lines_are_left_out_but_counted() -> None:
    assert made("csv", b"\na,b\n\n1,2\n\n\n3\n") == "row 7: 1 cell, the header has 2"


def test_cells_are_quoted_with_separators_line_ends_and_quotes_inside() -> None:
    assert made("csv", b'a,b\n"x,""y""\r\nz",2\n') == [{"a": 'x,"y"\r\nz', "b": "2"}]


def test_names_come_from_columns_in_place_of_the_header() -> None:
    named = {"columns": ["x", None, "z"], "header": True}
    assert made("csv", b"a,b,c\n1,2,3\n", **named) == [{"x": "1", "z": "3"}]
    assert made("csv", b"1,2\n", columns=["x", "y"], header=False) == [{"x": "1", "y": "2"}]
    assert made("csv", b"1\n", columns=["x", "y"], header=False) == (
        "row 1: 1 cell, 'columns' names 2"
    )


def test_lines_before_the_header_are_passed_over() -> None:
    table = b'Report "A\n\na;b\n1;2\n1\n'
    assert made("csv", table, skip_rows=2, separator=";") == "row 5: 1 cell, the header has 2"
    assert made("csv", table[:-2], skip_rows=2, separator=";") == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(
    ("word", "cell", "value"),
    [
        ("integer", "007", 7),
        ("integer", " +5 ", 5),
        ("float", "12.5", 12.5),
        ("float", "1e3", 1000.0),
        ("boolean", "True", True),
        ("date", "2026-11-27T01:00:00Z", "2026-11-27"),
        ("timestamp", "2026-11-27T01:00:00Z", CASTS["timestamp"]("2026-11-27T01:00:00Z")),
        ("text", "007", "007"),
        ("json", "[1]", [1]),
    ],
)
def test_a_column_has_a_type(word: str, cell: str, value: Any) -> None:
    assert made("csv", f"a,b\n{cell},\n,\n".encode(), types={"a": word}) == [
        {"a": value, "b": None},
        {"a": None, "b": None},
    ]


def test_decimals_may_stand_behind_a_comma() -> None:
    options: dict[str, Any] = {"separator": ";", "decimal": ",", "types": {"a": "float"}}
    assert made("csv", b"a;b\n12,5;1\n-3;\n", **options) == [
        {"a": 12.5, "b": "1"},
        {"a": -3.0, "b": None},
    ]
    assert made("csv", b"a;b\n1.234,5;1\n", **options) == (
        "row 2: column 'a': cannot read a string as a float: expected a number with a comma before its"
        " decimals"
    )


def test_a_float_keeps_its_digits_where_they_are_wanted() -> None:
    [message] = made(
        "csv", b"a\n1,10\n".replace(b",", b"."), types={"a": "float"}, keeps_digits=True
    )
    [plain] = made("csv", b"a\n1.10\n", types={"a": "float"})

    assert type(message["a"]) is Written
    assert message["a"].text == "1.10"
    assert type(plain["a"]) is float


@pytest.mark.parametrize(
    "cell", ["0", "100", "+1.5", ".5", "5.", "12345678901234567890", "-0.0", "7"]
)
def test_digits_that_are_kept_are_the_same_number(cell: str) -> None:
    [message] = made("csv", f"a\n{cell}\n".encode(), types={"a": "float"}, keeps_digits=True)

    assert message["a"] == CASTS["float"](cell)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (b"a,a\n1,2\n", "cell 2 of the header is a name that stood before"),
        (b"a,\n1,2\n", "cell 2 of the header is empty"),
        (b"\n\n", "there is no header"),
        (b"a,b\n1,2,3,4,5\n", "row 2: 5 cells, the header has 2"),
        (b'a,b\n"1"2,3\n', "row 2: a quote closes before the end of its cell"),
        (b'a,b\n"1,2\n3,4\n', "row 2: a quote is never closed"),
        (b"a,b\n1\r2,3\n", "row 2: a line end or carriage return outside of quotes"),
        (b'"a\n', "the header: a quote is never closed"),
    ],
)
def test_what_does_not_fit_is_told_with_its_row(table: bytes, told: str) -> None:
    assert made("csv", table) == told


def test_where_columns_are_named_the_first_row_is_one_unless_a_header_is_asked_for() -> None:
    assert made("csv", b"1,2\n3,4\n", columns=["x", "y"]) == [
        {"x": "1", "y": "2"},
        {"x": "3", "y": "4"},
    ]


@pytest.mark.parametrize(("header", "cells"), [(b"a,b,c", "3 cells"), (b"a", "1 cell")])
def test_a_header_with_other_columns_than_named_is_none(header: bytes, cells: str) -> None:
    assert made("csv", header + b"\n1,2,3\n", columns=["x", "y"], header=True) == (
        f"the header has {cells}, and 'columns' names 2"
    )


def test_elsewhere_rows_that_do_not_fit_are_left_out_each_with_its_kind() -> None:
    table = b'a,b\n1,2\n3\n"x"y,1\nq,4\n5,6\n'

    assert kept("csv", table, types={"a": "integer"}) == (
        [{"a": 1, "b": "2"}, {"a": 5, "b": "6"}],
        [
            "a row with another number of cells than the header has",
            "a quote closes before the end of its cell",
            "column 'a': cannot read a string as an integer: expected a whole number, or its digits in a"
            " string",
        ],
    )


def test_there_are_at_most_so_many_columns() -> None:
    names = [f"c{number}" for number in range(MOST_COLUMNS)]
    most = ",".join(names)

    assert made("csv", f"{most}\n{most}\n".encode()) == [dict(zip(names, names, strict=True))]
    assert (
        made("csv", f"{most},d\n".encode()) == "the header has 1,001 cells, at most 1,000 are taken"
    )


def test_a_cell_has_at_most_so_many_characters() -> None:
    for quote in ("", '"'):
        cell = "x" * MOST_CELL
        assert made("csv", f"a,b\n{quote}{cell}{quote},1\n".encode()) == [{"a": cell, "b": "1"}]
        assert made("csv", f"a,b\n{quote}{cell}x{quote},1\n".encode()) == (
            "row 2: a cell of more than 131,072 characters"
        )


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_row_has_at_most_so_many_characters(end: str) -> None:
    long = "x," * (MOST_ROW // 2 + PIECE)
    table = f"a,b\n1,2\n{long}{end}"

    assert made("csv", table.encode()) == "row 3: longer than 262,144 characters"
    assert kept("csv", f"{table}\n3,4\n".encode()) == (
        [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}],
        ["longer than 262,144 characters"],
    )


def test_a_quote_that_is_never_closed_costs_the_rows_of_the_longest_cell() -> None:
    rows = "1,2\n" * MOST_CELL
    messages, left_out = kept("csv", f'a,b\n1,2\n"{rows}'.encode())

    assert left_out == ["a cell of more than 131,072 characters"]
    assert messages == [{"a": "1", "b": "2"}] * (1 + MOST_CELL - MOST_CELL // 4 - 1)


CELLS = st.text(st.sampled_from(['"', ",", "\n", "a", "1", " ", "é", "\u2028", "\x0b"]), max_size=4)


@given(
    st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([",", ";", "\t", "é"]),
    st.integers(0, 40),
)
def test_rows_are_those_of_the_modules_reader(
    rows: list[list[str]], ends: str, separator: str, before: int
) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=separator, lineterminator=ends).writerows(rows)
    filler = separator.join(["x" * (PIECE - before), "y", "z"]) + ends
    for text in (written.getvalue(), filler + written.getvalue()):
        read = [*csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)]
        expected = [dict(zip("abc", [c or None for c in row], strict=True)) for row in read if row]

        got = made("csv", text.encode(), header=False, columns=["a", "b", "c"], separator=separator)
        assert got == expected


@given(
    st.lists(st.text(st.sampled_from(['"', ",", "\n", "\r", "a"]), max_size=6), max_size=6),
    st.integers(0, 3),
)
def test_what_the_modules_reader_refuses_is_refused(lines: list[str], before: int) -> None:
    text = "\n".join(lines)
    try:
        read = [*csv.reader(io.StringIO(text, newline="\n"), strict=True)]
        is_read = all(len(row) in (0, 2) for row in read)
    except csv.Error:
        is_read = False

    got = made("csv", text.encode(), header=False, columns=["a", "b"])
    assert (not isinstance(got, str)) == is_read


ODD = [
    "",
    " ",
    "1",
    "1.5",
    "1_0",
    "nan",
    "inf",
    "-1e5",
    "1e400",
    "1" * 400,
    "1E2",
    "٣",
    "0x1",
    "+1",
    "x",
    "1,5",
    "1.5,2",
    "true",
]


@given(
    st.lists(st.sampled_from(ODD), min_size=1, max_size=6),
    st.sampled_from(["integer", "float", "boolean", "text"]),
    st.sampled_from([".", ","]),
)
def test_columns_are_cast_as_their_cells_are(cells: list[str], word: str, decimal: str) -> None:
    """A column at a time and cell by cell come to the same."""
    table = "\n".join(["a;b", *(f"{cell};x" for cell in cells)]).encode()
    options: dict[str, Any] = {"separator": ";", "decimal": decimal, "types": {"a": word}}
    together = kept("csv", table, **options)
    # A row that does not fit has all others cast one by one.
    one_by_one = kept("csv", table + b"\nodd", **options)

    assert together[0] == one_by_one[0]
    assert together[1] == one_by_one[1][:-1]
    assert list(map(repr, together[0])) == list(map(repr, one_by_one[0]))
