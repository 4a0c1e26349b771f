"""Matchers: which there are, and what is wrong with others."""

from typing import Any

import pytest

from headrace.authoring.language.matchers import faults, literal


@pytest.mark.parametrize(
    "expected",
    [
        5,
        {"a": {"$any": None}},
        {"$has": {"temp": {"$near": [42, 0.1]}}},
        [{"$type": "number"}, {"$type": None}],
        {"$like": "^a+$"},
        {"$at": "25s"},
        {"$count": 0},
        {"$$x": 1, "y": 2},
    ],
)
def test_nothing_is_wrong_with_what_is_right(expected: Any):
    assert [*faults(expected)] == []


@pytest.mark.parametrize(
    ("expected", "path", "message"),
    [
        (
            {"$nearly": 1},
            ("$nearly",),
            "there is no matcher '$nearly'; a field of this name is written '$$nearly'",
        ),
        ({"a": [{"$near": 5}]}, ("a", 0, "$near"), "'$near' takes "),
        ({"$near": [1, -1]}, ("$near",), "'$near' takes "),
        ({"$type": "text"}, ("$type",), "'$type' takes "),
        ({"$like": "("}, ("$like",), "'$like' takes a pattern: "),
        ({"$count": 1.5}, ("$count",), "'$count' takes "),
        ({"$at": "soon"}, ("$at",), "'$at' takes "),
        ({"$any": 1, "b": 2}, ("$any",), "'$any' stands beside other keys"),
        ({"$has": 5}, ("$has",), "'$has' takes an object of fields"),
        ({"$has": {"a": {"$no": 1}}}, ("$has", "a", "$no"), "there is no matcher '$no'"),
    ],
)
def test_what_is_wrong_is_told_where_it_is(expected: Any, path: tuple, message: str):
    [fault] = faults(expected)

    assert (fault.code, fault.path) == ("not-a-matcher", path)
    assert fault.message.startswith(message)


def test_a_field_that_begins_with_a_dollar_is_written_with_two():
    assert literal({"$a": [{"b": 1}]}) == {"$$a": [{"b": 1}]}


def test_a_value_without_such_fields_is_what_is_expected_itself():
    plain = {"a": [1, {"b": None}]}

    assert literal(plain) is plain
    assert literal({"$a": 1, "b": [plain]})["b"][0] is plain
