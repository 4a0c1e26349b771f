"""Large batches before an output or a reader that wants some of the messages: in slices, and in order."""

import asyncio
from functools import partial
from time import thread_time

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.conditions.comparing import LONGEST_FOLDED
from headrace.compiler.component.selection import Selection
from headrace.compiler.delivery import LARGE_BATCH, Delivery
from headrace.compiler.edges import INBOX_BATCHES, INBOX_TAKEN, AwaitingSink
from headrace.compiler.errors import Ended
from headrace.compiler.largejson import LargeList
from headrace.compiler.lowering.chain import lower, plainly
from headrace.compiler.runtime.inbox import Inbox, Peek
from headrace.compiler.runtime.outputs import writer
from headrace.compiler.runtime.selecting import Selecting
from tests.compiler.component.conditions.asked import conditions, numeric
from tests.compiler.lowering.chains import Hurrying
from tests.doubles import StubContext
from tests.marbles import Broker
from tests.slowness import slowness
from tests.stand_ins import Kept
from tests.virtual import virtual

HOT = conditions(numeric("at_least", 80, "temp"))
LARGE = [{"temp": each % 100} for each in range(2 * LARGE_BATCH)]
WANTED = [each for each in LARGE if each["temp"] >= 80]
COLD, SMALL, LAST = [{"temp": 1}], [{"temp": 99}], [{"temp": 98}]
NOT_THROUGH = "stopped before everything that was accepted went through"


class Way:
    """The way to somebody who wants what is hot, on a clock on which every slice is over at once."""

    def __init__(self, lowering=lower, when=HOT, clock=None):
        self.ctx = StubContext(clock=clock or Hurrying())
        self.broker = Broker()
        self.selects = partial(
            Selecting, lowering([(Selection(when=when), self.ctx)], []), self.ctx.pacing.slices
        )

    @property
    def owed(self):
        return self.broker.window.used

    def deliver(self, *batches):
        return [self.broker.deliver(each) for each in batches]

    async def settles(self):
        while self.ctx.pacing.slices.paused:
            await self.ctx.clock.sleep(0)


class Hanging(AwaitingSink):
    """Never done with the first batch."""

    def __init__(self):
        self.batches = []

    async def write(self, batch):
        self.batches.append(batch)
        await asyncio.get_running_loop().create_future()


async def turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


def written(way, sink):
    made = writer(sink, way.ctx)
    made.select(way.selects, way.ctx.failures.append)
    return made, made.entrance()


def inbox(way, kind=Inbox):
    return kind("up", lambda _: None, lambda _: None, way.selects)


async def read(box):
    return [batch async for arrivals in box.read() for batch, _ in arrivals]


@pytest.mark.parametrize("lowering", [lower, plainly])
@virtual
async def test_what_comes_meanwhile_waits_behind_a_large_batch_its_debts_unpaid(lowering):
    way, sink = Way(lowering), Kept()
    _, take = written(way, sink)

    for each in way.deliver(SMALL, LARGE, LAST, COLD):
        take(each)
    early = way.broker.acknowledged.copy()
    await turns()

    assert (sink.batches, early, way.owed) == ([SMALL], [SMALL], 3)
    await way.settles()
    assert sink.batches == [SMALL, WANTED, LAST]
    assert (way.broker.acknowledged, way.owed) == ([SMALL, LARGE, LAST, COLD], 0)


@virtual
async def test_a_large_batch_of_which_nothing_is_wanted_is_done_and_never_written():
    way, sink = Way(), Kept()
    _, take = written(way, sink)

    take(*way.deliver([{"temp": 1}] * len(LARGE)))
    await way.settles()

    assert (sink.batches, way.owed, len(way.broker.acknowledged)) == ([], 0, 1)


@virtual
async def test_one_way_that_is_looked_along_keeps_no_other_waiting():
    slow, quick, sink = Way(), Way(), Kept()
    _, take_slowly = written(slow, Kept())
    _, take = written(quick, sink)

    take_slowly(*slow.deliver(LARGE))
    take(*quick.deliver(SMALL))

    assert sink.batches == [SMALL]
    await slow.settles()


@virtual
async def test_others_who_hold_the_delivery_see_nothing_of_it():
    way, sink = Way(), Kept()
    _, take = written(way, sink)
    [delivery] = way.deliver([*SMALL, *COLD])
    delivery.share(2)

    take(delivery)

    assert (sink.batches, delivery.batch, way.owed) == ([SMALL], [*SMALL, *COLD], 1)
    delivery.done()
    assert way.owed == 0


