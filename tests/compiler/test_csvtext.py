"""CSV: what outputs write is what inputs and `parse` read."""

from __future__ import annotations

import csv
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import ValidationError

from headrace.compiler.csvtext import (
    MOST_CELL,
    CsvSeparator,
    WrittenSeparator,
    fault,
    quoted,
    rows_of,
)
from headrace.compiler.formats import CsvOptions
from headrace.compiler.schema.records import faults_of

ASCII = [*map(chr, range(128))]


def taken(field: CsvSeparator) -> str:
    """Return the characters that a field takes, of those that are ASCII."""

    def takes(character: str) -> bool:
        try:
            return bool(field.deserialize(character))
        except ValidationError:
            return False

    return "".join(filter(takes, ASCII))


def test_what_may_be_written_between_cells_may_be_read_between_them() -> None:
    read, written = taken(CsvSeparator()), taken(WrittenSeparator())

    assert sorted({*ASCII} - {*read}) == ["\0", "\n", "\r", '"']
    assert {*written} < {*read}
    assert not {*written} & {*"aZ09+-.=@"}


@pytest.mark.parametrize("text", ["\\t", "tab", "TAB"])
def test_a_tab_is_written_as_yaml_has_it(text: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        CsvOptions.load({"separator": text})

    [told] = faults_of(refusal.value)
    assert told.suggestion == 'write "\\t"'


@given(
    st.lists(st.text(max_size=8), min_size=1, max_size=5),
    st.sampled_from(taken(CsvSeparator())),
)
def test_a_quoted_cell_is_read_back_whatever_it_holds(cells: list[str], separator: str) -> None:
    row = separator.join(map(quoted, cells)) + "\n"

    assert [*rows_of([row], separator)] == [cells]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('"1"2', "a quote closes before the end of its cell"),
        ('"1', "a quote is never closed"),
        ("1\r2", "a line end or carriage return outside of quotes"),
        ("x" * (MOST_CELL + 1), "a cell of more than 131,072 characters"),
    ],
)
def test_what_is_no_row_is_told_in_our_words(line: str, said: Any) -> None:
    """Python's reader says it in words of its own, which this holds as well."""
    with pytest.raises(csv.Error) as refusal:
        next(rows_of([line], ","))

    assert fault(refusal.value) == said
