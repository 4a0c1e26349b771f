"""Steps as operators: what is handed on, what is reported, and when the debts are settled."""

import pytest

from headrace.compiler.lowering.lifting import fused, per_batch
from headrace.compiler.lowering.lines import Pacing, SliceShare
from tests.compiler.lowering.chains import Chain
from tests.compiler.lowering.lifted import refusing

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
    return fused(loop, plain, Pacing(None, SliceShare()), never)


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
        return lambda cause, _: told.append((component, str(cause)))

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
