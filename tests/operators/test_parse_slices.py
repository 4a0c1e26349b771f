"""A `parse` of many texts, or of long ones, holds up nobody else, and hands on its batch as one."""

import asyncio
import gc

import pytest

from headrace.compiler.delivery import SLOW_BATCH
from headrace.compiler.lowering.chain import lower
from headrace.operators.map import Map
from headrace.operators.parse import Parse
from headrace.operators.parsing.onebyone import OneByOne
from tests.compiler.lowering.chains import Hurrying
from tests.compiler.lowering.sliced import SlicedChain, Stage, longest_turn
from tests.doubles import StubContext
from tests.operators.parsed import TOPIC, parse
from tests.slowness import shortest, slowness
from tests.virtual import virtual

CONSTANTS = [{"as": "x", "value": {"type": "number", "value": n}} for n in range(2)]
LONGEST = 0.02
"""Seconds of this thread's CPU time: those that other processes take from it do not count."""
COPY = Map.load({"mappings": [{"type": "copy", "from": "machine", "as": "m"}], "keep": "mapped"})


class Sliced(SlicedChain):
    """A chain of transforms in which every slice is over as soon as somebody looks."""

    def __init__(self, *transforms):
        super().__init__()
        self.ctx = StubContext(place="transforms[0]", clock=self.clock)
        self.ctx.pacing = self.pacing
        [operator] = lower([(each, self.ctx) for each in transforms], [])
        self.runs(operator)

    @property
    def works(self):
        return bool(self.pacing.slices.paused)


def topics(count, text="n/m"):
    return [{"value": text} for _ in range(count)]


@virtual
async def test_a_batch_of_more_than_five_hundred_is_worked_on_in_slices_and_is_one_in_the_end():
    it = Sliced(parse(TOPIC), COPY)

    it.send(topics(SLOW_BATCH))
    assert it.batches == [[{"m": "m"}] * SLOW_BATCH]
    it.send(topics(SLOW_BATCH + 1), topics(1))
    assert (len(it.batches), it.works) == (1, True)
    await it.settles()

    assert [len(batch) for batch in it.batches] == [SLOW_BATCH, SLOW_BATCH + 1, 1]


@virtual
async def test_where_nothing_takes_long_a_batch_of_that_many_passes_at_once():
    it = Sliced(Map.load({"mappings": [{"type": "copy", "from": "value", "as": "m"}]}))

    it.send(topics(SLOW_BATCH + 1))

    assert (len(it.batches), it.works) == (1, False)


@pytest.mark.parametrize("at", [0, SLOW_BATCH])
@virtual
async def test_nothing_of_a_large_batch_is_handed_on_if_one_of_its_texts_does_not_fit(at):
    it, batch = Sliced(parse(TOPIC), COPY), topics(SLOW_BATCH + 1)
    batch[at] = {"value": "x"}

    it.send(batch, topics(1))
    await it.settles()

    assert it.batches == [[{"m": "m"}]]
    assert it.ctx.failures == ["'value' does not fit split: 1 part for 2 names"]
    assert len(it.broker.acknowledged) == 1


@pytest.mark.parametrize(("others", "longest"), [(19, 100_000), (99, 20_000), (499, 4_000)])
@virtual
async def test_a_batch_with_a_text_that_is_long_for_so_many_is_worked_on_in_slices(others, longest):
    it = Sliced(parse(TOPIC, max_length=262_144))
    long, longer = (topics(1, "n/" + "m" * (size - 2)) for size in (longest, longest + 1))

    it.send([*topics(others), *long])
    assert (len(it.batches), it.works) == (1, False)
    it.send([*topics(others), *longer])
    assert (len(it.batches), it.works) == (1, True)
    await it.settles()

    texts = [len(batch[-1]["value"]) for batch in it.batches]
    assert texts == [longest, longest + 1]


@virtual
async def test_so_is_one_that_has_to_be_run_again_unless_it_is_one_message():
    it = Sliced(parse(TOPIC))
    bad = topics(1, "x")

    it.send(bad)
    assert (it.works, len(it.ctx.failures)) == (False, 1)
    it.send([*topics(1), *bad])
    assert (it.works, len(it.ctx.failures)) == (True, 1)
    await it.settles()

    assert it.batches == []
    assert len(it.ctx.failures) == len(it.broker.acknowledged) == 2


