"""A step that waits: one batch at a time, all in order, and none after the end."""

import asyncio

from headrace.compiler.clock import Clock
from headrace.compiler.lowering.lifting import awaiting
from tests.compiler.lowering.chains import Chain
from tests.compiler.lowering.lifted import refusing
from tests.virtual import virtual

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
