"""A step that may pause: slices, turns, and those that wait behind it."""

import asyncio

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.lowering.lifting import pausing
from headrace.compiler.lowering.lines import SHORTEST_SECONDS, SLICE_SECONDS, Pacing, SliceShare
from tests.compiler.lowering.chains import Chain
from tests.compiler.lowering.lifted import refusing
from tests.virtual import virtual

# --- a step that may pause


class Begun:
    """A batch that takes as many slices more as its first message says."""

    def __init__(self, batch, log):
        self.batch, self.left, self.log = batch, batch[0], log
        self.closed = 0

    def resume(self, seconds):
        self.left -= 1
        self.log.append((self.batch[0], seconds))
        return None if self.left else refusing(self.batch)

    def close(self):
        self.closed += 1


class Long:
    """Is over at once for a batch that begins with 0; keeps who worked, and for how long."""

    def __init__(self):
        self.clock = Clock(asyncio.get_running_loop())
        self.slices = SliceShare()
        self.log = []
        self.begun = []

    def __call__(self, batch, seconds):
        self.log.append((batch[0], seconds))
        if not batch[0]:
            return refusing(batch)
        self.begun.append(Begun(batch, self.log))
        return self.begun[-1]

    def operator(self, chain):
        return pausing(self, chain.report, Pacing(self.clock, self.slices))


@virtual
async def test_what_needs_no_pause_is_handed_on_at_once_and_makes_no_task(chain):
    step = Long()
    chain.runs(step.operator(chain))

    chain.send([0, 1], [0, "bad"], [0, 2])

    assert chain.batches == [[0, 1], [0, 2]]
    assert chain.failures == ["2 messages failed"]
    assert chain.owed == 2
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert step.log == [(0, SLICE_SECONDS)] * 3


@virtual
async def test_everybody_has_a_turn_between_two_slices_and_no_time_passes(chain):
    step = Long()
    chain.runs(step.operator(chain))
    loop = asyncio.get_running_loop()

    def turn():
        step.log.append("turn")
        if not chain.batches:
            loop.call_soon(turn)

    began = step.clock.monotonic()
    chain.send([3])
    loop.call_soon(turn)
    while not chain.batches:
        await step.clock.sleep(0)

    slice = (3, SLICE_SECONDS)
    assert step.log[:8] == [slice, "turn", slice, "turn", slice, "turn", slice, "turn"]
    assert step.clock.monotonic() == began


@virtual
async def test_what_comes_during_a_pause_waits_and_all_stays_in_order(chain):
    step = Long()
    chain.runs(step.operator(chain))

    chain.send([2], [0, 1], [1], [0, 2])
    assert (chain.batches, chain.owed) == ([], 4)
    await step.clock.sleep(1)
    chain.send([0, 3])

    assert chain.batches == [[2], [0, 1], [1], [0, 2], [0, 3]]
    assert chain.failures == []


@virtual
async def test_many_that_are_paused_have_one_slice_in_each_turn_and_take_turns(chain):
    step = Long()
    chains, everybody = [Chain() for _ in range(5)], SliceShare()
    for number, each in enumerate(chains):
        step.slices = SliceShare(everybody)
        each.runs(step.operator(each))
        each.send([3, number])
    step.log.clear()
    loop = asyncio.get_running_loop()

    def turn():
        step.log.append("turn")
        if not all(each.batches for each in chains):
            loop.call_soon(turn)

    turn()
    await step.clock.sleep(1)

    assert [each.batches for each in chains] == [[[3, number]] for number in range(5)]
    slices = [entry for entry in step.log if entry != "turn"]
    assert slices == [(3, SLICE_SECONDS)] * 15
    text = "".join("t" if entry == "turn" else "s" for entry in step.log)
    assert "ss" not in text


@virtual
async def test_one_that_is_given_up_while_it_waits_for_its_turn_holds_up_nobody(chain):
    step = Long()
    chains, everybody = [Chain() for _ in range(4)], SliceShare()
    subscriptions = []
    for each in chains:
        step.slices = SliceShare(everybody)
        subscriptions.append(each.runs(step.operator(each)))
        each.send([3])
    for turns, gone in ((0, 1), (2, 2)):
        for _ in range(turns):
            await step.clock.sleep(0)
        subscriptions[gone].dispose()
    await step.clock.sleep(1)

    assert [each.batches for each in chains] == [[[3]], [], [], [[3]]]
    assert everybody.paused == 0


