"""What a map refuses, how it is spelled, and what it says of fields."""

import pytest

from headrace.compiler.casts import CASTS
from headrace.compiler.component.catalogue import scan
from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.config.program import load_program
from headrace.compiler.text.documents import read
from headrace.operators.map import Map
from tests.doubles import refusals
from tests.operators.mappings import (
    a_map,
    arithmetic,
    cast,
    coalesce,
    concat,
    constant,
    copy,
    drop,
    literal,
)

# --- what it refuses


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        ({}, ["mappings: this key is required"]),
        (a_map(), ["mappings: expected a list of at least one mapping, found an empty list"]),
        (a_map({"from": "a"}), ["mappings[0]: 'type' is required"]),
        (a_map(copy("a") | {"type": "move"}), ['mappings[0].type: unknown type "move"']),
        (a_map(copy(" ")), ["mappings[0].from: this must not be blank"]),
        (a_map(copy("a", " ")), ["mappings[0].as: this must not be blank"]),
        (a_map(copy("a") | {"to": "b"}), ["mappings[0].to: unknown key 'to'"]),
        (
            a_map({"type": "constant"}),
            ["mappings[0].value: this key is required", "mappings[0].as: this key is required"],
        ),
        (
            a_map({"type": "constant", "as": "a", "value": 5}),
            [
                "mappings[0].value: expected an object whose 'type' is one of text, number, boolean, null,"
                " found a number"
            ],
        ),
        (
            a_map(copy("a", default={"type": "number", "value": "5"})),
            ['mappings[0].default.value: expected a number, found "5"'],
        ),
        (
            a_map(copy("a", default={"type": "boolean", "value": 1})),
            ["mappings[0].default.value: expected true or false, found 1"],
        ),
        (
            a_map(copy("a", default={"type": "null", "value": None})),
            ["mappings[0].default.value: unknown key 'value'"],
        ),
        (
            a_map(coalesce("a")),
            ["mappings[0].from: expected a list of at least two dotted paths, found a list of 1"],
        ),
        (a_map(coalesce("a", "")), ["mappings[0].from[1]: this must not be blank"]),
        (a_map(cast("a", "float", decimal=",")), []),
        (
            a_map(cast("a", "integer", decimal=",")),
            ["mappings[0].decimal: 'decimal' is about a float, and this casts to integer"],
        ),
        (
            a_map(cast("a", "int")),
            [
                "mappings[0].to: expected one of text, integer, float, boolean, timestamp, date, "
                'uuid, json, found "int"'
            ],
        ),
        (
            a_map(concat()),
            ["mappings[0].parts: expected a list of at least one part, found an empty list"],
        ),
        (
            a_map(concat(5, [" "])),
            [
                "mappings[0].parts[0].value: expected a string, found 5",
                "mappings[0].parts[1].field: this must not be blank",
            ],
        ),
        (
            a_map(concat(["a"]) | {"default": literal(1)}),
            ["mappings[0].default: unknown key 'default'"],
        ),
        (
            a_map(arithmetic("a", "power", True)),
            [
                "mappings[0].operator: expected one of add, subtract, multiply, divide, modulo, min, max, "
                'found "power"',
                "mappings[0].right.value: expected a number, found true",
            ],
        ),
        (a_map(arithmetic("a", "divide", 0)), ["mappings[0].right.value: cannot divide by zero"]),
        (a_map(arithmetic(1, "divide", -0.0)), ["mappings[0].right.value: cannot divide by zero"]),
        (
            a_map(drop()),
            ["mappings[0].from: expected a list of at least one dotted path, found an empty list"],
        ),
        (
            a_map(copy("a", "b"), drop("a"), keep="mapped"),
            ["mappings[1]: a drop under 'keep: mapped' drops nothing: only what is mapped is kept"],
        ),
        (a_map(copy("a"), keep="some"), ['keep: expected one of all, mapped, found "some"']),
        (a_map(copy("a"), keep=None), ["keep: expected one of all, mapped, found null"]),
        (
            a_map(copy("a"), on_missing="skip"),
            ['on_missing: expected one of error, omit, null, found "skip"'],
        ),
    ],
)
def test_a_map_that_cannot_be_meant_is_refused(document, reasons):
    assert refusals(Map, document) == reasons


