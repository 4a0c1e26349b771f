"""The mapping `choose`: the first case that holds."""

import pytest

from headrace.compiler.component.fieldflow import FieldUse
from headrace.operators.map import Map
from tests.doubles import refusals
from tests.operators.mappings import a_map, copy, literal


def case(value, *when):
    """A value in a list is a field."""
    spelt = {"type": "field", "field": value[0]} if isinstance(value, list) else literal(value)
    return {"when": [*when], "value": spelt}


def at_least(value, field="temp"):
    return {"type": "numeric", "field": field, "operator": "at_least", "value": value}


def choose(*cases, **options):
    return {"type": "choose", "cases": [*cases], "as": "is", **options}


LEVELS = choose(
    case("alarm", at_least(90)), case("warning", at_least(80)), case(["was"], at_least(70))
)


@pytest.mark.parametrize(
    ("message", "chosen"),
    [
        ({"temp": 95}, "alarm"),
        ({"temp": 90}, "alarm"),
        ({"temp": 85}, "warning"),
        ({"temp": 75, "was": [1]}, [1]),
    ],
)
@pytest.mark.parametrize("keep", ["all", "mapped"])
@pytest.mark.parametrize("on_missing", ["error", "omit", "null"])
def test_the_first_case_that_holds_is_taken(mapped, keep, on_missing, message, chosen):
    document = a_map(LEVELS, keep=keep, on_missing=on_missing)
    rest = message if keep == "all" else {}

    assert mapped(document, message) == rest | {"is": chosen}


@pytest.mark.parametrize("message", [{}, {"temp": 1}, {"temp": "hot"}])
def test_where_none_holds_there_is_a_default_or_the_policy_decides(mapped, message):
    document = a_map(LEVELS)

    assert mapped(document, message) == (
        "mapping 0 ('choose'): none of its cases holds, and it has no 'default'"
    )
    assert mapped(document | {"on_missing": "omit"}, message) == message
    assert mapped(document | {"on_missing": "null"}, message) == message | {"is": None}
    for policy in ("error", "omit", "null"):
        ok = a_map(LEVELS | {"default": literal("ok")}, on_missing=policy)
        assert mapped(ok, message) == message | {"is": "ok"}


def test_a_field_that_is_missing_is_missing(mapped):
    document = a_map(LEVELS)

    assert mapped(document, {"temp": 75}) == (
        "mapping 0 ('choose'): field 'was' is missing or null"
    )
    ok = a_map(LEVELS | {"default": literal("ok")})
    assert mapped(ok, {"temp": 75}) == {"temp": 75, "is": "ok"}


@pytest.mark.parametrize("value", ["x", 5, 5.0, True, False, None])
@pytest.mark.parametrize("on_missing", ["error", "omit", "null"])
def test_a_value_is_written_as_it_is_spelled_null_as_well(mapped, value, on_missing):
    document = a_map(choose(case(value, at_least(0)), case(1, at_least(-5))), on_missing=on_missing)

    assert repr(mapped(document, {"temp": 0})) == repr({"temp": 0, "is": value})


def test_cases_have_many_conditions_and_see_what_was_written_before(mapped):
    both = choose(case("both", at_least(1, "a"), at_least(1, "b")), default=literal("no"))
    document = a_map(copy("x", "b"), both)

    assert mapped(document, {"a": 1, "x": 1})["is"] == "both"
    assert mapped(document, {"a": 1, "x": 0})["is"] == "no"


@pytest.mark.parametrize(
    ("mapping", "reasons"),
    [
        (
            choose(),
            ["mappings[0].cases: expected a list of at least one case, found an empty list"],
        ),
        (
            choose(case(1)),
            [
                "mappings[0].cases[0].when: expected a list of at least one condition, found an empty"
                " list"
            ],
        ),
        (
            choose(*[case(1, at_least(0))] * 101),
            ["mappings[0].cases: expected at most 100 cases, found a list of 101"],
        ),
        (
            choose({"when": [at_least(0)], "value": "hot"}),
            [
                "mappings[0].cases[0].value: expected an object whose 'type' is one of field, text, number,"
                " boolean, null, found a string"
            ],
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(mapping, reasons):
    assert refusals(Map, a_map(mapping)) == reasons


def test_nothing_is_written_below_it_unless_a_field_may_hold_an_object():
    below = {"type": "copy", "from": "y", "as": "is.x"}

    assert refusals(Map, a_map(choose(case(1, at_least(0))), below)) == [
        "mappings[1].as: cannot write 'is.x': mappings[0] (choose) makes 'is' "
        "a value that is no object"
    ]
    assert refusals(Map, a_map(choose(case(["f"], at_least(0))), below)) == []


def test_it_reads_what_its_cases_look_at_and_demands_none_of_it():
    made = Map.load(a_map(LEVELS))

    assert made.field_use() == FieldUse.of(reads=["temp", "was"], writes=["is"])
    assert [*made.demands()] == []
