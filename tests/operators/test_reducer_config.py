"""What a reducer says of itself, and what it refuses."""

import pytest

from headrace.compiler.component.fieldflow import FieldUse
from headrace.operators.reducer import Reducer
from tests.doubles import refusals
from tests.operators.reduced import (
    COUNT,
    MEAN,
    reduced,
    reducer,
)


def test_it_hands_on_its_own_fields_and_no_others():
    use = reducer(MEAN, COUNT, {"function": "count", "field": "seq", "as": "k"}, group_by=["a.b"])

    assert use.field_use() == FieldUse.of(
        reads=["a.b", "temp", "seq"],
        keys=["a.b", "mean", "n", "k"],
        keeps=False,
        drops_without=["a.b", "temp"],
    )


def test_under_skip_only_group_fields_have_to_be_there():
    use = reducer(MEAN, group_by=["a.b"], on_missing="skip").field_use()

    assert use.drops_without == {"a.b"}


def test_the_established_spelling_is_echoed_as_it_came():
    document = {
        "type": "reducer",
        "aggregations": [MEAN, {"function": "count", "as": "n"}],
        "group_by": ["machine"],
        "on_missing": "skip",
    }

    dumped = Reducer.load({k: v for k, v in document.items() if k != "type"}).dump()

    assert dumped == document


@pytest.mark.parametrize(
    ("document", "refusal"),
    [
        ({}, ["aggregations: this key is required"]),
        (
            {"aggregations": []},
            ["aggregations: expected a list of at least one aggregation, found an empty list"],
        ),
        (
            {"aggregations": [{"function": "avg", "as": "x"}]},
            [
                "aggregations[0].field: 'avg' needs a 'field' to take values from; only 'count'"
                " does without"
            ],
        ),
        (
            {"aggregations": [{"function": "count", "as": "x", "field": None}, COUNT, COUNT]},
            ["aggregations[2].as: 'n' is written by aggregations[1] already"],
        ),
        (
            {"aggregations": [{"function": "count", "as": "n"}, {"function": "count", "as": " n"}]},
            ["aggregations[1].as: 'n' is written by aggregations[0] already"],
        ),
        (
            {"aggregations": [{"function": "count", "as": "a.b"}], "group_by": ["c", "a.b"]},
            ["aggregations[0].as: 'a.b' is written by group_by[1] already"],
        ),
        (
            {"aggregations": [COUNT], "group_by": ["a", "b", "a"]},
            ["group_by[2]: 'a' is written by group_by[0] already"],
        ),
        (
            {"aggregations": [{"function": "count", "as": "  "}]},
            ["aggregations[0].as: this must not be blank"],
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(document, refusal):
    assert refusals(Reducer, document) == refusal


def test_an_unknown_function_and_a_null_policy_are_refused():
    document = {"aggregations": [{"function": "mean", "as": "x"}], "on_missing": None}

    found = refusals(Reducer, document)

    assert [text.split(":")[0] for text in found] == ["aggregations[0].function", "on_missing"]


def test_a_last_segment_that_two_group_fields_share_is_no_collision():
    counts = reducer(COUNT, group_by=["a.id", "b.id"])

    assert reduced(counts, [{"a": {"id": 1}, "b": {"id": 2}}]) == [{"a.id": 1, "b.id": 2, "n": 1}]
