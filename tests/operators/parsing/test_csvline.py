"""`csv`: one line, its cells by the columns of the config."""

import pytest

from headrace.compiler.csvtext import MOST_CELL
from headrace.operators.parse import LONGEST
from tests.operators.parsed import read


def line(text, *columns, types=None, nulls=None, max_length=None, **form):
    options = {"types": types, "nulls": nulls, "max_length": max_length}
    return read({"csv": {"columns": [*columns], **form}}, text, **options)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("1,2", {"a": "1", "b": "2"}),
        ('"1,5","say ""x"""', {"a": "1,5", "b": 'say "x"'}),
        ('"x\ny",', {"a": "x\ny", "b": None}),
        ("1,2\r\n", {"a": "1", "b": "2"}),
        (" 1 , 2", {"a": " 1 ", "b": " 2"}),
        ("1", "'value' does not fit csv: 1 cell for 2 columns"),
        ("", "'value' does not fit csv: 1 cell for 2 columns"),
        ("1,2,3", "'value' does not fit csv: 3 cells for 2 columns"),
        ('"1,2', "'value' does not fit csv: a quote is never closed"),
        ('"1"2,3', "'value' does not fit csv: a quote closes before the end of its cell"),
        (
            "1\n2,3",
            "'value' does not fit csv: a line end or carriage return outside of quotes",
        ),
    ],
)
def test_a_line_has_as_many_cells_as_there_are_columns(text, made):
    assert line(text, "a", "b") == made


def test_a_column_may_be_left_out_and_an_empty_cell_is_null():
    assert line("1,,3", "a", None, "c") == {"a": "1", "c": "3"}
    assert line("", "a", types={"a": "integer"}) == {"a": None}
    assert line("NA,", "a", "b", nulls=["NA"]) == {"a": None, "b": ""}


@pytest.mark.parametrize(
    ("cell", "made"), [("12,5", 12.5), ("12", 12), ("1e3", 1000), ("-,5", -0.5)]
)
def test_decimals_may_stand_behind_a_comma(cell, made):
    assert line(cell + ";x", "a", "b", separator=";", decimal=",", types={"a": "float"}) == {
        "a": made,
        "b": "x",
    }


def test_a_point_is_no_mark_of_decimals_beside_a_comma():
    said = line("1.234", "a", separator=";", decimal=",", types={"a": "float"})

    assert said == (
        "'value' does not fit csv: 'a': cannot read a string as a float: expected a number with a comma"
        " before its decimals"
    )


def test_a_cell_has_at_most_so_many_characters():
    text = "x" * MOST_CELL

    assert line(text, "a", max_length=LONGEST) == {"a": text}
    assert line(text + "x", "a", max_length=LONGEST) == (
        "'value' does not fit csv: a cell of more than 131,072 characters"
    )


def test_a_text_of_nothing_but_quotes_or_separators_does_not_fit():
    assert line('"' * 65_536, "a") == {"a": '"' * 32_767}
    assert line('"' * 65_535, "a") == "'value' does not fit csv: a quote is never closed"
    said = "'value' does not fit csv: 65,537 cells for 1 column"
    assert line("," * 65_536, "a") == said
    too_long = "'value': the text has 1,048,576 characters, at most 65,536"
    assert line('"' * 2**20, "a") == too_long