@pytest.mark.parametrize(
    ("mappings", "reasons"),
    [
        (
            [copy("x", "a"), copy("y", " a ")],
            ["mappings[1].as: 'a' is written twice: mappings[0] writes it already"],
        ),
        (
            [copy("a"), drop("b"), copy("x.a")],
            ["mappings[2].from: 'a' is written twice: mappings[0] writes it already"],
        ),
        (
            [copy("x", "a.b"), copy("y", "a.b"), copy("z", "a.b")],
            [
                "mappings[1].as: 'a.b' is written twice: mappings[0] writes it already",
                "mappings[2].as: 'a.b' is written twice: mappings[0] writes it already",
            ],
        ),
        ([copy("x", "a.b"), copy("y", "a.c"), copy("z", "ab")], []),
        ([copy("x", "a"), cast("a", "text"), cast("a", "integer")], []),
        (
            [copy("x", "a"), cast("a", "text"), copy("y", "a")],
            ["mappings[2].as: 'a' is written twice: mappings[0] writes it already"],
        ),
    ],
)
def test_no_two_mappings_write_one_field(mappings, reasons):
    assert refusals(Map, a_map(*mappings)) == reasons


@pytest.mark.long
def test_thousands_of_mappings_are_judged_in_their_stride():
    many = [constant(n, f"a.f{n}") for n in range(10_000)]  # pair by pair it would take minutes

    assert refusals(Map, a_map(*many)) == []


SCALARS = [
    constant("{}", "a"),
    constant(1, "a"),
    constant(None, "a"),
    concat("x", as_="a"),
    arithmetic("x", "add", 1, "a"),
    *(cast("x", to, **{"as": "a"}) for to in CASTS if to != "json"),
]


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda mapping: mapping.get("to", mapping["type"]))
def test_nothing_is_written_below_what_surely_is_no_object_in_whatever_order(scalar):
    below, other = copy("y", "a.b.c"), copy("y", "ab")
    kind = scalar["type"]

    assert refusals(Map, a_map(scalar, other, below)) == [
        f"mappings[2].as: cannot write 'a.b.c': mappings[0] ({kind}) makes 'a' "
        "a value that is no object"
    ]
    assert refusals(Map, a_map(below, scalar)) == [
        f"mappings[0].as: cannot write 'a.b.c': mappings[1] ({kind}) makes 'a' "
        "a value that is no object"
    ]


@pytest.mark.parametrize(
    "writer", [copy("x", "a"), coalesce("x", "y", as_="a"), cast("x", "json", **{"as": "a"})]
)
def test_what_may_be_an_object_is_left_to_the_run(writer):
    assert refusals(Map, a_map(writer, copy("y", "a.b"))) == []


def test_a_refusal_says_where_and_what_would_be_accepted():
    text = """\
- inputs: [{type: http}]
  transforms:
    - type: map
      mappings:
        - {type: cast, from: n, to: integr}
        - type: arithmetic
          left: {type: field, field: t}
          operator: divide
          right: {type: value, value: 0}
          as: share
"""

    program, diagnostics = load_program(
        read(text, "mill.yaml", "yaml"), scan("headrace.operators", "headrace.connectors")
    )

    assert program is None
    assert [
        (each.line, each.column, each.path, each.code, each.found, each.expected, each.suggestion)
        for each in diagnostics
    ] == [
        (
            5,
            37,
            "pipelines[0].transforms[0].mappings[0].to",
            "not-a-choice",
            '"integr"',
            "one of text, integer, float, boolean, timestamp, date, uuid, json",
            "did you mean 'integer'?",
        ),
        (
            9,
            39,
            "pipelines[0].transforms[0].mappings[1].right.value",
            "zero-divisor",
            "0",
            "a number other than zero",
            None,
        ),
    ]