class Working(Clock):
    """A clock that goes on when somebody says that he has worked."""

    def __init__(self):
        super().__init__(asyncio.get_running_loop())
        self.worked = 0.0
        self.turns = []
        self.monotonic = lambda: self.worked

    async def sleep(self, seconds):
        self.turns.append(round(self.worked, 6))
        await super().sleep(seconds)


@virtual
async def test_what_waited_is_worked_off_a_slice_at_a_time(chain):
    step = Long()
    step.clock = Working()

    def works(batch, seconds):
        step.clock.worked += 0.0005
        return step(batch, seconds)

    chain.runs(pausing(works, chain.report, Pacing(step.clock, step.slices)))
    chain.send([1], *[[0]] * 9)
    for _ in range(10):
        await asyncio.sleep(0)

    assert len(chain.batches) == 10
    # Each works for half a millisecond: four of them are a slice, and the last one is told its rest.
    assert step.clock.turns == [0.0005, 0.0025, 0.0045]
    assert [round(seconds, 6) for _, seconds in step.log[2:7]] == [
        SLICE_SECONDS,
        0.0015,
        0.001,
        0.0005,
        SLICE_SECONDS,
    ]


@virtual
async def test_a_batch_that_fails_after_a_pause_is_reported_and_those_behind_it_go_on(chain):
    step = Long()
    chain.runs(step.operator(chain))

    chain.send([2, "bad"], [0, "bad"], [1])
    await step.clock.sleep(1)

    assert chain.batches == [[1]]
    assert chain.failures == ["2 messages failed", "2 messages failed"]
    assert chain.owed == 1


@virtual
async def test_completion_waits_for_the_paused_one_and_those_behind_it(chain):
    step = Long()
    chain.runs(step.operator(chain))

    chain.send([2], [0])
    chain.source.on_completed()
    assert chain.ended == []
    await step.clock.sleep(1)

    assert (chain.batches, chain.ended) == ([[2], [0]], ["completed"])


@virtual
async def test_completion_passes_at_once_where_nothing_is_paused(chain):
    step = Long()
    chain.runs(step.operator(chain))

    chain.send([0])
    chain.source.on_completed()

    assert (chain.batches, chain.ended) == ([[0]], ["completed"])


@pytest.mark.parametrize("turns", [0, 2])
@virtual
async def test_disposal_closes_the_paused_one_and_starts_no_other(chain, turns):
    step = Long()
    subscription = chain.runs(step.operator(chain))

    chain.send([9], [0])
    for _ in range(turns):
        await step.clock.sleep(0)
    subscription.dispose()
    await step.clock.sleep(1)

    assert [each.closed for each in step.begun] == [1]
    assert (chain.batches, chain.failures, chain.ended) == ([], [], [])
    assert (chain.broker.acknowledged, step.slices.paused) == ([], 0)


@virtual
async def test_an_error_passes_at_once_and_closes_the_paused_one(chain):
    step = Long()
    chain.runs(step.operator(chain))

    chain.send([9])
    chain.source.on_error(OSError("gone"))
    await step.clock.sleep(1)

    assert [str(error) for error in chain.ended] == ["gone"]
    assert [each.closed for each in step.begun] == [1]


@virtual
async def test_what_breaks_behind_a_paused_step_ends_the_stream():
    chain, step = Chain(), Long()

    def breaks(delivery):
        raise ZeroDivisionError("behind it")

    chain.source.pipe(step.operator(chain)).subscribe(breaks, chain.ended.append)
    chain.send([1], [1])
    await step.clock.sleep(1)

    assert [str(error) for error in chain.ended] == ["behind it"]
    assert step.slices.paused == 0


@virtual
async def test_steps_that_are_paused_share_the_slice_and_each_has_its_least():
    everybody, step = SliceShare(), Long()
    chains, each = [Chain() for _ in range(40)], SliceShare(everybody)
    step.slices = each

    assert each.seconds == SLICE_SECONDS
    for chain in chains[:4]:
        chain.runs(step.operator(chain))
        chain.send([1])
    assert (each.seconds, SliceShare(everybody).seconds) == (SLICE_SECONDS / 4, SLICE_SECONDS / 4)
    for chain in chains[4:]:
        chain.runs(step.operator(chain))
        chain.send([1])
    assert each.seconds == SHORTEST_SECONDS
    await step.clock.sleep(1)

    assert (each.paused, everybody.paused) == (0, 0)
    assert all(chain.batches == [[1]] for chain in chains)
