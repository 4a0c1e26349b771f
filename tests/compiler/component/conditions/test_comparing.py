"""Conditions that compare: numbers, strings, lengths; with a value, and with another field."""

import pytest

from headrace.compiler.component.fieldflow import ValueRange
from tests.compiler.component.conditions.asked import conditions, hold, numeric, refused, string


@pytest.mark.parametrize(
    ("operator", "value", "found", "holds"),
    [
        ("greater_than", 80, 80.5, True),
        ("greater_than", 80, 80, False),
        ("greater_than", 80, 10**400, True),
        ("less_than", 5, 4.99, True),
        ("less_than", 5, 5, False),
        ("equal_to", 1, 1.0, True),
        ("equal_to", 1.0, 1, True),
        ("equal_to", 0, -0.0, True),
        ("equal_to", 0.3, 0.1 + 0.2, False),
    ],
)
def test_numbers_are_compared_as_numbers_however_they_are_spelled(operator, value, found, holds):
    assert hold({"a": found}, numeric(operator, value)) is holds


@pytest.mark.parametrize("value", [-1, 0, 0.5, 1, 2])
@pytest.mark.parametrize("operator", ["greater_than", "less_than", "equal_to"])
@pytest.mark.parametrize("found", [True, False, None, "1", "", [], [1], {}, {"a": 1}])
def test_what_is_no_number_does_not_match_a_number(operator, value, found):
    assert not hold({"a": found}, numeric(operator, value))


@pytest.mark.parametrize(
    ("operator", "value", "found", "holds"),
    [
        ("equal_to", "C", "C", True),
        ("equal_to", "C", "c", False),
        ("equal_to", "", "", True),
        ("contains", "alarm", "plc.alarm.7", True),
        ("contains", "alarm", "plc.Alarm.7", False),
        ("contains", "", "anything", True),
        ("contains", "", "", True),
    ],
)
def test_strings_are_compared_exactly_and_with_their_case(operator, value, found, holds):
    assert hold({"a": found}, string(operator, value)) is holds


@pytest.mark.parametrize("value", ["", "1", "a", "true"])
@pytest.mark.parametrize("operator", ["equal_to", "contains"])
@pytest.mark.parametrize("found", [True, None, 1, 1.5, [], [""], ["a"], {}, {"a": 1}])
def test_what_is_no_string_does_not_match_a_string(operator, value, found):
    assert not hold({"a": found}, string(operator, value))


@pytest.mark.parametrize("message", [{}, {"b": 1}, {"a": {"c": 1}}, {"a.c": 1}, {"a": [1]}])
@pytest.mark.parametrize(
    "condition",
    [numeric("less_than", 2, "a.b"), string("contains", "", "a.b"), numeric("equal_to", 0, "a.b")],
)
def test_a_missing_field_does_not_match(message, condition):
    assert not hold(message, condition)


@pytest.mark.parametrize("message", [None, True, 1, "a", [], ["a"]])
def test_what_is_no_object_has_no_fields(message):
    assert not hold(message, numeric("less_than", 2))
    assert not hold(message, string("contains", ""))


# --- what conditions have beside those of old


@pytest.mark.parametrize(
    ("operator", "value", "found", "holds"),
    [
        ("at_least", 80, 80, True),
        ("at_least", 80, 79.99999999999999, False),
        ("at_least", 80, 10**400, True),
        ("at_most", 80, 80.0, True),
        ("at_most", 80, 80.00000000000001, False),
        ("at_most", -1, -(10**400), True),
        ("not_equal_to", 1, 1.0, False),
        ("not_equal_to", 1, 2, True),
        ("not_equal_to", 0, -0.0, False),
    ],
)
def test_bounds_may_be_included_and_a_number_excluded(operator, value, found, holds):
    assert hold({"a": found}, numeric(operator, value)) is holds


@pytest.mark.parametrize("operator", ["at_least", "at_most", "not_equal_to"])
@pytest.mark.parametrize("found", [True, False, None, "1", [], {}])
def test_what_is_no_number_is_neither_within_a_bound_nor_another_number(operator, found):
    assert not hold({"a": found}, numeric(operator, 0))
    assert not hold({}, numeric(operator, 0))


