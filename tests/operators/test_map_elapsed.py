"""The mapping `elapsed`: how long it was from one time to another."""

from functools import partial

import pytest

from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.lowering.chain import fuse
from headrace.operators.map import Map
from tests.doubles import refusals
from tests.operators.mappings import a_map

USUAL = ": expected RFC 3339 with an offset, YYYY-MM-DD, or seconds since 1970 up to 9e9"


def elapsed(**options):
    return {"type": "elapsed", "from": "a", "until": "b", "as": "took", **options}


@pytest.mark.parametrize(
    ("early", "late", "seconds", "millis"),
    [
        ("2026-11-22T12:00:00Z", "2026-11-22T12:00:01.5Z", 1.5, 1500),
        ("2026-11-22T12:00:01.5Z", "2026-11-22T12:00:00Z", -1.5, -1500),
        ("2026-11-22T12:00:00+01:00", "2026-11-22T12:00:00Z", 3600.0, 3_600_000),
        ("2026-11-22T12:00:00.0009Z", "2026-11-22T12:00:00.001Z", 0.0001, 0),
        ("2026-11-22T12:00:00.001Z", "2026-11-22T12:00:00.0009Z", -0.0001, -1),
        ("2026-11-22", 1_795_305_601, 1.0, 1000),
        (1.5, 1.5, 0.0, 0),
        ("2016-12-31T23:59:59Z", "2016-12-31T23:59:60Z", 1.0, 1000),
        ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", 315_537_897_599.0, 315_537_897_599_000),
    ],
)
def test_it_tells_what_lies_between(mapped, early, late, seconds, millis):
    message = {"a": early, "b": late}

    assert repr(mapped(a_map(elapsed()), message)["took"]) == repr(seconds)
    assert repr(mapped(a_map(elapsed(unit="millis")), message)["took"]) == repr(millis)


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        ({"a": "soon", "b": 1}, "'a' is no time" + USUAL),
        ({"a": 1, "b": "2026-11-22T12:00:00"}, "'b' is no time" + USUAL),
        ({"a": True, "b": 1}, "field 'a' is a boolean: expected a string or a number of seconds"),
        ({"b": []}, "field 'b' is a list: expected a string or a number of seconds"),
        ({"a": 1}, "field 'b' is missing or null"),
        ({"b": None}, "fields 'a', 'b' are missing or null"),
        ({"a": "0001-01-01T00:00:00+01:00", "b": 1}, "'a' leaves the years 1 to 9999"),
    ],
)
def test_what_is_no_time_fails_its_batch(mapped, message, failure):
    assert mapped(a_map(elapsed()), message) == f"mapping 0 ('elapsed'): {failure}"


def test_a_missing_time_is_missing(mapped):
    assert mapped(a_map(elapsed(), on_missing="omit"), {"a": 1}) == {"a": 1}
    assert mapped(a_map(elapsed(), on_missing="null"), {"b": 1}) == {"b": 1, "took": None}
    assert mapped(a_map(elapsed(), on_missing="null"), {"b": "x"}) == (
        f"mapping 0 ('elapsed'): 'b' is no time{USUAL}"
    )


def test_both_may_be_the_same_field(mapped):
    assert mapped(a_map(elapsed(until="a")), {"a": 7}) == {"a": 7, "took": 0.0}


@pytest.mark.parametrize("policy", ["error", "omit", "null"])
def test_the_generated_form_needs_no_help_with_ordinary_messages(ctx, policy):
    transform = Map.load(a_map(elapsed(), on_missing=policy))
    loop = fuse([partial(transform.generate, ctx=ctx)], "p1 transforms[0]").loop
    batch = [{"a": 1, "b": "2026-11-22"}] + ([] if policy == "error" else [{"a": 1}, {}])

    assert [loop(batch)] == transform.step(ctx)(batch)


def test_it_reads_both_and_writes_one():
    loaded = Map.load(a_map(elapsed()))

    assert loaded.field_use() == FieldUse.of(reads=["a", "b"], writes=["took"])
    assert refusals(Map, a_map(elapsed(unit="minutes"))) == [
        'mappings[0].unit: expected one of seconds, millis, found "minutes"'
    ]
