"""Texts that are made to take long: a batch of them is looked at in slices, wherever conditions stand."""

import asyncio

import pytest

from headrace.compiler.component.selection import Selection
from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.largejson import LargeList
from headrace.compiler.lowering.chain import fuse, lower
from headrace.operators.filter import Filter
from headrace.operators.map import Map
from tests.compiler.component.conditions.asked import conditions, matches, string
from tests.compiler.lowering.sliced import SlicedChain, Stage, longest_turn
from tests.doubles import StubContext
from tests.slowness import shortest, slowness
from tests.virtual import virtual

WITHIN = {"type": "string", "field": "a", "operator": "contains", "other": "b"}
MOST = 0.02


def made_to_last(length, sought, letter="a"):
    """Return a message with a text, and what is not in it and looks as if it were, wherever one begins."""
    return {"a": letter * length, "b": letter * (sought // 2) + "b" + letter * (sought // 2)}


HOSTILE = {
    "a half": (WITHIN, made_to_last(2_499, 1_250)),
    "nearly all": (WITHIN, made_to_last(8_192, 8_090)),
    "most, of four bytes": (WITHIN, made_to_last(8_192, 6_292, "\U00010400")),
    "a hundredth": (WITHIN, made_to_last(8_192, 98, "\U00010400")),
    "no case": (WITHIN | {"ignore_case": True}, made_to_last(8_192, 98, "\u0390")),
    "no case, nearly all": (
        WITHIN | {"ignore_case": True},
        made_to_last(2_730, 2_600, "\u0390"),
    ),
    "no case, a value": (string("starts_with", "x", ignore_case=True), {"a": "\u0130" * 8_192}),
    "no case, equal": (
        {"type": "string", "field": "a", "operator": "equal_to", "other": "b", "ignore_case": True},
        {"a": "\u0130" * 8_192, "b": "\u0130" * 8_191},
    ),
    "a pattern": (matches("[ab]*a[ab]{8}c"), {"a": "ab" * 8_192}),
    "a pattern, four bytes": (matches(r"\w+@x"), {"a": "\U00010400" * 8_192}),
}
PLACES = {
    "filter": lambda condition: [Filter.load({"when": [condition]})],
    "reader": lambda condition: [Selection(when=conditions(condition))],
    "inside": lambda condition: [
        Filter.load({"when": [{"type": "any", "conditions": [condition]}]})
    ],
    "mapping": lambda condition: [mapping(when=[condition])],
    "choose": lambda condition: [
        mapping(
            type="choose",
            cases=[{"when": [condition], "value": {"type": "number", "value": 1}}],
            default={"type": "number", "value": 2},
        )
    ],
    "fused": lambda condition: [
        mapping(),
        Filter.load({"when": [condition]}),
        Filter.load({"when": [{"type": "not", "conditions": [condition]}]}),
    ],
}


def mapping(**options):
    constant = {"type": "constant", "as": "n", "value": {"type": "number", "value": 1}}
    if options.get("type"):
        constant = {"as": "n"}
    return Map.load({"mappings": [constant | options]})


def turn(place, condition, batch):
    """Return the seconds of the longest turn, of some tries: others have the machine as well."""
    first, *behind = PLACES[place](condition)
    tries = []
    while len(tries) < 4 and (not tries or min(tries) >= MOST):
        tries.append(asyncio.run(longest_turn(first, batch, *behind, is_empty=True)))
    return min(tries)


@pytest.mark.timed
@pytest.mark.engine
@pytest.mark.parametrize("kind", HOSTILE)
def test_no_turn_is_long_whatever_texts_are_made_of(kind):
    condition, message = HOSTILE[kind]

    assert turn("filter", condition, [message] * LARGE_BATCH) < MOST * slowness()


@pytest.mark.timed
@pytest.mark.parametrize("place", PLACES)
def test_no_turn_is_long_wherever_a_condition_stands(place):
    condition, message = HOSTILE["a hundredth"]

    assert turn(place, condition, [message] * 1_000) < MOST * slowness()


@pytest.mark.timed
@pytest.mark.engine
def test_parts_of_a_large_batch_are_no_longer_where_texts_are_longest():
    batch = LargeList()
    batch += [{"a": "ab" * 500_000}] * 64

    assert turn("filter", matches("[ab]*a[ab]{8}c"), batch) < MOST * slowness()


@pytest.mark.timed
def test_no_turn_is_long_where_a_batch_runs_again_since_something_failed():
    copy = Map.load({"mappings": [{"type": "copy", "from": "x", "as": "y"}]})
    condition, message = HOSTILE["a hundredth"]
    hot = Filter.load({"when": [{"type": "not", "conditions": [condition]}]})
    batch = [{}, *[message] * 1_000]

    def seconds(first, last):
        return asyncio.run(longest_turn(first, batch, last))

    assert shortest(lambda: seconds(copy, hot), MOST, times=3) < MOST * slowness()
    assert shortest(lambda: seconds(hot, copy), MOST, times=3) < MOST * slowness()


@virtual
async def test_texts_as_they_are_usual_are_looked_at_at_once():
    chain = SlicedChain()
    ctx = Stage(StubContext(place="transforms[0]", clock=chain.clock))
    ctx.pacing = chain.pacing
    asked = [WITHIN, WITHIN | {"ignore_case": True}, string("contains", "PLC", ignore_case=True)]
    batch = [{"a": "the alarm of plc 7 since 10:00", "b": "plc"}] * LARGE_BATCH
    chain.runs(*lower([(Filter.load({"when": asked}), ctx)], []))

    chain.send(batch)

    assert chain.batches == [batch]


def test_only_what_may_take_long_is_added_up():
    ctx = StubContext(place="transforms[0]")
    usual = [string("contains", "x"), string("equal_to", "x"), {"type": "exists", "field": "a"}]
    equal = {"type": "string", "field": "a", "operator": "starts_with", "other": "b"}

    def takes_long(*asked):
        made = Filter.load({"when": [*asked]})
        return fuse([lambda code: made.generate(code, ctx)], "p1 transforms[0]").takes_long

    assert not takes_long(*usual, equal)
    assert takes_long(*usual, WITHIN)
    assert takes_long(equal | {"ignore_case": True})
