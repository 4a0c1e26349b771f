"""Conditions made of conditions: any, all, not."""

import pytest

from tests.compiler.component.conditions.asked import (
    boolean,
    conditions,
    exists,
    hold,
    numeric,
    of,
    refused,
    string,
)

HOT, ALARM = numeric("greater_than", 80, "temp"), boolean("alarm")


@pytest.mark.parametrize(
    ("message", "any_of", "all_of"),
    [
        ({"temp": 81, "alarm": True}, True, True),
        ({"temp": 81, "alarm": False}, True, False),
        ({"temp": 1, "alarm": True}, True, False),
        ({"alarm": True}, True, False),
        ({"temp": "81"}, False, False),
        ({}, False, False),
        ("hot", False, False),
    ],
)
def test_any_needs_one_all_needs_each_and_not_is_the_other_way_round(message, any_of, all_of):
    assert hold(message, of("any", HOT, ALARM)) is any_of
    assert hold(message, of("all", HOT, ALARM)) is all_of
    assert hold(message, of("not", HOT, ALARM)) is not all_of
    assert hold(message, of("not", of("any", HOT, ALARM))) is not any_of


@pytest.mark.parametrize("message", [{}, {"temp": None}, {"temp": "81"}, {"temp": 80}])
def test_not_holds_where_the_field_is_missing_unless_it_has_to_be_there(message):
    assert hold(message, of("not", HOT))
    assert hold(message, of("not", HOT), exists("temp")) is (message.get("temp") is not None)


def test_the_same_field_is_looked_at_as_often_as_it_is_named():
    cold_or_hot = of("any", HOT, numeric("less_than", 5, "temp"))

    assert [hold({"temp": temp}, cold_or_hot) for temp in (90, 50, 1)] == [True, False, True]


def nested(levels):
    condition = exists()
    for _ in range(levels):
        condition = of("not", condition)
    return condition


def test_eight_may_lie_inside_each_other():
    assert hold({"a": 1}, nested(8))
    assert not hold({"a": 1}, nested(7))
    assert refused(nested(9)) == [
        "conditions: conditions lie 9 deep inside each other, and at most 8 may"
    ]
    assert refused(nested(12)) == [
        "conditions[0].conditions[0].conditions[0].conditions: conditions lie 9 deep inside each other,"
        " and at most 8 may"
    ]


@pytest.mark.parametrize("word", ["any", "all", "not"])
def test_of_nothing_is_refused(word):
    assert refused(of(word)) == [
        "conditions: expected a list of at least one condition, found an empty list"
    ]


def test_what_is_certain_where_they_hold():
    both, either, neither = conditions(
        of("all", HOT, string("equal_to", "C", "unit")), of("any", HOT, ALARM), of("not", HOT)
    )

    assert [*both.needs] == ["temp", "unit"]
    assert [field for field, _ in both.ranges] == ["temp", "unit"]
    assert [*either.reads] == ["temp", "alarm"]
    assert [*either.needs] == [*either.ranges] == [*neither.needs] == [*neither.ranges] == []


@pytest.mark.parametrize(
    ("document", "message", "reason"),
    [
        (
            of("any", HOT, ALARM),
            {"temp": 71},
            "'temp' is 71, and the condition is greater_than 80; and 'alarm' is missing, and the "
            "condition is true",
        ),
        (
            of("any", HOT, HOT, ALARM, ALARM, ALARM),
            {"temp": 1, "alarm": 0},
            "'temp' is 1, and the condition is greater_than 80; and 'temp' is 1, and the condition is "
            "greater_than 80; and 'alarm' is 0, and the condition is true; and 2 more do not hold",
        ),
        (
            of("all", ALARM, HOT),
            {"alarm": True},
            "'temp' is missing, and the condition is greater_than 80",
        ),
        (of("not", HOT), {"temp": 90}, "what 'not' excludes holds ('temp' is 90)"),
    ],
)
def test_why_one_does_not_hold_is_told(document, message, reason):
    [condition] = conditions(document)

    assert condition.unmet(message) == reason


def test_it_tells_whether_it_held_and_so_do_those_that_it_asks():
    took = []
    [condition] = conditions(of("any", HOT, of("not", ALARM)))
    counted = condition.counted(lambda branch, *path: took.append((branch, path)), "when", 0)

    assert counted.holds({"temp": 1})

    assert took == [
        ("false", ("when", 0, "conditions", 0)),
        ("false", ("when", 0, "conditions", 1, "conditions", 0)),
        ("true", ("when", 0, "conditions", 1)),
        ("true", ("when", 0)),
    ]
    assert {(each.name, each.path) for each in condition.branches("when", 0)} >= {*took}
