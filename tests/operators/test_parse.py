"""The `parse` transform: what is written where, what becomes of a message that has no such text."""

import pytest

from headrace.compiler.component.fieldflow import FieldUse
from tests.covered import Covered
from tests.doubles import StubContext
from tests.operators.parsed import TOPIC, batches_of, handed_on, parse

POLICIES = ["error", "skip", "keep"]


# --- what it writes


@pytest.mark.parametrize("on_mismatch", POLICIES)
@pytest.mark.parametrize("on_missing", POLICIES)
def test_the_fields_stand_behind_those_that_are_there(on_missing, on_mismatch):
    it = parse(TOPIC, on_missing=on_missing, on_mismatch=on_mismatch)

    [made] = handed_on(it, {"value": "north/m7", "x": 1})

    assert [*made.items()] == [
        ("value", "north/m7"),
        ("x", 1),
        ("site", "north"),
        ("machine", "m7"),
    ]


def test_a_field_of_the_same_name_is_overwritten_where_it_stands():
    [made] = handed_on(parse(TOPIC), {"machine": {"was": 1}, "value": "north/m7"})

    assert [*made.items()] == [("machine", "m7"), ("value", "north/m7"), ("site", "north")]


def test_only_what_is_parsed_is_kept_where_that_is_asked_for():
    assert handed_on(parse(TOPIC, keep="parsed"), {"value": "north/m7", "x": 1}) == [
        {"site": "north", "machine": "m7"}
    ]


@pytest.mark.parametrize(
    ("as_", "keep", "made"),
    [
        ("at", "all", {"value": "n/m", "at": {"site": "n", "machine": "m"}}),
        ("at", "parsed", {"at": {"site": "n", "machine": "m"}}),
        ("at.once", "all", {"value": "n/m", "at": {"once": {"site": "n", "machine": "m"}}}),
        ("at.once", "parsed", {"at": {"once": {"site": "n", "machine": "m"}}}),
        ("value", "all", {"value": {"site": "n", "machine": "m"}}),
    ],
)
def test_all_of_it_may_be_one_object(as_, keep, made):
    assert handed_on(parse(TOPIC, as_=as_, keep=keep), {"value": "n/m"}) == [made]


def test_what_is_no_object_is_in_the_way():
    assert handed_on(parse(TOPIC, as_="x.y"), {"value": "n/m", "x": 1}) == [
        "cannot write 'x.y': 'x' is not an object"
    ]


def test_a_name_with_a_dot_is_a_key_of_the_top_level():
    it = parse({"split": {"by": "/", "into": ["a.b", "c"]}})

    assert handed_on(it, {"value": "1/2", "a": {"b": 0}}) == [
        {"value": "1/2", "a": {"b": 0}, "a.b": "1", "c": "2"}
    ]


def test_the_text_may_be_anywhere():
    it = parse(TOPIC, from_="_meta.topic")

    [below, literal] = handed_on(it, {"_meta": {"topic": "n/m"}}, {"_meta.topic": "n/m"})

    assert (below["machine"], literal["machine"]) == ("m", "m")


# --- types and nulls


def test_a_value_has_the_type_that_is_asked_for():
    form = {"split": {"by": " ", "into": ["n", "x", "on", "at", "j", "t"]}}
    types = {"n": "integer", "x": "float", "on": "boolean", "at": "timestamp", "j": "json"}

    [made] = handed_on(
        parse(form, types=types, keep="parsed"), {"value": "007 1.50 TRUE 2026-03-01 [1] 7"}
    )

    assert made == {
        "n": 7,
        "x": 1.5,
        "on": True,
        "at": "2026-03-01T00:00:00+00:00",
        "j": [1],
        "t": "7",
    }


@pytest.mark.parametrize("as_", [None, "x"])
@pytest.mark.parametrize(
    ("on_mismatch", "made"),
    [
        (
            "error",
            "'value' does not fit split: 'machine': cannot read a string as an integer: expected a whole "
            "number, or its digits in a string",
        ),
        ("skip", None),
        ("keep", {"value": "n/m", "x": 1}),
    ],
)
def test_one_that_will_not_convert_is_a_text_that_does_not_fit(on_mismatch, made, as_):
    it = parse(TOPIC, types={"machine": "integer"}, on_mismatch=on_mismatch, as_=as_)

    assert handed_on(it, {"value": "n/m", "x": 1}) == [made]


def test_a_text_that_stands_for_nothing_is_null_whatever_its_type():
    it = parse(TOPIC, types={"machine": "integer"}, nulls=["-", "n/a"], keep="parsed")

    assert handed_on(it, {"value": "-/-"}, {"value": "x/7"}) == [
        {"site": None, "machine": None},
        {"site": "x", "machine": 7},
    ]


# --- what fails

ALL_FAIL = [{}, {"value": None}, {"value": 5}, {"value": "x"}, {"value": "x/y/z"}, 5]


@pytest.mark.parametrize(
    "form",
    [
        TOPIC,
        pytest.param({"regex": "(?<site>[a-z]+)/(?<machine>[a-z]+)$"}, marks=pytest.mark.engine),
    ],
    ids=["in a loop", "by itself"],
)
def test_under_skip_what_fails_is_left_out_and_the_others_of_its_batch_go_on(form):
    ctx = StubContext(place="transforms[0]")
    it = parse(form, on_error="skip", keep="parsed", max_length=4)

    [made] = batches_of(it, [{"value": "a/b"}, *ALL_FAIL, {"value": "c/d"}], ctx=ctx)

    assert made == [{"site": "a", "machine": "b"}, {"site": "c", "machine": "d"}]
    assert ctx.lost.total() == len(ALL_FAIL)
    assert ctx.lost["field 'value' is missing or null"] == 3
    assert ctx.lost["field 'value' is a number: expected a string"] == 1
    assert ctx.lost["'value': the text has 5 characters, at most 4"] == 1


