"""Cells: what each type of column takes and refuses, in whole texts, value by value."""

from __future__ import annotations

import pytest

from headrace.connectors.tables import cells
from headrace.connectors.tables.columns import CELLS
from tests.connectors.tables.fitted import (
    DEEPLY,
    HALF,
    INFINITY,
    NAN,
    NO_STRINGS,
    exact,
    taken,
    told,
    usually,
)

# Text


@pytest.mark.parametrize("value", ["", "oven", "Größe", "\U0001f525", "a\nb", "\0", "null"])
def test_text_takes_strings_as_they_are(value):
    taken(CELLS["text"], value, value)


@pytest.mark.parametrize(("value", "found"), NO_STRINGS)
def test_text_takes_nothing_else(value, found):
    assert told(CELLS["text"], value) == f"expected a string, found {found}"


def test_text_is_made_of_whole_characters():
    expected = "expected a string, found one with half a character (a lone surrogate)"

    assert told(CELLS["text"], HALF) == expected
    assert told(CELLS["text"], "\udc00") == expected


def test_a_database_may_take_no_nul_in_text():
    assert (
        told(cells.text(nul=False), "a\0b") == "expected a string, found one with a NUL character"
    )
    taken(cells.text(nul=False), "a\\0", "a\\0")


# Booleans


def test_a_boolean_is_true_or_false():
    taken(CELLS["boolean"], True, True)
    taken(CELLS["boolean"], False, False)


@pytest.mark.parametrize(
    ("value", "found"),
    [(1, "a number"), (0, "a number"), (0.0, "a number"), ("true", "a string"), ([], "a list")],
)
def test_nothing_else_is_a_boolean(value, found):
    assert told(CELLS["boolean"], value) == f"expected a boolean, found {found}"


# UUIDs


@pytest.mark.parametrize(
    "value", ["123e4567-e89b-12d3-a456-426614174000", "FFFFFFFF-0000-0000-0000-00000000000A"]
)
def test_a_uuid_has_five_groups_of_hexadecimal_digits(value):
    taken(CELLS["uuid"], value, value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "123e4567e89b12d3a456426614174000",
        "{123e4567-e89b-12d3-a456-426614174000}",
        "urn:uuid:123e4567-e89b-12d3-a456-426614174000",
        "123e4567-e89b-12d3-a456-42661417400",
        "123g4567-e89b-12d3-a456-426614174000",
        "123e4567-e89b-12d3-a456-426614174000\n",
        "123e4567-e89b-12d3-a456-426614174000\n123e4567-e89b-12d3-a456-426614174000",
    ],
)
def test_another_string_is_no_uuid(value):
    assert told(CELLS["uuid"], value) == (
        "expected 8-4-4-4-12 hexadecimal digits, found another string"
    )


@pytest.mark.parametrize(("value", "found"), NO_STRINGS)
def test_nothing_else_is_a_uuid(value, found):
    assert told(CELLS["uuid"], value) == f"expected a UUID in a string, found {found}"


# JSON


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, b"null"),
        (True, b"true"),
        (8, b"8"),
        (42.0, b"42.0"),
        (exact("1.10"), b"1.10"),
        (10**30, b"1" + b"0" * 30),
        ("Gr\u00f6\u00dfe\n\0", b'"Gr\xc3\xb6\xc3\x9fe\\n\\u0000"'),
        ({"b": [1, {"a": None}], "a": {}}, b'{"b":[1,{"a":null}],"a":{}}'),
        ([INFINITY, NAN], b"[null,null]"),
    ],
)
def test_json_takes_anything(value, text):
    taken(CELLS["json"], value, text)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"a": [HALF]}, "a string with half a character (a lone surrogate)"),
        ([10**5000], "an integer of more than 4,300 digits"),
        (DEEPLY, "a value that is nested too deeply"),
    ],
    ids=["surrogate", "digits", "depth"],
)
def test_what_cannot_be_written_is_no_json(value, found):
    assert told(CELLS["json"], value) == f"expected JSON, found {found}"


@pytest.mark.parametrize("value", ["\0", {"a\0": 1}, [{"a": ["\0"]}]])
def test_a_database_may_take_no_nul_in_json(value):
    cell = cells.json(nul=False)

    assert told(cell, value) == "expected JSON, found a string with a NUL character"


def test_a_backslash_before_the_letters_of_a_nul_is_none():
    taken(cells.json(nul=False), {"path\\u0000": "\\u0000"}, rb'{"path\\u0000":"\\u0000"}')


# Whole columns


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("text", ["oven", "Größe"]),
        ("integer", [1, -5]),
        ("bigint", [2**40, 0]),
        ("float", [1.5, 2.5]),
        ("float", [1.5, 2]),
        ("float", [exact("1.50"), 1.5]),
        ("decimal", [1.5, 20]),
        ("decimal", [exact("1.50"), 1.5, 3]),
        ("boolean", [True, False]),
        ("timestamp", ["2026-03-01T08:00:00Z", "2026-03-01T08:00:00.123Z"]),
        ("timestamp", ["2026-03-01T08:00:00+01:00", "2026-03-01 08:00:00.5-05:30"]),
        ("timestamp", ["2026-03-01T08:00:00", "2026-03-01 08:00"]),
        ("timestamp", [1_772_352_000, 1_772_352_000.5]),
        ("date", ["2026-03-01", "2024-02-29"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000", "FFFFFFFF-0000-0000-0000-00000000000A"]),
        ("json", [{"a": "b\nc"}, None, [1]]),
    ],
)
def test_a_usual_column_goes_the_usual_way(type_, values):
    assert repr(usually(type_, values)) == repr([*map(CELLS[type_].one, values)])