@virtual
async def test_an_output_drains_when_all_is_looked_at_and_written():
    way, sink = Way(), Kept()
    made, take = written(way, sink)

    for each in way.deliver(LARGE, LAST):
        take(each)
    waiting = made.waiting()
    await made.drain()

    assert (waiting, made.waiting()) == (2, 0)
    assert sink.batches == [WANTED, LAST]
    await made.drain()  # as often as somebody likes


@virtual
async def test_what_an_output_has_not_looked_at_in_time_is_lost_and_counted():
    way, sink = Way(), Hanging()
    made, take = written(way, sink)

    for each in way.deliver(SMALL, LARGE, LAST):
        take(each)
    await turns()
    lost = made.abandon()
    await turns(1000)

    assert lost == len(SMALL) + len(LARGE) + len(LAST)
    assert sink.batches == [SMALL]
    assert way.ctx.failures == [NOT_THROUGH, NOT_THROUGH, "stopped before everything was written"]
    assert way.broker.acknowledged == []


@virtual
async def test_an_inbox_that_stops_reads_out_what_is_looked_at():
    way = Way()
    box = inbox(way)

    for each in way.deliver(SMALL, LARGE, LAST, COLD):
        box.take(each)
    await turns()
    box.stop()
    [late] = way.deliver(SMALL)
    box.take(late)

    assert await read(box) == [SMALL, WANTED, LAST]
    assert way.owed == 0


@virtual
async def test_an_inbox_that_nobody_reads_any_more_settles_what_is_looked_at_and_counts_it():
    way = Way()
    box = inbox(way)

    for each in way.deliver(SMALL, LARGE, LAST):
        box.take(each)
    await turns()

    assert (box.close(), way.owed) == ([1, 1, 4096], 0)
    await turns(1000)
    assert (box.close(), len(way.broker.acknowledged)) == ([], 3)


@virtual
async def test_a_reader_that_waits_is_woken_by_the_first_that_it_wants():
    way = Way()
    box = inbox(way)
    reading = asyncio.ensure_future(anext(box.read()))
    await turns()

    for each in way.deliver(COLD, LARGE):
        box.take(each)

    assert await reading == [(WANTED, None)]


@virtual
async def test_who_reads_along_holds_up_nobody_and_is_bounded():
    way = Way()
    box = inbox(way, Peek)

    for each in way.deliver(LARGE, *[SMALL] * (2 * INBOX_BATCHES)):
        box.take(each)

    assert way.owed == 0
    await way.settles()
    box.stop()
    came = await read(box)
    assert came == [WANTED, *[SMALL] * (INBOX_BATCHES - 1)]
    assert box.close() == []


@virtual
async def test_a_fault_behind_a_large_batch_ends_what_is_before_it():
    way, broken = Way(), []

    def raising(delivery):
        raise RuntimeError("a fault of ours")

    selecting = way.selects(raising, broken.append)
    selecting.take(*way.deliver(LARGE))
    await selecting.drain()

    assert [str(each) for each in broken] == ["a fault of ours"]


@virtual
async def test_an_input_whose_upstream_cannot_be_settled_ends():
    way = Way()
    box = inbox(way)
    [large] = way.deliver(LARGE)

    def close():
        raise RuntimeError("a fault of ours")

    large.custody.close = close
    box.take(large)
    reading = box.read()
    got = await anext(reading)

    with pytest.raises(Ended, match="nothing can be read any more: a fault of ours"):
        await anext(reading)
    assert (got, len(got) <= INBOX_TAKEN) == ([(WANTED, None)], True)


@pytest.mark.timed
async def test_nobody_waits_long_for_a_look_at_texts_whose_case_is_ignored():
    """Units: seconds of CPU time of this thread, the best of three: others have the machine as well."""
    longest_to_fold = "\u0130" * LONGEST_FOLDED
    message = {"a": longest_to_fold, "b": longest_to_fold}
    base = {"type": "string", "field": "a", "operator": "not_equal_to", "other": "b"}
    longest = []
    for _ in range(3):
        way = Way(
            when=conditions(base | {"ignore_case": True}), clock=Clock(asyncio.get_running_loop())
        )
        selecting = way.selects(lambda delivery: delivery.done(), way.ctx.report)
        batch = LargeList()
        batch += [message] * 256
        spans = []
        selecting.take(Delivery(batch, way.broker.window))
        draining = asyncio.ensure_future(selecting.drain())
        while not draining.done():
            began = thread_time()
            await asyncio.sleep(0)
            spans.append(thread_time() - began)
        assert len(spans) > 1
        longest.append(max(spans))

    assert min(longest) < 0.02 * slowness()
