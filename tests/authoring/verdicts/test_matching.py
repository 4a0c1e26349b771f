"""What was expected beside what was found."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from headrace.authoring.language.matchers import literal
from headrace.authoring.verdicts.matching import Matching
from tests.compiler.jsonvalues import VALUES
from tests.examples import examples

MATCHING = Matching(datetime(2026, 3, 2, 6, tzinfo=UTC))


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (1, 1.0),
        (0.3, 0.1 + 0.2),
        (10**40, 10**40),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"$any": None}, None),
        ({"$has": {"a": 1}}, {"a": 1, "b": 2}),
        ({"$type": "object"}, {}),
        ({"$type": None}, None),
        ({"$like": "b+"}, "abc"),
        ({"$near": [60.1, 0.1]}, 60.2),
        ({"$at": "25s"}, "2026-03-02T06:00:25Z"),
        ({"$at": "25s"}, "2026-03-02T07:00:25.000+01:00"),
        ({"$count": 2}, [1, 2]),
        ({"$$x": 1}, {"$x": 1}),
    ],
)
def test_they_match(expected: Any, found: Any):
    assert [*MATCHING.differences(expected, found)] == []


@pytest.mark.parametrize(
    ("expected", "found", "path", "texts"),
    [
        ([{"temp": 61}], [{"temp": 60.0}], "[0].temp", ("61", "60.0")),
        (1, True, "", ("1", "true")),
        (10**40, 10**40 + 1, "", (f"{10**40}", f"{10**40 + 1}")),
        ({"a": 1}, {}, "a", ("1", "(missing)")),
        ({}, {"a": 1}, "a", ("(no such field)", "1")),
        ([1], [1, 2], "[1]", ("(no such item)", "2")),
        ({"$has": {"a": 1}}, {"b": 1}, "a", ("1", "(missing)")),
        ({"$has": {}}, 5, "", ('{"$has": {}}', "5")),
        ({"$count": 2}, [1], "", ("2 messages", "1 message")),
        ({"$near": [1, 0.5]}, 2, "", ('{"$near": [1, 0.5]}', "2")),
        ({"$type": "number"}, True, "", ('{"$type": "number"}', "true")),
        ("a", "\x1b[31m", "", ('"a"', '"\\u001b[31m"')),
    ],
)
def test_where_they_differ_is_told(expected: Any, found: Any, path: str, texts: tuple[str, str]):
    [difference] = MATCHING.differences(expected, found)

    assert (difference.path, difference.expected, difference.found) == (path, *texts)


def test_long_values_are_cut():
    [difference] = MATCHING.differences("a", "b" * 1000)

    assert len(difference.found) == 70
    assert difference.found.endswith("…")


@examples(300)
@given(VALUES)
def test_whatever_it_is_it_matches_itself(value: Any):
    assert [*MATCHING.differences(literal(value), value)] == []


@examples(300)
@given(VALUES)
def test_whatever_it_is_something_in_its_place_is_found(value: Any):
    assert next(MATCHING.differences(literal(value), [value]), None) is not None
