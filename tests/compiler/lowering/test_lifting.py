"""Steps as operators: what is handed on, what is reported, and when the debts are settled."""

import asyncio

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed
from headrace.compiler.lowering.lifting import awaiting, fused, pausing, per_batch
from headrace.compiler.lowering.lines import SHORTEST_SECONDS, SLICE_SECONDS, Pacing, Slices
from tests.compiler.lowering.chains import Chain
from tests.virtual import virtual


@pytest.fixture
def chain():
    return Chain()


def refusing(batch):
    """Return the batch, unless it is to fail."""
    if "bad" in batch:
        raise BatchFailed(f"{len(batch)} messages failed")
    return [batch]


# --- a step


def test_a_batch_is_handed_on_and_settled_by_whoever_takes_it(chain):
    chain.runs(per_batch(lambda batch: [[*batch, 9]], chain.report))

    chain.send([1], [2])
    chain.taken[1].done()

    assert chain.batches == [[1, 9], [2, 9]]
    assert chain.owed == 1
    assert chain.broker.acknowledged == [[2]]


def test_what_a_step_splits_is_settled_with_its_last_part(chain):
    chain.runs(per_batch(lambda batch: [[each] for each in batch], chain.report))

    chain.send([1, 2, 3])
    assert chain.batches == [[1], [2], [3]]

    for part in chain.taken[1:]:
        part.done()
    assert (chain.owed, chain.broker.acknowledged) == (1, [])
    chain.taken[0].done()
    assert (chain.owed, chain.broker.acknowledged) == (0, [[1, 2, 3]])


@pytest.mark.parametrize("nothing", [[], [[]], [[], []]])
def test_a_batch_of_which_nothing_is_left_is_settled_at_once(chain, nothing):
    chain.runs(per_batch(lambda batch: nothing, chain.report))

    chain.send([1])

    assert chain.batches == []
    assert (chain.owed, chain.broker.acknowledged) == (0, [[1]])


def test_no_empty_batch_is_handed_on(chain):
    chain.runs(per_batch(lambda batch: [[], [1], [], [2]], chain.report))

    chain.send(["x"])
    for part in chain.taken:
        part.done()

    assert chain.batches == [[1], [2]]
    assert chain.owed == 0


def test_a_failing_batch_is_reported_and_settled_and_the_next_goes_on(chain):
    chain.runs(per_batch(refusing, chain.report))

    chain.send([1], ["bad", 2], [3])

    assert chain.batches == [[1], [3]]
    assert chain.failures == ["2 messages failed"]
    assert chain.owed == 2
    assert chain.ended == []


@pytest.mark.parametrize("lift", ["per_batch", "fused"])
def test_completion_and_an_error_pass_and_disposal_lets_go_of_the_source(lift):
    def operator(chain):
        if lift == "fused":
            return small(lambda batch: batch, [(refusing, chain.report)])
        return per_batch(refusing, chain.report)

    completed, failed, disposed = Chain(), Chain(), Chain()
    for each in (completed, failed):
        each.runs(operator(each))
    subscription = disposed.runs(operator(disposed))

    completed.source.on_completed()
    failed.source.on_error(OSError("gone"))
    subscription.dispose()

    assert completed.ended == ["completed"]
    assert [str(error) for error in failed.ended] == ["gone"]
    assert (disposed.ended, disposed.source.observers) == ([], [])


# --- a generated loop


def never(batch):
    raise AssertionError("a plain step was asked")


def small(loop, plain):
    """Return the operator for batches that are not large: it asks for no time."""
    return fused(loop, plain, Pacing(None, Slices()), never)


def test_what_the_loop_gives_is_handed_on_and_no_plain_step_is_asked(chain):
    chain.runs(small(lambda batch: batch[1:], [(never, chain.report)]))

    chain.send([1, 2], [3])

    assert chain.batches == [[2]]
    assert (chain.owed, chain.broker.acknowledged) == (1, [[3]])


def test_when_the_loop_raises_the_plain_steps_decide(chain):
    plain = [lambda batch: [[each + 1 for each in batch]], lambda batch: [batch[:1]]]
    chain.runs(small(never, [(step, chain.report) for step in plain]))

    chain.send([1, 2], [5])

    assert chain.batches == [[2], [6]]
    assert chain.failures == []


def test_what_fails_is_reported_under_the_step_that_failed(chain):
    told = []

    def reporting(component):
        return lambda cause: told.append((component, str(cause)))

    steps = [lambda batch: [batch], refusing, never]
    chain.runs(small(never, [(step, reporting(n)) for n, step in enumerate(steps)]))

    chain.send(["bad"], ["bad", 1])

    assert told == [(1, "1 messages failed"), (1, "2 messages failed")]
    assert chain.batches == []
    assert (chain.owed, chain.broker.acknowledged) == (0, [["bad"], ["bad", 1]])


