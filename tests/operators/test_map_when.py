"""`when` of a mapping: it is done for those messages only for which conditions hold."""

import pytest

from headrace.compiler.component.fieldflow import FieldUse
from headrace.operators.map import Map
from tests.doubles import refusals
from tests.operators.mappings import a_map, arithmetic, cast, constant, copy, drop

HOT = {"type": "numeric", "field": "temp", "operator": "at_least", "value": 80}
ALARM = {"type": "boolean", "field": "alarm"}


def when(mapping, *conditions):
    return mapping | {"when": [*conditions]}


def unless(mapping, *conditions):
    return when(mapping, {"type": "not", "conditions": [*conditions]})


@pytest.mark.parametrize("keep", ["all", "mapped"])
@pytest.mark.parametrize(
    ("mappings", "message", "written"),
    [
        ([when(constant("hot", "is"), HOT)], {"temp": 81}, {"is": "hot"}),
        ([when(constant("hot", "is"), HOT)], {"temp": 79}, {}),
        ([when(constant("hot", "is"), HOT)], {}, {}),
        ([when(constant("x", "a.b"), HOT)], {"temp": 81}, {"a": {"b": "x"}}),
        ([when(constant("x", "a.b"), HOT)], {"temp": 1}, {}),
        (
            [when(constant("hot", "is"), HOT), unless(constant("cool", "is"), HOT)],
            {"temp": 3},
            {"is": "cool"},
        ),
        ([constant("cool", "is"), when(constant("hot", "is"), HOT)], {"temp": 90}, {"is": "hot"}),
        ([constant("cool", "is"), when(constant("hot", "is"), HOT)], {}, {"is": "cool"}),
        ([when(cast("n", "integer"), HOT, ALARM)], {"temp": 81, "alarm": True, "n": "1"}, {"n": 1}),
        (
            [constant(90, "level"), when(constant("yes", "high"), HOT | {"field": "level"})],
            {},
            {"level": 90, "high": "yes"},
        ),
        ([constant(1, "t"), copy("t", "u"), drop("t")], {}, {"u": 1}),
        ([constant(1, "t"), when(drop("t"), ALARM)], {"alarm": True}, {}),
        ([constant(1, "t"), when(drop("t"), ALARM)], {"alarm": 1}, {"t": 1}),
        ([constant(1, "a.b"), drop("a.b")], {}, {"a": {}}),
        ([constant(1, "t"), drop("t"), when(constant(2, "t"), HOT)], {"temp": 80}, {"t": 2}),
    ],
)
def test_it_writes_and_drops_where_its_conditions_hold(mapped, keep, mappings, message, written):
    rest = message if keep == "all" else {}

    assert mapped(a_map(*mappings, keep=keep), message) == rest | written


@pytest.mark.parametrize("options", [{}, {"on_missing": "null"}, {"on_missing": "omit"}])
@pytest.mark.parametrize("default", [{}, {"default": {"type": "number", "value": 0}}])
@pytest.mark.parametrize("message", [{"temp": 1}, {"temp": 1, "alarm": "yes"}, {}])
def test_where_they_do_not_hold_nobody_asks_for_what_is_missing(mapped, options, default, message):
    document = a_map(when(copy("n", "m", **default), HOT), drop("other"), **options)

    assert mapped(document, message) == message


def test_where_they_hold_what_is_missing_is_missing(mapped):
    document = a_map(when(copy("n", "m"), HOT))

    assert mapped(document, {"temp": 81}) == "mapping 0 ('copy'): field 'n' is missing or null"
    assert mapped(document | {"on_missing": "null"}, {"temp": 81}) == {"temp": 81, "m": None}


def test_a_value_that_does_not_fit_fails_only_where_they_hold(mapped):
    document = a_map(when(arithmetic("n", "add", 1), HOT))

    assert mapped(document, {"temp": 1, "n": "x"}) == {"temp": 1, "n": "x"}
    assert mapped(document, {"temp": 81, "n": "x"}) == (
        "mapping 0 ('arithmetic'): field 'n' is a string: expected a number"
    )


def test_a_condition_sees_what_was_written_and_dropped_before(mapped):
    document = a_map(
        copy("n", "temp"),
        when(constant(1, "is_hot"), HOT),
        drop("temp"),
        when(constant(2, "was"), HOT),
    )

    assert mapped(document, {"n": 90}) == {"n": 90, "is_hot": 1}


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        (
            a_map(when(constant(1, "a"), HOT), constant(2, "a")),
            ["mappings[1].as: 'a' is written twice: mappings[0] writes it already"],
        ),
        (
            a_map(when(copy("a", "b"))),
            ["mappings[0].when: expected a list of at least one condition, found an empty list"],
        ),
        (
            a_map(when(copy("a", "b"), {"type": "exist", "field": "a"})),
            ['mappings[0].when[0].type: unknown type "exist"'],
        ),
        (
            a_map(copy("a", "b"), drop("b", "c"), keep="mapped"),
            ["mappings[1]: a drop under 'keep: mapped' drops nothing: only what is mapped is kept"],
        ),
        (
            a_map(drop("b"), copy("a", "b"), keep="mapped"),
            ["mappings[0]: a drop under 'keep: mapped' drops nothing: only what is mapped is kept"],
        ),
    ],
)
def test_what_is_always_written_over_is_refused_and_what_is_never_there_to_drop(document, reasons):
    assert refusals(Map, document) == reasons


def test_a_field_may_be_written_over_where_conditions_hold():
    document = a_map(constant(1, "a"), when(constant(2, "a"), HOT), when(constant(3, "a"), ALARM))

    assert Map.load(document).dump() == {"type": "map"} | document


def test_it_reads_what_its_conditions_look_at():
    document = a_map(when(copy("a", "b"), HOT), when(drop("c"), ALARM))

    assert Map.load(document).field_use() == FieldUse.of(
        reads=["a", "temp", "alarm"], writes=["b"], removes=["c"]
    )


def test_a_field_is_no_demand_where_it_may_not_be_asked_for():
    assert [each.path for each in Map.load(a_map(copy("a", "b"))).demands()] == ["a"]
    assert [*Map.load(a_map(when(copy("a", "b"), HOT))).demands()] == []


def test_the_echo_has_the_conditions_of_each_mapping():
    document = a_map(when(copy("a", "b"), HOT), copy("c"))

    assert Map.load(document).dump() == {"type": "map"} | document
