"""Large batches: worked on in slices, in order with what comes meanwhile, and settled as one."""

import asyncio
from itertools import pairwise

import pytest

from headrace.compiler.delivery import LARGE_BATCH, PART, SLOW_BATCH, Delivery
from headrace.compiler.largejson import DecodedBatch, LargeList
from headrace.compiler.lowering.chain import lower
from headrace.compiler.lowering.lifting import divided, fused, optimistic, per_batch
from headrace.operators.buffer import Buffer
from headrace.operators.filter import Filter
from headrace.operators.map import Map
from headrace.operators.splitter import Splitter
from tests.compiler.lowering.sliced import LARGE, SlicedChain, Stage, at_once, doubling
from tests.doubles import StubContext
from tests.virtual import virtual


@virtual
async def test_others_have_a_turn_after_each_part_and_the_result_is_one_batch():
    chain, log = SlicedChain(), []
    chain.runs(per_batch(at_once, chain.report, chain.pacing, doubling(log)))
    loop = asyncio.get_running_loop()

    def turn():
        log.append("turn")
        if not chain.taken:
            loop.call_soon(turn)

    chain.send(LARGE)
    loop.call_soon(turn)
    await chain.settles()

    assert chain.batches == [[each * 2 for each in LARGE]]
    worked = [at for at, each in enumerate(log) if each != "turn"]
    assert len(worked) == len(LARGE) // PART + 1
    assert all(later - earlier > 1 for earlier, later in pairwise(worked))


@virtual
async def test_a_batch_that_is_not_large_passes_at_once_and_makes_no_task():
    chain = SlicedChain()
    chain.runs(per_batch(at_once, chain.report, chain.pacing, doubling()))

    chain.send(LARGE[:-1], [1])

    assert chain.batches == [[each * 2 for each in LARGE[:-1]], [2]]
    assert asyncio.all_tasks() == {asyncio.current_task()}


@virtual
async def test_what_comes_meanwhile_waits_and_all_stays_in_order():
    chain = SlicedChain()
    chain.runs(per_batch(at_once, chain.report, chain.pacing, doubling()))

    chain.send(LARGE, [1], LARGE, [2])
    assert (chain.batches, chain.broker.window.used) == ([], 4)
    await chain.settles()
    chain.send([3])

    assert [len(batch) for batch in chain.batches] == [len(LARGE), 1, len(LARGE), 1, 1]
    assert [batch[0] for batch in chain.batches if len(batch) == 1] == [2, 4, 6]


@virtual
async def test_one_that_fails_is_reported_once_and_settled_and_the_next_goes_on():
    chain = SlicedChain()
    chain.runs(per_batch(at_once, chain.report, chain.pacing, doubling()))

    chain.send([*LARGE, "bad"], [1], ["bad"])
    await chain.settles()

    assert chain.batches == [[2]]
    assert chain.failures == ["a bad message", "a bad message"]
    assert chain.broker.window.used == 1
    assert len(chain.broker.acknowledged) == 2


@virtual
async def test_the_end_waits_for_the_last_part():
    chain = SlicedChain()
    chain.runs(per_batch(at_once, chain.report, chain.pacing, doubling()))

    chain.send(LARGE)
    chain.source.on_completed()
    assert chain.ended == []
    await chain.settles()

    assert (len(chain.taken), chain.ended) == (1, ["completed"])


@virtual
async def test_disposal_ends_it_and_nothing_is_acknowledged():
    chain, log = SlicedChain(), []
    subscription = chain.runs(per_batch(at_once, chain.report, chain.pacing, doubling(log)))

    chain.send(LARGE, [1])
    while len(log) < 3:
        await chain.clock.sleep(0)
    subscription.dispose()
    begun = len(log)
    for _ in range(20):
        await chain.clock.sleep(0)

    assert (chain.batches, chain.failures, chain.ended) == ([], [], [])
    assert (chain.broker.acknowledged, len(log)) == ([], begun)
    assert chain.pacing.slices.paused == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


@virtual
async def test_what_breaks_behind_it_ends_the_stream():
    chain = SlicedChain()

    def breaks(delivery):
        raise ZeroDivisionError("behind it")

    operator = per_batch(at_once, chain.report, chain.pacing, doubling())
    chain.source.pipe(operator).subscribe(breaks, chain.ended.append)
    chain.send(LARGE)
    await chain.settles()

    assert [str(error) for error in chain.ended] == ["behind it"]
    assert chain.failures == []


@virtual
async def test_the_parts_are_settled_together_whoever_is_last():
    chain = SlicedChain()
    ctx = StubContext(clock=chain.clock)
    chain.runs(Splitter(out_size=1000).operator(ctx))

    chain.send(LARGE)
    while ctx.pacing.slices.paused:
        await chain.clock.sleep(0)
    assert [len(batch) for batch in chain.batches] == [1000, 1000]

    for settled, part in enumerate(chain.taken):
        assert (chain.broker.window.used, chain.broker.acknowledged) == (1, []), settled
        part.done()
    assert (chain.broker.window.used, len(chain.broker.acknowledged)) == (0, 1)


