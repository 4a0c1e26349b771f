"""The `explode` transform: the items of a list become messages."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.component.fieldflow import FieldUse, Passing
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.errors import BatchFailed
from headrace.operators.explode import Explode
from tests.covered import Covered
from tests.doubles import StubContext, refusals
from tests.examples import examples
from tests.operators.exploded import ORDER, exploded


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({}, [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}]),
        (
            {"keep": {"order_id": "order.id", "customer": "customer.id", "none": "order.none"}},
            [
                {"sku": "a", "n": 1, "order_id": 7, "customer": "c1"},
                {"sku": "b", "n": 2, "order_id": 7, "customer": "c1"},
            ],
        ),
        ({"keep": {"n": "order.id"}}, [{"sku": "a", "n": 7}, {"sku": "b", "n": 7}]),
        ({"index_as": "i"}, [{"sku": "a", "n": 1, "i": 0}, {"sku": "b", "n": 2, "i": 1}]),
        (
            {"index_as": "at.line"},
            [{"sku": "a", "n": 1, "at": {"line": 0}}, {"sku": "b", "n": 2, "at": {"line": 1}}],
        ),
        (
            {"as": "line"},
            [
                {"order": {"id": 7}, "customer": {"id": "c1"}, "line": {"sku": "a", "n": 1}},
                {"order": {"id": 7}, "customer": {"id": "c1"}, "line": {"sku": "b", "n": 2}},
            ],
        ),
        (
            {"as": "order", "index_as": "i"},
            [
                {"order": {"sku": "a", "n": 1}, "customer": {"id": "c1"}, "i": 0},
                {"order": {"sku": "b", "n": 2}, "customer": {"id": "c1"}, "i": 1},
            ],
        ),
        (
            {"as": "order.line", "index_as": "order.line.i"},
            [
                {
                    "order": {"id": 7, "line": {"sku": "a", "n": 1, "i": 0}},
                    "customer": {"id": "c1"},
                },
                {
                    "order": {"id": 7, "line": {"sku": "b", "n": 2, "i": 1}},
                    "customer": {"id": "c1"},
                },
            ],
        ),
    ],
)
def test_each_item_is_a_message_or_in_one(options, made):
    assert exploded({"from": "order.lines", **options}, ORDER) == [made]


def test_all_of_a_batch_is_one_batch_in_order_and_an_empty_list_makes_nothing():
    document = {"from": "x", "as": "x"}

    assert exploded(document, {"x": [1, None]}, {"x": []}, {"x": [[2]], "y": 0}) == [
        [{"x": 1}, {"x": None}, {"y": 0, "x": [2]}]
    ]
    assert exploded(document, {"x": []}) == []


@pytest.mark.parametrize("message", [{}, {"order": None}, {"order": {"lines": None}}, 5, [1]])
def test_a_list_that_is_missing_or_null_is_answered_by_the_policy(message):
    document = {"from": "order.lines"}

    assert exploded(document, message) == "field 'order.lines' is missing or null"
    assert exploded(document | {"on_missing": "skip"}, message) == []
    assert exploded(document | {"on_missing": "skip"}, message, ORDER) == [ORDER["order"]["lines"]]
    assert exploded(document | {"on_missing": "keep"}, message, ORDER) == [
        [message, *ORDER["order"]["lines"]]
    ]


@pytest.mark.parametrize("on_missing", ["error", "skip", "keep"])
@pytest.mark.parametrize(
    ("options", "message", "failure"),
    [
        ({}, {"x": "abc"}, "field 'x' is a string: expected a list"),
        ({}, {"x": {}}, "field 'x' is an object: expected a list"),
        (
            {},
            {"x": [{}, 5]},
            "field 'x' holds a number: expected objects, or an 'as' to put anything in",
        ),
        (
            {"keep": {"a": "a"}},
            {"x": [{}, "abc"]},
            "field 'x' holds a string: expected objects, or an 'as' to put anything in",
        ),
        (
            {"index_as": "i"},
            {"x": [None]},
            "field 'x' holds null: expected objects, or an 'as' to put anything in",
        ),
        ({"as": "y.z"}, {"x": [1], "y": 5}, "cannot write 'y.z': 'y' is not an object"),
        ({"index_as": "y.z"}, {"x": [{"y": 5}]}, "cannot write 'y.z': 'y' is not an object"),
    ],
)
def test_what_does_not_fit_fails_the_batch_whatever_is_said_of_what_is_missing(
    options, message, failure, on_missing
):
    assert exploded({"from": "x", "on_missing": on_missing, **options}, message) == failure


# --- what is known of it

items = st.lists(st.dictionaries(st.sampled_from("abi"), st.integers(0, 3), max_size=2), max_size=4)
messages = st.dictionaries(
    st.sampled_from(["a", "b", "x.y"]), items | st.integers(0, 3) | st.none(), max_size=3
) | st.fixed_dictionaries({"x": st.dictionaries(st.sampled_from("yz"), items)})
options = st.fixed_dictionaries(
    {"on_missing": st.sampled_from(["error", "skip", "keep"])},
    optional={
        "on_error": st.just("skip"),
        "keep": st.dictionaries(st.sampled_from("abk"), st.sampled_from(["a", "x.z"]), max_size=2),
        "index_as": st.sampled_from(["i", "j.i"]),
    },
) | st.fixed_dictionaries(
    {"as": st.sampled_from(["a", "x.y", "x.q", "l"])},
    optional={
        "index_as": st.sampled_from(["i", "j.i"]),
        "on_missing": st.just("skip"),
        "on_error": st.just("skip"),
    },
)


@examples(400)
@given(st.sampled_from(["x.y", "b"]), options, st.lists(messages, min_size=1, max_size=3))
def test_it_does_what_it_says_of_fields_and_every_message_has_its_origin(path, options, batch):
    made = Explode.load({"from": path, **options})
    use = made.field_use()
    try:
        batches = made.step(StubContext())(batch)
    except BatchFailed:
        return

    for messages, sources in zip(batches, made.origins(batch, batches), strict=True):
        for message, [source] in zip(messages, sources, strict=True):
            came = batch[source]
            found = DottedPath(path).read(came)
            if found in (MISSING, None):
                assert (message, made.on_missing) == (came, "keep")
                continue
            if not use.keeps:
                assert {*use.keys} & {*message} == {
                    name
                    for name in use.keys
                    if DottedPath(options["keep"][name]).read(came) is not MISSING
                    or any(name in item for item in found)
                } & {*message}
                continue
            written = {each.split(".")[0] for each in use.writes | use.removes}
            for key in {*came, *message} - written - use.writes - {path}:
                assert repr(message[key]) == repr(came[key])


@examples(400)
@given(st.sampled_from(["x.y", "b"]), options, st.lists(messages, min_size=1, max_size=4))
def test_under_skip_a_batch_is_what_its_messages_are_by_themselves_without_those_that_fail(
    path, options, batch
):
    document = {key: value for key, value in options.items() if key != "on_error"} | {"from": path}
    alone = [exploded(document, message) for message in batch]
    ctx = StubContext()

    made = Explode.load(document | {"on_error": "skip"}).step(ctx)(batch)

    assert [each for some in made for each in some] == [
        each for some in alone if isinstance(some, list) for part in some for each in part
    ]
    assert ctx.lost == Counter(some for some in alone if isinstance(some, str))


def test_it_reads_the_list_and_what_is_kept_and_an_item_may_have_any_field():
    beside = Explode.load({"from": "o.l", "keep": {"id": "o.id"}, "on_missing": "skip"})
    inside = Explode.load({"from": "o.l", "as": "line.x", "index_as": "i"})

    assert beside.field_use() == FieldUse.of(
        reads=["o.l", "o.id"], keys=["id"], keeps=False, is_open=True, drops_without=["o.l"]
    )
    assert inside.field_use() == FieldUse.of(
        reads=["o.l", "line", "line.x"], writes=["line.x", "i"], removes=["o.l"], asks=["o.l"]
    )
    assert [*beside.demands()] == []
    assert [(each.path, each.place) for each in inside.demands()] == [("o.l", ("from",))]


def test_nothing_is_known_of_an_item_and_nobody_knows_how_many_there_are():
    before = Passing(largest=1)
    after = Explode.load({"from": "x"}).passes(before)

    assert (after.missing("anything"), after.largest) == (None, None)
    after = Explode.load({"from": "x", "as": "y"}).passes(before.seen_by("it"))
    assert after.missing("x") == ("it",)


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        ({}, ["from: this key is required"]),
        (
            {"from": "x", "as": "y", "keep": {"a": "a"}},
            [
                "keep: 'keep' is for items that are the message, and with 'as' all of the message is kept"
            ],
        ),
        ({"from": "x", "as": "y", "index_as": "y"}, ["index_as: 'y' is written twice"]),
        ({"from": "x", "keep": {"a": "a"}, "index_as": "a"}, ["index_as: 'a' is written twice"]),
        (
            {"from": "x", "as": "i.y", "index_as": "i"},
            ["index_as: cannot write 'i.y': 'index_as' makes 'i' a number"],
        ),
        (
            {"from": "x", "max_items": 1_000_001},
            ["max_items: expected an integer of at least 1 and of at most 1000000, found 1000001"],
        ),
        ({"from": "x", "keep": {"a": 5}}, ["keep.a: expected a string that is not blank, found 5"]),
        (
            {"from": "x", "on_missing": "null"},
            ['on_missing: expected one of error, skip, keep, found "null"'],
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(document, reasons):
    assert refusals(Explode, document) == reasons


def test_the_echo_is_what_was_written():
    document = {"from": "x", "keep": {"a": "b"}, "index_as": "i", "on_missing": "skip"}

    assert Explode.load(document).dump() == {"type": "explode"} | document


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({}, "'x' is missing or null, and 'on_missing' is skip"),
        ({"x": []}, "'x' is an empty list"),
    ],
)
def test_why_nothing_was_made_of_a_message(message, reason):
    assert Explode.load({"from": "x"}).reason(message, StubContext()) == reason


COVERED = [
    Covered(
        "{type: explode, from: x, on_error: skip}",
        "a: {1s: {x: [{}]}, 2s: {x: []}, 3s: {x: [1]}}",
        ("'x' never had an item", "'x' was never empty", "no message was ever skipped by error"),
    ),
    Covered(
        "{type: explode, from: x, on_missing: skip}",
        "a: {1s: {x: [{}]}, 2s: {x: []}, 3s: {}}",
        (
            "'x' never had an item",
            "'x' was never empty",
            "'x' was never missing ('on_missing' is skip)",
        ),
    ),
    Covered(
        "{type: explode, from: x}",
        "a: {1s: {x: [{}]}, 2s: {x: []}}",
        ("'x' never had an item", "'x' was never empty"),
    ),
]
