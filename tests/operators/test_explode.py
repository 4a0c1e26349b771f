"""The `explode` transform: the items of a list become messages."""

import asyncio
import gc
import weakref
from collections import Counter
from contextlib import nullcontext
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex.subject import Subject

from headrace.compiler.clock import Clock
from headrace.compiler.component.fieldflow import FieldUse, Passing
from headrace.compiler.delivery import LARGE_BATCH, Delivery, Window, is_large
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.errors import BatchFailed
from headrace.compiler.largejson import LargeList
from headrace.compiler.largejson.letting_go import MESSAGES_AT_ONCE
from headrace.compiler.lowering.chain import lower
from headrace.operators.explode import Explode
from headrace.operators.filter import Filter
from headrace.operators.map import Map
from tests.compiler.lowering.chains import Hurrying
from tests.covered import Covered
from tests.doubles import StubContext, refusals
from tests.examples import examples
from tests.virtual import virtual

ORDER = {
    "order": {"id": 7, "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}]},
    "customer": {"id": "c1"},
}


def exploded(document, *batch):
    """Return what is made of a batch; of one that fails, why."""
    untouched = repr(batch)
    try:
        made = Explode.load(document).step(StubContext())([*batch])
    except BatchFailed as cause:
        made = str(cause)
    assert repr(batch) == untouched
    return made


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


# --- under `on_error: skip`

OBJECTS = "expected objects, or an 'as' to put anything in"


def skipped(document, *batch):
    """Return what is made of a batch, and how many messages each failure has cost."""
    ctx, untouched = StubContext(), repr(batch)
    explode = Explode.load({"from": "x", "on_error": "skip"} | document)
    made = explode.step(ctx)([*batch])
    assert repr(batch) == untouched
    return made, ctx.lost


def test_what_fails_costs_itself_and_the_items_of_the_others_go_on_in_order():
    batch = [
        {"x": [{"n": 0}, {"n": 1}]},
        {"x": "abc"},
        {"x": [{"n": 2}, 5]},
        {},
        {"x": []},
        7,
        {"x": [{"n": 3}, {"n": 4}, "abc"]},
        {"x": [{"n": 5}]},
    ]

    made, lost = skipped({}, *batch)

    assert made == [[{"n": 0}, {"n": 1}, {"n": 5}]]
    assert lost == {
        "field 'x' is a string: expected a list": 1,
        f"field 'x' holds a number: {OBJECTS}": 1,
        f"field 'x' holds a string: {OBJECTS}": 1,
        "field 'x' is missing or null": 2,
    }
    assert skipped({}, {"x": 5}, {"x": [5]})[0] == []


@pytest.mark.parametrize("options", [{"as": "y.z"}, {"index_as": "y.z"}])
def test_an_item_that_cannot_be_put_where_it_belongs_costs_its_message(options):
    bad = {"x": [{}, {"y": 5}], "y": 5}

    made, lost = skipped(options, bad, {"x": [{}]}, bad)

    assert [len(batch) for batch in made] == [1]
    assert lost == {"cannot write 'y.z': 'y' is not an object": 2}


@pytest.mark.parametrize("policy", ["skip", "keep"])
def test_what_on_missing_takes_is_not_lost(policy):
    made, lost = skipped({"on_missing": policy}, {}, {"x": [{}]}, {"x": 5})

    assert (made, lost.total()) == ([[{}, {}] if policy == "keep" else [{}]], 1)


def test_a_large_message_is_cut_off_where_it_fails():
    many = [{"n": n} for n in range(LARGE_BATCH * 5)]

    made, lost = skipped({}, {"x": [*many, 5]}, {"x": many}, {"x": [*many, 5]})

    assert made == [many]
    assert lost == {f"field 'x' holds a number: {OBJECTS}": 2}


def test_a_message_beyond_a_bound_alone_costs_itself_and_all_together_their_batch():
    document = {"max_items": 2}
    too_many = "makes 3 messages, at most 2 are allowed ('max_items')"

    assert skipped(document, {"x": [{}] * 3}, {"x": [{}] * 2}) == ([[{}] * 2], {too_many: 1})
    with pytest.raises(BatchFailed, match="makes 3 messages"):
        skipped(document, {"x": [{}] * 2}, {"x": [{}]})
    # One that is lost for its item has been counted by then.
    with pytest.raises(BatchFailed, match="makes 4 messages"):
        skipped(document, {"x": [{}, 5]}, {"x": [{}] * 2})


def test_so_does_one_that_shares_too_much_with_its_items():
    shares = {"x": [{}] * 100_000, "t": "a" * 300}
    document = {"keep": {"t": "t"}, "max_items": 1_000_000}

    made, lost = skipped(document, shares, {"x": [{}]})

    assert (made, [*lost.values()]) == ([[{}]], [1])
    assert TOO_MUCH in lost
    with pytest.raises(BatchFailed, match=TOO_MUCH):
        skipped(document, {"x": [{}] * 50_000, "t": "a" * 300}, shares | {"x": [{}] * 50_000})


@virtual
async def test_of_a_batch_that_fails_no_message_is_told_of_alone_and_nothing_is_kept():
    turns = Turns({"from": "x", "on_error": "skip", "max_items": 1})
    message = Weighed(x=5)
    known = weakref.ref(message)

    await turns.takes(message, {"x": [{}]}, {"x": [{}]})
    assert turns.ctx.failures == ["makes 2 messages, at most 1 are allowed ('max_items')"]
    assert not turns.ctx.lost
    gc.disable()
    try:
        del message
        assert known() is None
    finally:
        gc.enable()


class Weighed(dict):
    """A message to which there can be a weak reference."""


# --- bounds


def test_more_messages_than_max_items_fail_the_batch_and_those_handed_on_count():
    document = {"from": "x", "as": "x", "max_items": 3, "on_missing": "keep"}

    assert exploded(document, {"x": [1, 2]}, {}) == [[{"x": 1}, {"x": 2}, {}]]
    assert exploded(document, {"x": [1, 2]}, {}, {"x": [3]}) == (
        "makes 4 messages, at most 3 are allowed ('max_items')"
    )
    many = {"from": "x", "as": "x"}
    assert len(exploded(many, {"x": [0] * 100_000})[0]) == 100_000
    assert exploded(many, {"x": [0] * 100_001}) == (
        "makes 100,001 messages, at most 100,000 are allowed ('max_items')"
    )


TOO_MUCH = "its messages share too much: at most 24 MiB of JSON, counted for each of them"


@pytest.mark.parametrize(
    ("shared", "is_too_much"),
    [
        ("a" * 200, False),
        ("a" * 300, True),
        ("é" * 120, False),
        ("é" * 150, True),
        ("\x01" * 50, True),
        (10**300, True),
        ([[10**300]], True),
        (["a" * 100] * 3, True),
        ({"a" * 300: 1}, True),
        ([[[[]]] * 5] * 20, True),
        ([0] * 100, False),
    ],
)
@pytest.mark.parametrize("options", [{"as": "i"}, {"keep": {"t": "t"}}])
def test_what_a_hundred_thousand_messages_share_is_bounded(shared, is_too_much, options):
    message = {"x": [{}] * 100_000, "t": shared}

    fails = pytest.raises(BatchFailed, match=TOO_MUCH) if is_too_much else nullcontext()
    with fails:
        Explode.load({"from": "x", **options}).step(StubContext())([message])


def test_a_single_message_may_be_as_large_as_it_came():
    text = "a" * (129 * 1024 * 1024)

    explode = Explode.load({"from": "x", "as": "x"}).step(StubContext())

    assert explode([{"x": [1], "t": text}]) == [[{"t": text, "x": 1}]]
    with pytest.raises(BatchFailed, match="share too much"):
        explode([{"x": [1, 2], "t": text}])


class Turns:
    """A chain with an `explode` in it, and how long it keeps the loop from everybody else."""

    def __init__(self, document, clock=Clock):
        self.loop = asyncio.get_running_loop()
        self.ctx = StubContext(clock=clock(self.loop))
        self.longest = 0.0
        self.turns = 0
        self.made, self.source = [], Subject()
        self.window = Window()
        [operator] = lower([(Explode.load(document), self.ctx)], [])
        self.source.pipe(operator).subscribe(self._take)

    def _take(self, delivery):
        self.made.append(delivery.batch)
        delivery.done()

    async def takes(self, *batch):
        """Hand a batch in; look at the time that each turn of the loop takes this thread.

        What others have left is collected before: to free the messages of another test takes longer.
        """
        gc.collect()
        gc.disable()
        try:
            self.window.take()
            began = thread_time()
            self.source.on_next(Delivery([*batch], self.window))
            while self.window.used:
                self.longest = max(self.longest, thread_time() - began)
                self.turns += 1
                began = thread_time()
                await asyncio.sleep(0)
        finally:
            gc.enable()


WIDE = {f"f{n}": n for n in range(20)}
NARROW = [{"n": n} for n in range(100_000)]


HOSTILE = {
    "as": ({"as": "item"}, WIDE | {"x": NARROW}),
    "keep": ({"keep": {name: name for name in WIDE}, "index_as": "at"}, WIDE | {"x": NARROW}),
    "deep": ({"as": "a.b", "index_as": "a.i"}, WIDE | {"x": NARROW, "a": dict(WIDE)}),
    # Few items, and much to copy for each; and much to look at that they share.
    "wide": (
        {"as": "item"},
        {"x": [0] * 20, "wide": 1} | dict.fromkeys(map(str, range(90_000))),
    ),
    "wide below": ({"as": "a.b"}, {"x": [0] * 20, "a": dict.fromkeys(map(str, range(90_000)))}),
    "very wide": ({"as": "item"}, {"x": [0, 0]} | dict.fromkeys(map(str, range(300_000)))),
    "much shared": ({"as": "item"}, {"x": [0, 0], "t": [[n] for n in range(200_000)]}),
    "wide items": ({}, {"x": [dict.fromkeys(map(str, range(1_000)))] * 1_000}),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_others_have_their_turn_within_20_milliseconds(kind):
    options, message = HOSTILE[kind]

    async def longest():
        turns = Turns({"from": "x", **options})
        await turns.takes(message)
        [made] = turns.made
        assert len(made) == len(message["x"])
        return turns.longest

    # A machine that is busy now and then is no fault of it.
    assert min(asyncio.run(longest()) for _ in range(2)) < 0.02


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        ("as", 100_000 // 256),
        ("keep", 100_000 // 256),
        ("deep", 100_000 // 256),
        ("wide", 20),
        ("wide below", 20),
        ("very wide", 2),
        ("much shared", 400_000 // 2_048),
        ("wide items", 1_000),
    ],
)
@virtual
async def test_somebody_looks_whether_the_slice_is_over_so_often(kind, least):
    options, message = HOSTILE[kind]
    turns = Turns({"from": "x", **options}, lambda _: Hurrying())

    await turns.takes(message)

    assert turns.turns >= least


FAILING = {
    "at its last item": [{"x": [*NARROW[:-2], 5]}, {"x": [{}]}],
    "of many": [*({"x": [{"n": 1}, 5]} for _ in range(40_000)), {"x": [{}]}],
    "no lists": [*({"x": 5} for _ in range(100_000)), {"x": [{}]}],
    "wide items": [{"x": [dict.fromkeys(map(str, range(150)))] * 19_999 + [5]}, {"x": [{}]}],
}


@pytest.mark.parametrize("kind", FAILING)
def test_so_they_have_where_messages_fail_and_are_skipped(kind):
    async def longest():
        turns = Turns({"from": "x", "on_error": "skip"})
        await turns.takes(*FAILING[kind])
        assert turns.made == [[{}]]
        assert turns.ctx.lost.total() == len(FAILING[kind]) - 1
        return turns.longest

    assert min(asyncio.run(longest()) for _ in range(2)) < 0.02


@virtual
async def test_what_is_small_passes_at_once_and_a_failure_is_told():
    turns = Turns({"from": "x"})

    await turns.takes({"x": [{"a": 1}]})
    await turns.takes({"x": 5})
    await turns.takes({"x": []})

    assert (turns.made, turns.turns) == ([[{"a": 1}]], 0)
    assert turns.ctx.failures == ["field 'x' is a number: expected a list"]


@virtual
async def test_many_messages_are_a_list_that_is_let_go_of_in_slices():
    turns = Turns({"from": "x"})

    await turns.takes({"x": [{}] * LARGE_BATCH})
    await turns.takes({"x": [{}] * (LARGE_BATCH + 1)})
    few, many = turns.made

    assert (type(few), isinstance(many, LargeList)) == (list, True)
    assert sum(many.slices) + MESSAGES_AT_ONCE > len(many)


@pytest.mark.parametrize(("text", "is_sliced"), [("a" * 1_000, False), ("a" * 3_000, True)])
@virtual
async def test_so_are_a_few_that_share_much(text, is_sliced):
    turns = Turns({"from": "x", "keep": {"t": "t"}})

    await turns.takes({"x": [{}] * 100, "t": text})
    await turns.takes(*({"x": [{}] * 10, "t": text} for _ in range(10)))

    assert [is_large(made) for made in turns.made] == [is_sliced] * 2


def test_a_text_that_many_share_is_looked_at_within_20_milliseconds():
    async def longest():
        turns = Turns({"from": "x", "keep": {"t": "t"}})
        await turns.takes({"x": [{}] * 2, "t": "\x01" * (1024 * 1024)})
        [made] = turns.made
        assert len(made) == 2
        assert turns.turns > 1
        return turns.longest

    assert min(asyncio.run(longest()) for _ in range(2)) < 0.02


@virtual
async def test_a_fused_run_ends_before_it_and_another_one_begins_behind_it():
    ctx = StubContext(clock=Clock(asyncio.get_running_loop()))
    one = Map.load({"mappings": [{"type": "copy", "from": "n", "as": "m"}]})
    warm = Filter.load({"when": [{"type": "exists", "field": "n"}]})
    told = []

    operators = lower(
        [(each, ctx) for each in (warm, one, Explode.load({"from": "x", "as": "x"}), one, warm)],
        [],
        lambda run, loop: told.append([transform.kind for transform, _ in run]),
    )

    assert (len(operators), told) == (3, [["filter", "map"], ["map", "filter"]])


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