@pytest.mark.engine
@virtual
async def test_a_pattern_that_has_several_ways_to_go_on_is_no_part_of_a_loop_and_pauses_after_each_text():
    chain, ctx = SlicedChain(), StubContext(place="transforms[0]")
    ctx.pacing = chain.pacing
    clock = ctx._clock = chain.clock
    it = parse({"regex": r"(?<machine>[a-z]+)@(?<site>[a-z.]+)"}, on_mismatch="skip")
    before, behind = (Map.load({"mappings": [{"type": "constant", **each}]}) for each in CONSTANTS)
    operators = lower([(each, Stage(ctx)) for each in (before, it, behind)], [])
    assert len(operators) == 3
    chain.source.pipe(*operators).subscribe(chain.taken.append)

    chain.send(topics(3, "m@n"), topics(1, "x"), topics(1, "o@n"))
    turns = 0
    while chain.pacing.slices.paused:
        turns += 1
        await clock.sleep(0)

    assert turns >= 3
    assert [[each["machine"] for each in batch] for batch in chain.batches] == [["m"] * 3, ["o"]]
    assert len(chain.broker.acknowledged) == 1


@pytest.mark.engine
@virtual
async def test_if_one_of_its_texts_does_not_fit_nothing_of_the_batch_is_handed_on():
    chain, ctx = SlicedChain(), StubContext(place="transforms[0]")
    ctx.pacing, ctx._clock = chain.pacing, chain.clock
    it = parse({"regex": r"(?<machine>[a-z]+)@(?<site>[a-z.]+)"})
    chain.runs(lower([(it, Stage(ctx))], [])[0])

    chain.send([*topics(5, "m@n"), *topics(1, "x")], topics(1, "m@n"))
    await chain.settles()

    assert [len(batch) for batch in chain.batches] == [1]
    assert ctx.failures == ["'value' does not fit regex"]


@pytest.mark.engine
@virtual
async def test_under_skip_it_goes_on_without_them_and_tells_of_them_in_the_end():
    chain, ctx = SlicedChain(), StubContext(place="transforms[0]")
    ctx.pacing, ctx._clock = chain.pacing, chain.clock
    it = parse({"regex": r"(?<machine>[a-z]+)@(?<site>[a-z.]+)"}, on_error="skip")
    chain.runs(lower([(it, ctx)], [])[0])

    chain.send([*topics(2, "m@n"), *topics(2, "x"), {"value": 5}, *topics(1, "m@o")])
    assert not ctx.failures
    await chain.settles()
    chain.send(topics(1, "m@n"), topics(1, "x"))
    await chain.settles()

    assert [[each["site"] for each in batch] for batch in chain.batches] == [["n", "n", "o"], ["n"]]
    assert ctx.lost == {
        "'value' does not fit regex": 3,
        "field 'value' is a number: expected a string": 1,
    }
    assert (len(ctx.failures), len(chain.broker.acknowledged)) == (3, 1)


@pytest.mark.engine
@virtual
async def test_what_is_given_up_tells_of_nothing_and_keeps_nothing():
    ctx = StubContext(clock=Hurrying())
    it = OneByOne(parse({"regex": "(?<a>a)b"}, on_error="skip").step(ctx), ctx.clock, ctx.lose)
    message = {"value": "x"}

    paused = it.start([message, message], 0)
    assert len(paused.failing["'value' does not fit regex"][1]) == 1
    paused.close()

    assert (paused.resume(0), paused.failing, ctx.failures) == ([[]], {}, [])


@pytest.mark.parametrize("at", [0, SLOW_BATCH])
@virtual
async def test_under_skip_a_large_batch_goes_on_without_what_does_not_fit(at):
    it, batch = Sliced(parse(TOPIC, on_error="skip"), COPY), topics(SLOW_BATCH + 1)
    batch[at] = {"value": "x"}

    it.send(batch, topics(1))
    await it.settles()

    assert [len(each) for each in it.batches] == [SLOW_BATCH, 1]
    assert it.ctx.lost == {"'value' does not fit split: 1 part for 2 names": 1}


@pytest.mark.parametrize("skips", [0, 1])
@virtual
async def test_under_skip_a_text_that_is_long_for_its_batch_has_it_worked_on_in_slices(skips):
    it = Sliced(parse(TOPIC, max_length=262_144, on_error="skip"))
    longest = 262_144

    it.send([*topics(19), *topics(skips, "x"), *topics(1, "n/" + "m" * (longest - 2))])
    assert (len(it.batches), it.works) == (0, True)
    await it.settles()

    assert [len(each) for each in it.batches] == [20]
    assert it.ctx.lost.total() == skips


# --- no turn is long