def test_what_is_wrong_between_mappings_points_at_the_target():
    text = """\
- inputs: [{type: http}]
  transforms:
    - type: map
      mappings:
        - {type: constant, as: site, value: {type: null}}
        - type: copy
          from: hall
          as: site.hall
        - {type: copy, from: old.site}
"""

    _, [below, twice] = load_program(
        read(text, "mill.yaml", "yaml"), scan("headrace.operators", "headrace.connectors")
    )

    assert (below.line, below.column, below.code, below.found, below.expected) == (
        8,
        15,
        "scalar-in-the-way",
        "site.hall",
        "a field that is not below 'site'",
    )
    assert (twice.line, twice.column, twice.code, twice.found, twice.expected) == (
        9,
        30,
        "duplicate",
        "site",
        "a field of its own for every mapping",
    )


# --- how it is spelled


def test_every_kind_of_mapping_is_spelled_and_echoed_as_the_contract_shows():
    document = {
        "type": "map",
        "mappings": [
            {"type": "copy", "from": "_meta.subject"},
            {"type": "copy", "from": "unit", "as": "u", "default": {"type": "text", "value": "C"}},
            {"type": "constant", "value": {"type": "null"}, "as": "site"},
            {"type": "coalesce", "from": ["t", "temp"], "as": "t2"},
            {"type": "cast", "from": "n", "to": "integer", "as": "count"},
            {
                "type": "concat",
                "parts": [
                    {"type": "field", "field": "site"},
                    {"type": "value", "value": "/"},
                ],
                "as": "id",
            },
            {
                "type": "arithmetic",
                "left": {"type": "field", "field": "t2"},
                "operator": "multiply",
                "right": {"type": "value", "value": 1.8},
                "as": "f",
            },
            {"type": "drop", "from": ["n", "unit"]},
        ],
        "on_missing": "null",
    }

    loaded = Map.load({key: value for key, value in document.items() if key != "type"})

    assert repr(loaded.dump()) == repr(document)


def test_the_echo_leaves_out_policies_that_are_the_default():
    document = a_map(copy("a"), keep="all", on_missing="error")

    assert Map.load(document).dump() == {"type": "map", "mappings": [copy("a")]}


def test_null_is_a_word_where_it_is_one_and_absence_elsewhere():
    assert Map.load(a_map(copy("a"), on_missing=None)).on_missing == "null"
    assert Map.load(a_map(constant(None, "a") | {"value": {"type": None}})) == Map.load(
        a_map(constant(None, "a"))
    )
    assert Map.load(a_map(copy("a", default=None))) == Map.load(a_map(copy("a")))


# --- what it says of fields


@pytest.mark.parametrize(
    ("document", "use"),
    [
        (
            a_map(copy("a.b"), constant(1, "c"), drop("d", "e.f")),
            FieldUse.of(reads=["a.b"], writes=["b", "c"], removes=["d", "e.f"]),
        ),
        (
            a_map(coalesce("a", "b"), concat(["c"], "/", as_="d"), keep="mapped"),
            FieldUse.of(reads=["a", "b", "c"], writes=["out", "d"], keeps=False),
        ),
        # What came before does not matter to what was written by an earlier mapping.
        (
            a_map(copy("a", "b"), arithmetic("b", "add", "c"), copy("out.x", "z")),
            FieldUse.of(reads=["a", "b", "c", "out.x"], writes=["b", "out", "z"], asks=["a", "c"]),
        ),
        # Something may be in the way to where it writes.
        (
            a_map(copy("x", "a.b.c")),
            FieldUse.of(reads=["x", "a.b.c", "a"], writes=["a.b.c"], asks=["x"]),
        ),
    ],
)
def test_it_says_what_it_reads_writes_and_removes(document, use):
    assert Map.load(document).field_use() == use
