"""Steps as operators: what is handed on, what is reported, and when the debts are settled."""

import asyncio

import pytest
from reactivex.subject import Subject

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed
from headrace.compiler.lowering.lifting import awaiting, fused, per_batch
from tests.marbles import Broker
from tests.virtual import virtual


class Chain:
    """One operator between a source and an end that holds the deliveries until it is told."""

    def __init__(self):
        self.failures = []
        self.taken = []
        self.ended = []
        self.broker = Broker()
        self.source = Subject()

    def report(self, cause):
        self.failures.append(str(cause))

    def runs(self, operator):
        """Subscribe; what ends the subscription is returned."""
        return self.source.pipe(operator).subscribe(
            self.taken.append, self.ended.append, lambda: self.ended.append("completed")
        )

    def send(self, *batches):
        for batch in batches:
            self.source.on_next(self.broker.deliver(batch))

    @property
    def batches(self):
        return [delivery.batch for delivery in self.taken]

    @property
    def owed(self):
        return self.broker.window.used


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
            return fused(lambda batch: batch, [(refusing, chain.report)])
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


def test_what_the_loop_gives_is_handed_on_and_no_plain_step_is_asked(chain):
    chain.runs(fused(lambda batch: batch[1:], [(never, chain.report)]))

    chain.send([1, 2], [3])

    assert chain.batches == [[2]]
    assert (chain.owed, chain.broker.acknowledged) == (1, [[3]])


def test_when_the_loop_raises_the_plain_steps_decide(chain):
    plain = [lambda batch: [[each + 1 for each in batch]], lambda batch: [batch[:1]]]
    chain.runs(fused(never, [(step, chain.report) for step in plain]))

    chain.send([1, 2], [5])

    assert chain.batches == [[2], [6]]
    assert chain.failures == []


def test_what_fails_is_reported_under_the_step_that_failed(chain):
    told = []

    def reporting(component):
        return lambda cause: told.append((component, str(cause)))

    steps = [lambda batch: [batch], refusing, never]
    chain.runs(fused(never, [(step, reporting(n)) for n, step in enumerate(steps)]))

    chain.send(["bad"], ["bad", 1])

    assert told == [(1, "1 messages failed"), (1, "2 messages failed")]
    assert chain.batches == []
    assert (chain.owed, chain.broker.acknowledged) == (0, [["bad"], ["bad", 1]])


@pytest.mark.parametrize("nothing", [[], [[]]])
def test_what_a_plain_step_drops_reaches_no_later_one(chain, nothing):
    plain = [(lambda batch: nothing, chain.report), (never, chain.report)]
    chain.runs(fused(never, plain))

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