@pytest.mark.parametrize("size", [1, 100, 3000])
@virtual
async def test_a_buffer_takes_a_large_batch_part_after_part_and_hands_on_the_same(size):
    chain = SlicedChain()
    ctx = StubContext(clock=chain.clock)
    chain.runs(Buffer(size=size).operator(ctx))

    chain.send(["first"], LARGE, ["last"])
    while ctx.pacing.slices.paused:
        await chain.clock.sleep(0)

    everything = ["first", *LARGE, "last"]
    whole = len(everything) - len(everything) % size
    assert chain.batches == [everything[at : at + size] for at in range(0, whole, size)]


@virtual
async def test_what_is_divided_comes_in_parts_with_a_turn_between_them():
    chain = SlicedChain()
    chain.runs(divided(lambda source: source, chain.report, chain.pacing))

    chain.send(LARGE, [1])
    await chain.settles()

    assert [each for batch in chain.batches for each in batch] == [*LARGE, 1]
    assert [len(batch) for batch in chain.batches] == [PART] * (len(LARGE) // PART) + [1, 1]


@virtual
async def test_where_the_loop_raises_the_plain_steps_decide_and_own_the_fault():
    chain, told = SlicedChain(), []

    def raises(batch):
        yield None
        raise KeyError("x")

    plain = [
        (doubling(), lambda cause, _: told.append((0, str(cause)))),
        (doubling(), lambda cause, _: told.append((1, str(cause)))),
    ]
    steps = [(at_once, report) for _, report in plain]
    chain.runs(fused(at_once, steps, chain.pacing, optimistic(raises, plain)))

    chain.send(LARGE, [*LARGE, "bad"])
    await chain.settles()

    assert chain.batches == [[each * 4 for each in LARGE]]
    assert told == [(0, "a bad message")]
    assert len(chain.broker.acknowledged) == 1


@virtual
async def test_a_step_without_slices_takes_a_large_batch_at_once():
    chain = SlicedChain()
    chain.runs(per_batch(at_once, chain.report, chain.pacing))

    chain.send(LARGE)

    assert len(chain.batches[0]) == len(LARGE)


@virtual
async def test_a_filter_warns_of_one_message_among_many_and_drops_it():
    chain = SlicedChain()
    ctx = StubContext(clock=chain.clock)
    hot = Filter.load({"Numeric": {"field": "t", "operator": "greater_than", "value": -1}})
    messages = [{"t": each} for each in LARGE]
    messages[1500] = {"t": "no number"}
    chain.runs(hot.operator(ctx))

    chain.send(messages)
    while ctx.pacing.slices.paused:
        await chain.clock.sleep(0)

    assert chain.batches == [messages[:1500] + messages[1501:]]
    assert ctx.warnings == ["dropped a message whose 't' is not a number"]


@virtual
@pytest.mark.parametrize(
    ("kind", "count", "at_once"),
    [
        ("copy", 1, LARGE_BATCH),
        ("copy", 20, LARGE_BATCH),
        ("time", 1, SLOW_BATCH),
        ("time", 20, SLOW_BATCH // 20),
        ("time", SLOW_BATCH + 1, 1),
        ("time", 4_000, 1),  # more than one generated function may hold
    ],
)
async def test_the_more_takes_long_the_smaller_are_the_batches_in_slices(kind, count, at_once):
    chain = SlicedChain()
    ctx = Stage(StubContext(place="transforms[0]", clock=chain.clock))
    ctx.pacing = chain.pacing
    mappings = [{"type": kind, "from": "a", "as": f"b{n}"} for n in range(count)]
    chain.runs(*lower([(Map.load({"mappings": mappings}), ctx)], []))

    chain.send([{"a": 0}] * at_once)
    assert len(chain.batches) == 1
    chain.send([{"a": 0}] * (at_once + 1))
    assert len(chain.batches) == 1
    await chain.settles()

    assert [len(batch) for batch in chain.batches] == [at_once, at_once + 1]


@virtual
async def test_few_messages_of_a_large_text_are_worked_on_in_slices_as_well():
    chain, log = SlicedChain(), []
    chain.runs(per_batch(at_once, chain.report, chain.pacing, doubling(log)))
    few = DecodedBatch(asyncio.get_running_loop())
    few += [1, 2]

    chain.source.on_next(Delivery(few, chain.broker.window))
    assert chain.batches == []
    await chain.settles()

    assert (chain.batches, log) == ([[2, 4]], [1])


@virtual
async def test_what_is_made_of_a_large_batch_lets_go_of_itself():
    chain = SlicedChain()
    ctx = StubContext(clock=chain.clock)
    hot = Filter.load({"Numeric": {"field": "t", "operator": "greater_than", "value": -1}})
    operators = lower([(hot, Stage(ctx))], [])
    chain.runs(lambda source: source.pipe(*operators))

    chain.send([{"t": each} for each in LARGE])
    while ctx.pacing.slices.paused:
        await chain.clock.sleep(0)

    assert type(chain.batches[0]) is LargeList


@pytest.mark.parametrize("size", [100, LARGE_BATCH + 1])
@virtual
async def test_what_a_buffer_releases_lets_go_of_itself_if_it_is_much(size):
    chain = SlicedChain()
    ctx = StubContext(clock=chain.clock)
    chain.runs(Buffer(size=size).operator(ctx))

    for message in range(size):
        chain.send([message])

    assert chain.batches == [[*range(size)]]
    assert type(chain.batches[0]) is (LargeList if size > LARGE_BATCH else list)
