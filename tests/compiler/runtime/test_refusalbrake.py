"""Where nothing passes any more, it is hardly the content: nothing is set aside until something does."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.delivery import Batch
from headrace.compiler.edges import Rest
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.compiler.runtime.bisectingsink import BisectingSink
from tests.compiler.runtime.refusing import Refuses, Taking, failed, refusing, telling
from tests.virtual import virtual

EVERYTHING = range(10_000)


def said(most: int, message: int) -> str:
    """Return what is told of the message that is not set aside any more."""
    return f"refused in a row: {most}; nothing more is set aside: {message} is bad"


@pytest.mark.parametrize("refuses", [refusing(EVERYTHING), telling(EVERYTHING)])
@virtual
async def test_as_many_are_refused_as_may_be_and_then_somebody_has_to_act(refuses: Refuses) -> None:
    sink = Taking(refuses)
    it = BisectingSink(sink, 3)

    failure = await failed(it, [*range(10)])

    assert failure.failure == "misconfigured"
    assert str(failure) in (said(3, 3), f"{said(3, 0).rpartition(': ')[0]}: some are bad")
    assert failure.refused == {0: "0 is bad", 1: "1 is bad", 2: "2 is bad"}
    assert [*failure.done] == sink.taken == []


@virtual
async def test_batches_of_one_are_counted_together() -> None:
    it = BisectingSink(Taking(refusing(EVERYTHING)), 3)

    failures = [await failed(it, [n]) for n in range(5)]

    assert [each.failure for each in failures] == ["invalid"] * 3 + ["misconfigured"] * 2
    assert [len(each.refused) for each in failures] == [1, 1, 1, 0, 0]
    assert str(failures[3]) == said(3, 3)


@pytest.mark.parametrize("refuses", [refusing(EVERYTHING), telling(EVERYTHING)])
@virtual
async def test_of_a_large_batch_few_tries_show_that_nothing_passes(refuses: Refuses) -> None:
    sink = Taking(refuses)

    failure = await failed(BisectingSink(sink, 3), [*range(1000)])

    assert (failure.failure, len(failure.refused)) == ("misconfigured", 3)
    assert len(sink.tries) <= 20


class Inline(Taking):
    """Takes what it does not refuse at once."""

    def begin(self, batch: Batch) -> Rest | None:
        self.tries.append(batch)
        if (cause := self._refuses(batch)) is not None:
            raise cause
        self.taken += batch
        return None


@pytest.mark.parametrize("kind", [Taking, Inline])
@virtual
async def test_a_batch_that_passes_begins_the_count_anew(kind: type[Taking]) -> None:
    sink = kind(refusing({1, 3, 5, 7}))
    it = BisectingSink(sink, 2)

    for good in (0, 2, 4, 6):
        await it.write([good, good])
        assert (await failed(it, [good + 1])).failure == "invalid"

    assert [batch for batch in sink.tries if len(batch) == 2] == [[n, n] for n in (0, 2, 4, 6)]


@virtual
async def test_what_is_done_in_an_outage_begins_the_count_anew() -> None:
    def refuses(batch: Batch) -> Exception | None:
        return Unreachable("away", done=[0]) if batch == [0, 1] else refusing(EVERYTHING)(batch)

    it = BisectingSink(Taking(refuses), 2)

    failures = [await failed(it, batch) for batch in ([7], [0, 1], [8], [9])]

    assert [each.failure for each in failures] == [*("invalid", "unavailable"), *["invalid"] * 2]


@virtual
async def test_what_passes_in_between_begins_the_count_anew() -> None:
    sink = Taking(refusing({0, 1, 3, 4, 6, 7}))
    it = BisectingSink(sink, 2)

    failures = [await failed(it, batch) for batch in ([0, 1, 2, 3], [4, 5, 6, 7, 8])]

    assert [each.failure for each in failures] == ["invalid"] * 2
    assert sink.taken == [2, 5, 8]


@virtual
async def test_more_than_that_by_index_are_refused_where_the_others_pass() -> None:
    bad = range(0, 100, 2)
    sink = Taking(telling(bad))

    failure = await failed(BisectingSink(sink, 3), [*range(100)])

    assert (failure.failure, [*failure.refused]) == ("invalid", [*bad])
    assert len(sink.tries) == 2


@virtual
async def test_while_it_is_on_only_the_first_message_is_tried() -> None:
    sink = Taking(refusing(EVERYTHING))
    it = BisectingSink(sink, 2)
    await failed(it, [0, 1, 2, 3])
    sink.tries.clear()

    failures = [await failed(it, [7, 8, 9]) for _ in range(3)]

    assert sink.tries == [[7]] * 3
    assert {(str(each), each.failure) for each in failures} == {(said(2, 7), "misconfigured")}
    assert {(each.done, len(each.refused)) for each in map(told, failures)} == {((), 0)}


def told(failure: BatchFailed) -> BatchFailed:
    """Return a failure whose indices can be compared."""
    failure.done = tuple(failure.done)
    return failure


@virtual
async def test_when_that_passes_it_is_off_and_the_rest_is_written_as_ever() -> None:
    bad = {*range(10)}
    sink = Taking(refusing(bad))
    it = BisectingSink(sink, 2)
    await failed(it, [0, 1, 2, 3])
    bad -= {2, 3}
    sink.tries.clear()

    await it.write([2, 3])
    failure = await failed(it, [20, 4, 21])

    assert sink.tries[:2] == [[2], [3]]
    assert sink.taken == [2, 3, 20, 21]
    assert (failure.failure, [*failure.refused]) == ("invalid", [1])


@virtual
async def test_as_many_as_may_be_at_the_end_of_a_batch_are_refused_and_the_next_is_tried() -> None:
    sink = Taking(refusing({0, 1}))
    it = BisectingSink(sink, 2)

    assert (await failed(it, [0, 1])).failure == "invalid"
    await it.write([2, 3])

    assert sink.taken == [2, 3]


@virtual
async def test_a_batch_of_which_nobody_says_who_is_at_fault_counts_as_one() -> None:
    sink = Taking(refusing(EVERYTHING, took_nothing=False))
    it = BisectingSink(sink, 2)

    failures = [await failed(it, [*range(5)]) for _ in range(3)]

    assert [each.failure for each in failures] == ["invalid", "invalid", "misconfigured"]
    assert sink.tries == [[*range(5)]] * 2 + [[0]]


@virtual
async def test_what_passes_in_one_batch_lets_another_one_go_on_that_is_under_way() -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    class Slow(Taking):
        async def write(self, batch: Batch) -> None:
            if batch == [5]:
                begun.set()
                await goes_on.wait()
            await super().write(batch)

    sink = Slow(refusing({0, 1, 5}), at_once=2)
    it = BisectingSink(sink, 2)
    slow = asyncio.ensure_future(failed(it, [5]))
    await begun.wait()
    await failed(it, [0, 1])
    await it.write([2])
    goes_on.set()

    failure = await slow
    assert (failure.failure, failure.refused) == ("invalid", {0: "5 is bad"})


@virtual
async def test_what_is_refused_in_one_batch_puts_the_brake_on_for_another_one() -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    class Slow(Taking):
        async def write(self, batch: Batch) -> None:
            if 5 in batch and len(batch) == 4:
                begun.set()
                await goes_on.wait()
            await super().write(batch)

    sink = Slow(telling(EVERYTHING), at_once=2)
    it = BisectingSink(sink, 2)
    slow = asyncio.ensure_future(failed(it, [5, 6, 7, 8]))
    await begun.wait()
    first = await failed(it, [0, 1])
    goes_on.set()
    second = await slow

    assert (first.failure, len(first.refused)) == ("invalid", 2)
    assert (second.failure, second.refused) == ("misconfigured", {})
