"""Conditions on what one field holds: a boolean, anything, one of some values."""

import sys
import time

import pytest

from headrace.compiler.decimals import Written
from tests.compiler.component.conditions.asked import (
    boolean,
    conditions,
    exists,
    hold,
    matches,
    of,
    one_of,
    refused,
)
from tests.slowness import slowness

ANYTHING = [True, False, None, 0, 1, 1.0, "", "true", [], {}]


@pytest.mark.parametrize("found", ANYTHING)
def test_a_boolean_is_that_boolean_and_nothing_like_it(found):
    assert hold({"a": found}, boolean()) is (found is True)
    assert hold({"a": found}, boolean(value=True)) is (found is True)
    assert hold({"a": found}, boolean(value=False)) is (found is False)
    assert not hold({}, boolean(value=False))


@pytest.mark.parametrize("found", ANYTHING)
def test_what_is_there_and_not_null_exists(found):
    assert hold({"a": found}, exists()) is (found is not None)


@pytest.mark.parametrize(
    ("message", "there"),
    [({"a": {"b": 0}}, True), ({"a.b": 0}, True), ({"a": [0]}, False), ({}, False), ("a", False)],
)
def test_what_is_on_no_way_does_not_exist(message, there):
    assert hold(message, exists("a.b")) is there


@pytest.mark.parametrize(
    ("values", "found", "is_one"),
    [
        (["a", "b"], "b", True),
        (["a", "b"], "c", False),
        (["1"], 1, False),
        ([1], "1", False),
        ([1], 1.0, True),
        ([1.0], 1, True),
        ([1], True, False),
        ([True], 1, False),
        ([True], True, True),
        ([0], False, False),
        ([False, 0, ""], False, True),
        ([False], None, False),
        ([10**400], 10**400, True),
        ([0.5], Written("0.50"), True),
        (["a", 1, True], [1], False),
        (["a", 1, True], {"a": 1}, False),
    ],
)
def test_one_of_several_values_counts_with_its_type(values, found, is_one):
    assert hold({"a": found}, one_of(*values)) is is_one


def test_of_ten_thousand_values_one_is_found():
    assert hold({"a": "n9999"}, one_of(*(f"n{n}" for n in range(10_000))))
    assert refused(one_of(*range(10_001))) == [
        "values: expected at most 10,000 values, found a list of 10,001"
    ]


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, float("inf")])
def test_what_is_no_string_number_or_boolean_is_refused(value):
    [reason] = refused(one_of("a", value))

    assert reason.startswith("values[1]: expected a string, a number or a boolean, found ")


def test_one_of_nothing_is_refused():
    assert refused(one_of()) == [
        "values: expected a list of at least one value, found an empty list"
    ]


@pytest.mark.parametrize(
    ("document", "message", "reason"),
    [
        (exists(), {}, "'a' is missing, and the condition is exists"),
        (exists(), {"a": None}, "'a' is null, and the condition is exists"),
        (boolean(value=False), {"a": 0}, "'a' is 0, and the condition is false"),
        (one_of("x", 1), {"a": 2}, "'a' is 2, and the condition is one_of \"x\", 1"),
        (
            one_of(*range(7)),
            {"a": 8},
            "'a' is 8, and the condition is one_of 0, 1, 2, 3, 4 and 2 more",
        ),
    ],
)
def test_why_one_does_not_hold_is_told(document, message, reason):
    [condition] = conditions(document)

    assert condition.unmet(message) == reason


@pytest.mark.parametrize("document", [exists("a.b"), boolean("a.b"), one_of(1, field="a.b")])
def test_they_need_the_field_that_they_look_at(document):
    [condition, negated] = conditions(document, of("not", document))

    assert [*condition.reads] == [*condition.needs] == [*negated.reads] == ["a.b"]
    assert [*negated.needs] == []


# --- matches


@pytest.mark.engine
@pytest.mark.parametrize(
    ("regex", "found", "is_matched"),
    [
        ("b+", "abc", True),
        ("^b", "abc", False),
        (r"^\d{4}-", "2026-11-27", True),
        ("", "", True),
        ("é$", "café", True),
        ("1", 1, False),
        ("true", True, False),
        ("a", ["a"], False),
        (".*", None, False),
        ("a", "\ud800a", False),
    ],
)
def test_a_string_matches_somewhere_and_nothing_else_does(regex, found, is_matched):
    assert hold({"a": found}, matches(regex)) is is_matched
    assert not hold({}, matches(regex))


@pytest.mark.engine
def test_a_text_of_more_than_1_mib_does_not_match():
    text = "x" * (2**20 - 1)

    assert hold({"a": text + "1"}, matches("1"))
    assert not hold({"a": text + "x1"}, matches("1"))


@pytest.mark.timed
@pytest.mark.engine
@pytest.mark.parametrize("text", ["a" * 28 + "!", "a" * 1_000_000 + "!"])
def test_a_hostile_text_takes_as_long_as_any_other(text):
    [condition] = conditions(matches("(a+)+$"))
    began = time.thread_time()

    assert not condition.holds({"a": text})
    assert time.thread_time() - began < 0.02 * slowness()


@pytest.mark.engine
def test_a_pattern_that_cannot_be_used_is_refused_with_its_place():
    assert refused(matches("a(b")) == ["regex: unclosed group"]
    [reason] = refused(matches("a[^x]{30}b"))
    assert reason.startswith("regex: this pattern is too large for a condition")


def test_without_the_engine_a_pattern_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "rhai", None)

    [reason] = refused(matches("a pattern that nobody has asked for"))

    assert reason.startswith("regex: a pattern needs the package 'rhai-python'")


@pytest.mark.engine
def test_why_a_text_does_not_match_is_told():
    [condition] = conditions(matches(r"^\d"))

    assert condition.unmet({"a": "x"}) == ('\'a\' is "x", and the condition is matches "^\\\\d"')
    assert [*condition.reads] == [*condition.needs] == ["a"]
