"""The mapping `drop_nulls`."""

import pytest

from headrace.compiler.component.fieldflow import FieldUse
from headrace.operators.map import Map
from tests.operators.mappings import a_map, constant, copy

DROP = {"type": "drop_nulls"}
NESTED = DROP | {"nested": True}


@pytest.mark.parametrize(
    ("mapping", "message", "left"),
    [
        (DROP, {"a": None, "b": 0, "c": None}, {"b": 0}),
        (DROP, {"a": None}, {}),
        (DROP, {"a": False, "b": "", "c": []}, {"a": False, "b": "", "c": []}),
        (DROP, {"a": {"b": None}}, {"a": {"b": None}}),
        (NESTED, {"a": {"b": None, "c": 1}, "d": None}, {"a": {"c": 1}}),
        (NESTED, {"a": [{"b": None}, None, [None, {"c": None}]]}, {"a": [{}, None, [None, {}]]}),
    ],
)
def test_what_is_null_goes_and_places_in_lists_stay(mapped, mapping, message, left):
    assert repr(mapped(a_map(mapping), message)) == repr(left)


def test_it_sees_what_was_written_before_it(mapped):
    document = a_map(copy("a", "b"), DROP, on_missing="null")

    assert mapped(document, {"c": 1}) == {"c": 1}
    assert mapped(document | {"keep": "mapped"}, {"c": 1}) == {}
    assert mapped(a_map(copy("a", "b"), NESTED, keep="mapped"), {"a": {"x": None}}) == {"b": {}}


def test_a_null_that_is_gone_is_in_nobodys_way(mapped):
    document = a_map(DROP, constant(1, "a.b"))

    assert mapped(document, {"a": None}) == {"a": {"b": 1}}
    assert mapped(document | {"keep": "mapped"}, {"a": None}) == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (DROP, dict.fromkeys(map(str, range(100_001)))),
        (NESTED, {"a": [1] * 50_000}),
        (NESTED, {"a": [{"b": 1}] * 10_000}),
    ],
)
def test_a_message_with_too_many_values_fails_its_batch(mapped, mapping, message):
    assert mapped(a_map(mapping), message) == (
        "mapping 0 ('drop_nulls'): the message has more than 25,000 values"
    )


def test_all_is_handed_on_that_was_there():
    assert Map.load(a_map(DROP)).field_use() == FieldUse.of()
