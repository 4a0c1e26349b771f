"""The mappings `split` and `join`: a list of a text, and the other way round."""

import pytest

from headrace.operators.map import Map
from tests.doubles import refusals
from tests.operators.mappings import a_map


def split(by, **options):
    return {"type": "split", "from": "x", "by": by, **options}


def join(with_, **options):
    return {"type": "join", "from": "x", "with": with_, **options}


@pytest.mark.parametrize(
    ("mapping", "text", "parts"),
    [
        (split(","), "a,b", ["a", "b"]),
        (split(","), " a ,\tb\n", ["a", "b"]),
        (split(",", trim=False), " a , b", [" a ", " b"]),
        (split(" ", trim=False), "a  b", ["a", "", "b"]),
        (split("->"), "a->b->", ["a", "b", ""]),
        (split(","), "a", ["a"]),
        (split(","), "", [""]),
        (split(",", max=2), "a,b", ["a", "b"]),
    ],
)
def test_a_text_is_split_at_each_separator(mapped, mapping, text, parts):
    assert mapped(a_map(mapping), {"x": text}) == {"x": parts}


@pytest.mark.parametrize(
    ("mapping", "items", "text"),
    [
        (join(", "), ["a", "b"], "a, b"),
        (join(""), ["a", "b"], "ab"),
        (join("-"), ["a", 1, 2.0, True, 1e16], "a-1-2.0-true-1e16"),
        (join("-"), ["a"], "a"),
        (join("-"), [], ""),
    ],
)
def test_a_list_is_joined_numbers_as_json_writes_them(mapped, mapping, items, text):
    assert mapped(a_map(mapping), {"x": items}) == {"x": text}


def test_both_write_elsewhere_and_a_default(mapped):
    five = {"type": "number", "value": 5}

    assert mapped(a_map(split(",", **{"as": "y"})), {"x": "a"}) == {"x": "a", "y": ["a"]}
    assert mapped(a_map(split(",", default=five)), {}) == {"x": 5}
    assert mapped(a_map(join(",", default=five)), {"x": None}) == {"x": 5}


@pytest.mark.parametrize(
    ("mapping", "value", "failure"),
    [
        (split(","), 5, "('split'): field 'x' is a number: expected a string"),
        (split(","), ["a"], "('split'): field 'x' is a list: expected a string"),
        (split(","), "," * 1000, "('split'): field 'x' has more than 1,000 parts"),
        (split(",", max=1), "a,b", "('split'): field 'x' has more than 1 part"),
        (split(","), "a" * 1_048_577, "('split'): field 'x' has more than 1,048,576 characters"),
        (join(","), "abc", "('join'): field 'x' is a string: expected a list"),
        (join(","), {"a": 1}, "('join'): field 'x' is an object: expected a list"),
        (join(","), ["a"] * 1001, "('join'): field 'x' has more than 1,000 items"),
        (
            join(","),
            ["a", None],
            "('join'): field 'x' holds null: expected strings, numbers or booleans of at most 100"
            " digits",
        ),
        (
            join(","),
            [{}],
            "('join'): field 'x' holds an object: expected strings, numbers or booleans of at most"
            " 100 digits",
        ),
        (
            join("x" * 1_000_000),
            ["a"] * 18,
            "('join'): the result is longer than 16,777,216 characters",
        ),
    ],
)
def test_what_does_not_fit_fails_the_batch(mapped, mapping, value, failure):
    assert mapped(a_map(mapping), {"x": value}) == f"mapping 0 {failure}"


@pytest.mark.parametrize(
    ("mapping", "reasons"),
    [
        (split(""), ["mappings[0].by: this must not be empty"]),
        (split("x" * 21), ["mappings[0].by: a text of 21 characters is too long here"]),
        (
            split(",", max=10_001),
            [
                "mappings[0].max: expected an integer of at least 1 and of at most 10000, found 10001",
            ],
        ),
        (join(5), ["mappings[0].with: expected a string, found 5"]),
    ],
)
def test_what_cannot_be_meant_is_refused(mapping, reasons):
    assert refusals(Map, a_map(mapping)) == reasons