@pytest.mark.parametrize("nothing", [[], [[]]])
def test_what_a_plain_step_drops_reaches_no_later_one(chain, nothing):
    plain = [(lambda batch: nothing, chain.report), (never, chain.report)]
    chain.runs(small(never, plain))

    chain.send([1])

    assert (chain.batches, chain.failures, chain.owed) == ([], [], 0)


# --- a step that waits


class Waiting:
    """Takes as many seconds as the first message says; keeps when it began and ended."""

    def __init__(self):
        self.clock = Clock(asyncio.get_running_loop())
        self.times = []

    async def __call__(self, batch):
        began = self.clock.monotonic()
        await self.clock.sleep(batch[0])
        self.times.append((began, self.clock.monotonic()))
        return refusing(batch)


@virtual
async def test_one_batch_is_awaited_at_a_time_and_all_in_order(chain):
    step = Waiting()
    started = step.clock.monotonic()
    chain.runs(awaiting(step, chain.report))

    chain.send([3], [1], [2])
    await step.clock.sleep(10)
    chain.send([1])
    await step.clock.sleep(10)

    assert chain.batches == [[3], [1], [2], [1]]
    assert [(began - started, ended - started) for began, ended in step.times] == [
        (0, 3),
        (3, 4),
        (4, 6),
        (10, 11),
    ]


@virtual
async def test_a_failing_batch_is_reported_and_the_next_is_awaited(chain):
    step = Waiting()
    chain.runs(awaiting(step, chain.report))

    chain.send([1, "bad"], [2])
    await step.clock.sleep(10)

    assert chain.batches == [[2]]
    assert chain.failures == ["2 messages failed"]
    assert (chain.owed, chain.broker.acknowledged) == (1, [[1, "bad"]])


@virtual
async def test_completion_waits_for_what_is_still_to_be_done(chain):
    step = Waiting()
    chain.runs(awaiting(step, chain.report))

    chain.send([3], [3])
    chain.source.on_completed()
    await step.clock.sleep(5)
    assert (chain.batches, chain.ended) == ([[3]], [])
    await step.clock.sleep(5)
    assert (chain.batches, chain.ended) == ([[3], [3]], ["completed"])


@virtual
async def test_completion_passes_at_once_when_nothing_is_left(chain):
    step = Waiting()
    chain.runs(awaiting(step, chain.report))

    chain.send([1])
    await step.clock.sleep(2)
    chain.source.on_completed()

    assert chain.ended == ["completed"]


@virtual
async def test_an_error_passes_at_once_and_ends_what_is_running(chain):
    step = Waiting()
    chain.runs(awaiting(step, chain.report))

    chain.send([3])
    await step.clock.sleep(1)
    chain.source.on_error(OSError("gone"))
    await step.clock.sleep(10)

    assert [str(error) for error in chain.ended] == ["gone"]
    assert (chain.batches, step.times) == ([], [])


@virtual
async def test_disposal_ends_the_running_step_and_starts_no_other(chain):
    step = Waiting()
    subscription = chain.runs(awaiting(step, chain.report))

    chain.send([3], [1])
    await step.clock.sleep(1)
    subscription.dispose()
    await step.clock.sleep(10)

    assert (chain.batches, chain.failures, chain.ended, step.times) == ([], [], [], [])
    # Nothing was acknowledged: the broker sends it again.
    assert chain.broker.acknowledged == []
    assert chain.source.observers == []


@virtual
async def test_what_breaks_behind_a_step_that_waits_ends_the_stream():
    chain = Chain()

    def breaks(delivery):
        raise ZeroDivisionError("behind it")

    chain.source.pipe(awaiting(Waiting(), chain.report)).subscribe(breaks, chain.ended.append)
    chain.send([1], [1])
    await Clock(asyncio.get_running_loop()).sleep(10)

    assert [str(error) for error in chain.ended] == ["behind it"]
    assert chain.failures == []


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
        self.slices = Slices()
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
    chains, everybody = [Chain() for _ in range(5)], Slices()
    for number, each in enumerate(chains):
        step.slices = Slices(everybody)
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
    chains, everybody = [Chain() for _ in range(4)], Slices()
    subscriptions = []
    for each in chains:
        step.slices = Slices(everybody)
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
    everybody, step = Slices(), Long()
    chains, each = [Chain() for _ in range(40)], Slices(everybody)
    step.slices = each

    assert each.seconds == SLICE_SECONDS
    for chain in chains[:4]:
        chain.runs(step.operator(chain))
        chain.send([1])
    assert (each.seconds, Slices(everybody).seconds) == (SLICE_SECONDS / 4, SLICE_SECONDS / 4)
    for chain in chains[4:]:
        chain.runs(step.operator(chain))
        chain.send([1])
    assert each.seconds == SHORTEST_SECONDS
    await step.clock.sleep(1)

    assert (each.paused, everybody.paused) == (0, 0)
    assert all(chain.batches == [[1]] for chain in chains)