ACCESS = (
    '203.0.113.7 - - [22/Nov/2026:12:00:07 +0000] "GET /api/items/7?q=a HTTP/1.1" 200 512 '
    '"https://shop.example/list" "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0"'
)
HEAD = ACCESS[: ACCESS.index("GET")]
PAIR = {"between": " "}
NAMES = [f"n{n}" for n in range(1000)]
HOSTILE = {
    "logfmt, at once": ({"preset": "logfmt", "as": "x"}, "a=b " * 50, 500),
    "pairs, at once": ({"pairs": PAIR, "as": "x"}, "a=1 " * 49 + "a=1", 500),
    "cells, at once": ({"csv": {"columns": NAMES[:20]}}, "," * 1_000, 500),
    "types, at once": (
        {"csv": {"columns": NAMES}, "types": dict.fromkeys(NAMES, "integer")},
        "1," * 99,
        500,
    ),
    "types, the last one does not fit": (
        {"csv": {"columns": NAMES[:99]}, "types": dict.fromkeys(NAMES[:99], "integer")},
        "1," * 98 + "x",
        500,
    ),
    "pairs, the last one does not fit": (
        {"pairs": PAIR, "as": "x", "types": {"b": "integer"}},
        "a=1 " * 49 + "b=x",
        500,
    ),
    "many lines": ({"preset": "combined"}, ACCESS, 100_000),
    "long requests": ({"preset": "combined"}, HEAD + "\\a" * 32_000, 200),
    "quotes": ({"csv": {"columns": ["a"]}}, '"' * 65_536, 200),
    "cells": ({"csv": {"columns": NAMES}}, "," * 65_536, 200),
    "names": ({"split": {"by": "/", "into": NAMES}}, "/" * 65_536, 200),
    "pairs": ({"pairs": PAIR, "as": "x"}, " ".join(f"{n}=1" for n in range(1000)), 200),
    "logfmt": ({"preset": "logfmt", "as": "x"}, "a=b " * 16_000, 200),
    "logfmt, escapes": ({"preset": "logfmt", "as": "x"}, 'a="' + "\\n" * 32_000 + '"', 200),
    "elements": ({"preset": "syslog"}, "<1>1 - - - - - " + "[a]" * 20_000, 200),
    "parameters": ({"preset": "syslog"}, "<1>1 - - - - - [a" + ' b="\\""' * 900 + "]", 200),
    "one pass": ({"regex": r"^(?<a>[^ ]+) (?<b>[^ ]+)$"}, "a" * 65_535, 200),
    "groups": ({"regex": "^" + "".join(f"(?<n{n}>[a-z])" for n in range(100))}, "x" * 100, 500),
    "no tag": ({"preset": "syslog"}, "Oct 11 00:00:00 h " + "x[" * 32_000, 200),
}


@pytest.mark.long
@pytest.mark.timed
@pytest.mark.engine
@pytest.mark.parametrize("regex", ["(a+)+$", "[ab]*a[ab]{30}$", "(?<b>.*).*=.*", "(?<b>[^x]+)+y"])
def test_no_turn_is_long_with_a_pattern_that_has_several_ways_to_go_on(regex):
    transform = Parse.load({"from": "value", "regex": f"(?<a>{regex})", "on_mismatch": "keep"})
    longest = transform.form.longest
    batch = [{"value": ("ab" * longest)[: min(longest, 65_536) - 1] + "!"} for _ in range(50)]

    def seconds():
        return asyncio.run(longest_turn(transform, batch))

    assert shortest(seconds, LONGEST, times=3) < LONGEST * slowness()


@pytest.mark.long
@pytest.mark.timed
@pytest.mark.parametrize("bad", [1, 20])
@pytest.mark.parametrize("count", [100, 125, 250, 500])
def test_no_turn_is_long_where_the_last_ones_of_a_batch_fail(count, bad):
    form, text, _ = HOSTILE["types, the last one does not fit"]
    fits, transform = text[:-1] + "1", Parse.load({"from": "value", **form, "on_error": "skip"})
    batch = [*topics(count - bad, fits), *topics(bad, text)]

    def seconds():
        return asyncio.run(longest_turn(transform, batch))

    assert shortest(seconds, LONGEST, times=3) < LONGEST * slowness()


@pytest.mark.long
@pytest.mark.timed
@pytest.mark.parametrize("policy", ["error", "keep", "lost"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_no_turn_is_long(kind, policy):
    form, text, count = HOSTILE[kind]
    if "regex" in form:
        pytest.importorskip("rhai")
    options = {"on_error": "skip"} if policy == "lost" else {"on_mismatch": policy}
    transform = Parse.load({"from": "value", **form, **options})
    batch = [{"value": text} for _ in range(count)]
    gc.collect()
    gc.freeze()

    def seconds():
        return asyncio.run(longest_turn(transform, batch))

    assert shortest(seconds, LONGEST, times=3) < LONGEST * slowness()