@pytest.mark.parametrize(
    ("operator", "value", "found", "holds"),
    [
        ("not_equal_to", "C", "c", True),
        ("not_equal_to", "C", "C", False),
        ("starts_with", "plc.", "plc.alarm", True),
        ("starts_with", "plc.", "a plc.alarm", False),
        ("starts_with", "", "", True),
        ("ends_with", ".7", "alarm.7", True),
        ("ends_with", ".7", "alarm.70", False),
        ("ends_with", "", "x", True),
    ],
)
def test_strings_may_begin_and_end_with_something_and_be_another(operator, value, found, holds):
    assert hold({"a": found}, string(operator, value)) is holds


@pytest.mark.parametrize("operator", ["not_equal_to", "starts_with", "ends_with"])
@pytest.mark.parametrize("found", [True, None, 1, [], [""], {}])
def test_what_is_no_string_is_not_another_string(operator, found):
    assert not hold({"a": found}, string(operator, ""))
    assert not hold({}, string(operator, ""))


@pytest.mark.parametrize(
    ("operator", "value", "found", "holds"),
    [
        ("equal_to", "Alarm", "ALARM", True),
        ("equal_to", "STRASSE", "straße", True),
        ("equal_to", "Alarm", "ALARMS", False),
        ("not_equal_to", "Alarm", "ALARM", False),
        ("not_equal_to", "Alarm", "warning", True),
        ("contains", "ALARM", "plc.alarm.7", True),
        ("contains", "GRÖSSE", "die größe", True),
        ("starts_with", "PLC", "plc.alarm", True),
        ("ends_with", "ALARM", "plc.Alarm", True),
        ("ends_with", "", "x", True),
    ],
)
def test_case_may_be_ignored(operator, value, found, holds):
    assert hold({"a": found}, string(operator, value, ignore_case=True)) is holds
    assert not hold({"a": 1}, string(operator, value, ignore_case=True))


OPERATORS = ["equal_to", "not_equal_to", "contains", "starts_with", "ends_with"]


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_text_that_is_too_long_to_ignore_its_case_does_not_match(operator):
    long, longest = "a" * 8_193, "a" * 8_192
    other = {"type": "string", "field": "a", "operator": operator, "other": "b"}
    exact = operator != "not_equal_to"

    assert not hold({"a": long}, string(operator, "a", ignore_case=True))
    assert not hold({"a": long, "b": long}, other | {"ignore_case": True})
    assert not hold({"a": "a", "b": long}, other | {"ignore_case": True})
    assert hold({"a": longest, "b": longest}, other | {"ignore_case": True}) is exact
    assert hold({"a": long, "b": long}, other) is (exact and operator != "contains")


def test_a_text_is_looked_for_in_texts_of_a_message_that_are_not_too_long():
    other = {"type": "string", "field": "a", "operator": "contains", "other": "b"}
    value = {"type": "string", "field": "a", "operator": "contains", "value": "b"}
    long, longest = "a" * 8_192 + "b", "a" * 8_191 + "b"

    assert hold({"a": longest, "b": "b"}, other)
    assert not hold({"a": long, "b": "b"}, other)
    assert hold({"a": long}, value)


@pytest.mark.parametrize("length", [100, 300, 8_192])
@pytest.mark.parametrize("sought", ["b" * 99, "b" * 100, "b" * 100 + "\0", "b" * 8_193])
def test_texts_of_any_length_are_found_where_they_are_and_nowhere_else(length, sought):
    other = {"type": "string", "field": "a", "operator": "contains", "other": "b"}
    around = "a" * (length - len(sought))
    texts = [sought + around, around + sought, around + sought[:-1], sought[1:] + around]

    for text in texts[: 2 if len(sought) <= length else 0]:
        assert hold({"a": text, "b": sought}, other)
    for text in texts[2:]:
        assert not hold({"a": text, "b": sought}, other)


@pytest.mark.parametrize(
    ("message", "holds"),
    [
        ({"a": 81, "b": 80}, True),
        ({"a": 80, "b": 80.0}, True),
        ({"a": 79, "b": 80}, False),
        ({"a": 79}, False),
        ({"b": 80}, False),
        ({"a": "81", "b": 80}, False),
        ({"a": 81, "b": "80"}, False),
        ({"a": True, "b": 0}, False),
        ({"a": 1, "b": False}, False),
        ({"a": None, "b": None}, False),
        ([81, 80], False),
    ],
)
def test_a_number_is_compared_with_another_field(message, holds):
    condition = {"type": "numeric", "field": "a", "operator": "at_least", "other": "b"}

    assert hold(message, condition) is holds