def test_under_skip_what_the_policies_take_is_no_failure():
    ctx = StubContext(place="transforms[0]")
    it = parse(TOPIC, on_error="skip", on_missing="skip", on_mismatch="keep")

    [made] = batches_of(it, [{}, {"value": "x"}, {"value": 5}, {"value": "a/b"}], ctx=ctx)

    assert made == [{"value": "x"}, {"value": "a/b", "site": "a", "machine": "b"}]
    assert ctx.lost == {"field 'value' is a number: expected a string": 1}


def test_under_skip_an_object_that_cannot_be_put_where_it_belongs_costs_its_message():
    ctx = StubContext(place="transforms[0]")
    it = parse(TOPIC, on_error="skip", as_="x.y")

    [made] = batches_of(it, [{"value": "a/b", "x": 5}, {"value": "a/b"}], ctx=ctx)

    assert made == [{"value": "a/b", "x": {"y": {"site": "a", "machine": "b"}}}]
    assert ctx.lost == {"cannot write 'x.y': 'x' is not an object": 1}


# --- what does not fit

TWO = "'value' does not fit split: 1 part for 2 names"


@pytest.mark.parametrize("keep", ["all", "parsed"])
@pytest.mark.parametrize(
    ("on_mismatch", "made"), [("error", TWO), ("skip", None), ("keep", {"value": "secret", "x": 1})]
)
def test_a_text_that_does_not_fit_is_left_to_the_policy_and_its_content_is_not_told(
    on_mismatch, made, keep
):
    it = parse(TOPIC, on_mismatch=on_mismatch, keep=keep)

    assert handed_on(it, {"value": "secret", "x": 1}) == [made]


@pytest.mark.parametrize(
    ("on_missing", "made"),
    [("error", "field 'value' is missing or null"), ("skip", None), ("keep", "as it is")],
)
@pytest.mark.parametrize("message", [{}, {"value": None, "x": 1}, 7, "n/m", None, [1]])
def test_where_there_is_no_text_the_other_policy_decides(message, on_missing, made):
    it = parse(TOPIC, on_missing=on_missing)

    assert handed_on(it, message) == [message if made == "as it is" else made]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("value", "type_"), [(7, "a number"), (True, "a boolean"), ({}, "an object"), ([], "a list")]
)
def test_a_value_that_is_no_text_fails_under_every_policy(value, type_, policy):
    it = parse(TOPIC, on_missing=policy, on_mismatch=policy)

    assert handed_on(it, {"value": value}) == [f"field 'value' is {type_}: expected a string"]


@pytest.mark.parametrize("most", [10, 65_536])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_text_that_is_too_long_does_not_fit(most, policy):
    it = parse({"split": {"by": "/", "into": ["a"]}}, max_length=most, on_mismatch=policy)
    longest, longer = {"value": "x" * most}, {"value": "x" * (most + 1)}

    [fits, does_not] = handed_on(it, longest, longer)

    said = f"'value': the text has {most + 1:,} characters, at most {most:,}"
    assert fits == longest | {"a": "x" * most}
    assert does_not == {"error": said, "skip": None, "keep": longer}[policy]


# --- what it says of itself


def test_a_dry_run_tells_why_a_message_went():
    it, ctx = parse(TOPIC, on_missing="skip", on_mismatch="skip"), StubContext()

    assert it.reason({"value": "n"}, ctx) == f"{TWO}, and 'on_mismatch' is skip"
    assert it.reason({}, ctx) == "'value' is missing or null, and 'on_missing' is skip"


def test_its_fields_are_told_exactly():
    assert parse(TOPIC).field_use() == FieldUse.of(reads=["value"], keys=["site", "machine"])
    assert parse(TOPIC, keep="parsed", on_missing="skip").field_use() == FieldUse.of(
        reads=["value"], keys=["site", "machine"], keeps=False, drops_without=["value"]
    )
    assert parse(TOPIC, as_="x").field_use() == FieldUse.of(
        reads=["value"], writes=["x.site", "x.machine"], removes=["x"]
    )
    assert parse({"pairs": {}}, as_="x.y", on_mismatch="keep", keep="parsed").field_use() == (
        FieldUse.of(reads=["value", "x", "x.y"], writes=["x.y"], asks=["value"])
    )


def test_without_the_text_it_fails_unless_it_is_told_otherwise():
    [demand] = parse(TOPIC).demands()

    assert (demand.path, demand.place) == ("value", ("from",))
    assert [*parse(TOPIC, on_missing="keep").demands()] == []


SPLIT = "split: {by: /, into: [x, y]}"
COVERED = [
    Covered(
        f"{{type: parse, from: v, {SPLIT}, on_error: skip}}",
        "a: {1s: {v: n/m}, 2s: {w: 1}}",
        ("no text in 'v' ever fitted 'split'", "no message was ever skipped by error"),
    ),
    *(
        Covered(
            f"{{type: parse, from: v, {SPLIT}, on_missing: {policy}, on_mismatch: {policy}}}",
            "a: {1s: {v: n/m}, 2s: {w: 1}, 3s: {v: n}}",
            (
                "no text in 'v' ever fitted 'split'",
                f"'v' was never missing ('on_missing' is {policy})",
                f"every text fitted 'split' ('on_mismatch' is {policy})",
            ),
        )
        for policy in ("skip", "keep")
    ),
    Covered(
        f"{{type: parse, from: v, {SPLIT}}}",
        "a: {1s: {v: n/m}}",
        ("no text in 'v' ever fitted 'split'",),
    ),
]
