"""Columns: what a column is told, and what is refused."""

from __future__ import annotations

import pytest

from headrace.connectors.tables.columns import CELLS, Column
from tests.doubles import refusals
from tests.shelves import Shelf, diagnostics_of


def refused_column(**options):
    return refusals(Column, {"name": "a", "type": "text", **options})


# Names


@pytest.mark.parametrize("name", ["", "1a", "a.b", "a-b", "a b", "ä", "a\n", "٣", 'a"'])
def test_a_column_is_letters_digits_and_underscores(name):
    [text] = refusals(Column, {"name": name, "type": "text"})

    assert text.startswith('name: "')
    assert text.endswith('" cannot be the name of a column')


def test_names_are_strings():
    assert refusals(Shelf, {"table": 1}) == [
        "table: expected one name, or two joined by a dot, of letters, digits and underscores, no"
        " digit first, found 1"
    ]
    assert refused_column(name=None) == [
        "name: expected letters, digits and underscores, no digit first, found null"
    ]


# Types


def test_the_types_are_those_that_there_are_cells_for():
    assert [*CELLS] == (
        [
            "text",
            "integer",
            "bigint",
            "float",
            "decimal",
            "boolean",
            "timestamp",
            "date",
            "uuid",
            "json",
        ]
    )
    for word in CELLS:
        assert refused_column(type=word) == []


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("string", "text"),
        ("VARCHAR", "text"),
        ("int", "integer"),
        ("int64", "bigint"),
        ("double", "float"),
        ("double precision", "float"),
        ("number", "float"),
        ("numeric", "decimal"),
        ("bool", "boolean"),
        ("datetime", "timestamp"),
        ("timestamptz", "timestamp"),
        ("jsonb", "json"),
        ("object", "json"),
        ("guid", "uuid"),
        ("texxt", "text"),
        ("Integer", "integer"),
    ],
)
def test_a_type_from_elsewhere_is_known(word, meant):
    [diagnostic] = diagnostics_of(
        f"{{type: shelf, table: t, columns: [{{name: a, type: {word}}}]}}"
    )

    assert (diagnostic.code, diagnostic.message, diagnostic.suggestion) == (
        "not-a-choice",
        "expected one of text, integer, bigint, float, decimal, boolean, timestamp, date, uuid, json,"
        f' found "{word}"',
        f"did you mean '{meant}'?",
    )


def test_of_a_type_that_nobody_knows_the_types_are_told():
    expected = (
        "type: expected one of text, integer, bigint, float, decimal, boolean, timestamp, date, uuid,"
        " json, found "
    )

    assert refused_column(type="geometry") == [expected + '"geometry"']
    assert refused_column(type=7) == [expected + "7"]


# One column


def test_a_whole_message_has_no_field():
    assert refusals(Column, {"name": "a", "type": "json", "message": True, "field": "b"}) == [
        "field: a column stores the whole message or a field of it, not both"
    ]


def test_a_whole_message_is_json():
    assert refused_column(message=True) == ["type: a whole message cannot be stored as 'text'"]
    assert refused_column(message=True, type="json") == []


def test_message_is_not_null():
    assert refused_column(message=None) == ["message: expected true or false, found null"]


def test_what_is_not_nullable_takes_no_null():
    text = "on_missing: a column that is not nullable cannot take null for a missing field"

    assert refused_column(nullable=False, on_missing="null") == [text]
    assert refused_column(nullable=False, on_missing=None) == [text]  # YAML: on_missing: null
    assert refused_column(nullable=False, on_missing="skip_row") == []


@pytest.mark.parametrize("field", ["", "  "])
def test_a_field_is_not_blank(field):
    assert refused_column(field=field) == ["field: this must not be blank"]


def test_a_policy_is_one_of_three():
    assert refused_column(on_missing="skip") == [
        'on_missing: expected one of null, error, skip_row, found "skip"'
    ]


def test_an_unknown_key_is_refused():
    assert refused_column(feild="b") == ["feild: unknown key 'feild'"]


def test_an_echo_repeats_what_was_said_but_no_message_that_is_false():
    document = {"name": "a", "type": "json", "nullable": True, "on_missing": "null"}

    assert Column.load({**document, "message": False}).dump() == document
    assert Column.load({**document, "message": True}).dump() == {**document, "message": True}
    assert Column.load({"name": "a", "type": "text"}).dump() == {"name": "a", "type": "text"}
