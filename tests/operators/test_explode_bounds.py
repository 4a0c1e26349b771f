"""The `explode` transform: its bounds, and the turns of everybody else meanwhile."""

import asyncio
from contextlib import nullcontext

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import LARGE_BATCH, is_large
from headrace.compiler.errors import BatchFailed
from headrace.compiler.largejson import LargeList
from headrace.compiler.largejson.letting_go import MESSAGES_AT_ONCE
from headrace.compiler.lowering.chain import lower
from headrace.operators.explode import Explode
from headrace.operators.filter import Filter
from headrace.operators.map import Map
from tests.compiler.lowering.chains import Hurrying
from tests.doubles import StubContext
from tests.operators.exploded import TOO_MUCH, Turns, exploded
from tests.slowness import shortest, slowness
from tests.virtual import virtual


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


@pytest.mark.timed
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
    assert shortest(lambda: asyncio.run(longest()), 0.02, times=2) < 0.02 * slowness()


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


@pytest.mark.timed
@pytest.mark.parametrize("kind", FAILING)
def test_so_they_have_where_messages_fail_and_are_skipped(kind):
    async def longest():
        turns = Turns({"from": "x", "on_error": "skip"})
        await turns.takes(*FAILING[kind])
        assert turns.made == [[{}]]
        assert turns.ctx.lost.total() == len(FAILING[kind]) - 1
        return turns.longest

    assert shortest(lambda: asyncio.run(longest()), 0.02, times=2) < 0.02 * slowness()


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


@pytest.mark.timed
def test_a_text_that_many_share_is_looked_at_within_20_milliseconds():
    async def longest():
        turns = Turns({"from": "x", "keep": {"t": "t"}})
        await turns.takes({"x": [{}] * 2, "t": "\x01" * (1024 * 1024)})
        [made] = turns.made
        assert len(made) == 2
        assert turns.turns > 1
        return turns.longest

    assert shortest(lambda: asyncio.run(longest()), 0.02, times=2) < 0.02 * slowness()


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