@pytest.mark.parametrize(
    ("operator", "a", "b", "holds"),
    [
        ("equal_to", "x", "x", True),
        ("equal_to", "x", "X", False),
        ("not_equal_to", "x", "X", True),
        ("contains", "xyz", "y", True),
        ("contains", "y", "xyz", False),
        ("starts_with", "xyz", "xy", True),
        ("ends_with", "xyz", "xy", False),
        ("equal_to", None, None, False),
        ("not_equal_to", "x", 1, False),
        ("not_equal_to", 1, "x", False),
    ],
)
def test_a_string_is_compared_with_another_field(operator, a, b, holds):
    condition = {"type": "string", "field": "a", "operator": operator, "other": "b"}

    assert hold({"a": a, "b": b}, condition) is holds


@pytest.mark.parametrize(
    ("operator", "value", "found", "holds"),
    [
        ("equal_to", 0, "", True),
        ("equal_to", 0, [], True),
        ("equal_to", 0, {}, True),
        ("greater_than", 2, "größe", True),
        ("at_most", 2, [1, 2, 3], False),
        ("less_than", 2, {"x": 1}, True),
        ("at_least", 1, [None], True),
        ("not_equal_to", 1, "x", False),
        ("equal_to", 0, None, False),
        ("at_least", 0, 5, False),
        ("at_least", 0, True, False),
    ],
)
def test_a_length_is_of_characters_items_or_keys(operator, value, found, holds):
    condition = {"type": "length", "field": "a", "operator": operator, "value": value}

    assert hold({"a": found}, condition) is holds
    assert not hold({}, condition)


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        (
            {"type": "numeric", "field": "a", "operator": "at_least"},
            [": there is nothing to compare with: give 'value' or 'other'"],
        ),
        (
            {"type": "string", "field": "a", "operator": "equal_to", "value": "x", "other": "b"},
            [": it compares with one thing, not both"],
        ),
        (
            numeric("within", 5),
            [
                "operator: expected one of greater_than, less_than, equal_to, at_least, at_most, "
                'not_equal_to, found "within"'
            ],
        ),
        (
            {"type": "length", "field": "a", "operator": "equal_to", "value": -1},
            ["value: expected an integer of at least 0, found -1"],
        ),
        (
            string("equal_to", "x", ignore_case="yes"),
            ['ignore_case: expected true or false, found "yes"'],
        ),
        (
            string("not_equal_to", "a" * 8_193, ignore_case=True),
            ["value: a text of 8,193 characters is too long to ignore its case"],
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(document, reasons):
    assert refused(document) == reasons


@pytest.mark.parametrize(
    ("document", "message", "reason"),
    [
        (numeric("at_least", 80), {"a": 71}, "'a' is 71, and the condition is at_least 80"),
        (numeric("at_least", 80), {}, "'a' is missing, and the condition is at_least 80"),
        (
            {"type": "numeric", "field": "a", "operator": "at_least", "other": "b"},
            {"a": 71, "b": 80},
            "'a' is 71, and the condition is at_least 'b', which is 80",
        ),
        (
            {"type": "length", "field": "a", "operator": "at_least", "value": 2},
            {"a": [1]},
            "'a' is [1], and the condition is a length at_least 2",
        ),
    ],
)
def test_why_one_does_not_hold_is_told(document, message, reason):
    [condition] = conditions(document)

    assert condition.unmet(message) == reason


@pytest.mark.parametrize(
    ("document", "values"),
    [
        (numeric("at_least", 80), ValueRange(at_least=80)),
        (numeric("at_most", 80), ValueRange(at_most=80)),
        (numeric("greater_than", 80), ValueRange(above=80)),
        (numeric("equal_to", 80), ValueRange(equal=80)),
        (string("equal_to", "x"), ValueRange(equal="x")),
        (string("starts_with", "x"), ValueRange(containing="x")),
    ],
)
def test_what_is_compared_with_narrows_what_passes(document, values):
    [condition] = conditions(document)

    assert [*condition.ranges] == [("a", values)]


@pytest.mark.parametrize(
    "document",
    [
        numeric("not_equal_to", 80),
        string("not_equal_to", "x"),
        string("equal_to", "x", ignore_case=True),
        {"type": "numeric", "field": "a", "operator": "equal_to", "other": "b"},
    ],
)
def test_what_bounds_nothing_narrows_nothing(document):
    [condition] = conditions(document)

    assert [*condition.ranges] == []
