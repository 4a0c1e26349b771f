"""Which messages of a batch a sink refuses is found out, and everything else is written."""

from __future__ import annotations

import asyncio
from math import ceil, log2

import pytest

from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.edges import Rest
from headrace.compiler.errors import BatchFailed, FailureClass, NotWritable, Unreachable
from headrace.compiler.largejson import LargeList
from headrace.compiler.runtime.bisectingsink import BisectingSink
from tests.compiler.runtime.refusing import Taking, failed, refusing, telling
from tests.virtual import virtual


@virtual
async def test_what_is_taken_is_written_once_as_it_came() -> None:
    batch = [1, 2, 3]
    sink = Taking()

    await BisectingSink(sink, 100).write(batch)

    assert sink.tries == [batch]
    assert sink.tries[0] is batch
    assert sink.is_apart


@virtual
async def test_what_a_sink_writes_at_once_is_written_at_once() -> None:
    class Inline(Taking):
        def begin(self, batch: Batch) -> Rest | None:
            self.taken += batch
            return None

    sink = Inline()
    assert BisectingSink(sink, 100).begin([1]) is None
    assert sink.taken == [1]


@virtual
async def test_of_what_is_refused_as_a_whole_halves_are_written_down_to_what_is_at_fault() -> None:
    sink = Taking(refusing({3, 11}))

    failure = await failed(BisectingSink(sink, 100), [*range(16)])

    assert sink.taken == [each for each in range(16) if each not in (3, 11)]  # in order
    assert failure.refused == {3: "3 is bad", 11: "11 is bad"}
    assert [*failure.done] == sink.taken
    assert (str(failure), failure.failure, failure.is_answered) == ("3 is bad", "invalid", True)
    assert len(sink.tries) <= 1 + 2 * 2 * log2(16)


@virtual
async def test_what_is_refused_by_index_is_left_out_and_the_rest_is_written_together() -> None:
    sink = Taking(telling({3, 11}))

    failure = await failed(BisectingSink(sink, 100), [*range(16)])

    assert failure.refused == {3: "3 is bad", 11: "11 is bad"}
    assert sink.tries[1:] == [[each for each in range(16) if each not in (3, 11)]]
    assert sink.taken == sink.tries[1]


@virtual
async def test_what_is_done_of_what_is_refused_is_not_written_again() -> None:
    def one_by_one(batch: Batch) -> Exception | None:
        """Refuse as a sink does that sends one message after the other."""
        for at, each in enumerate(batch):
            if each % 5 == 0:
                return BatchFailed(f"{each} is bad", done=range(at), refused={at: f"{each} is bad"})
        return None

    sink = Taking(one_by_one)

    failure = await failed(BisectingSink(sink, 1), [*range(1, 20)])

    assert len(sink.tries) == 4
    assert sink.taken == [each for each in range(20) if each % 5]
    assert failure.refused == {at: f"{at + 1} is bad" for at in (4, 9, 14)}


@virtual
async def test_a_batch_of_one_is_at_fault_whatever_is_said_of_it() -> None:
    sink = Taking(refusing({1}, took_nothing=False))

    failure = await failed(BisectingSink(sink, 100), [1])

    assert (str(failure), failure.refused) == ("1 is bad", {0: "1 is bad"})
    assert len(sink.tries) == 1


@virtual
async def test_where_halves_could_be_there_twice_the_failure_goes_out_as_it_is() -> None:
    sink = Taking(refusing({3}, took_nothing=False))

    failure = await failed(BisectingSink(sink, 100), [1, 2, 3])

    assert (failure.done, failure.refused) == ((), {})
    assert len(sink.tries) == 1


@virtual
async def test_where_a_half_could_be_there_twice_the_others_are_written_all_the_same() -> None:
    def refuses(batch: Batch) -> Exception | None:
        if len(batch) > 4:
            return BatchFailed("too large", took_nothing=True)
        return BatchFailed("no idea") if 5 in batch else None

    sink = Taking(refuses)

    failure = await failed(BisectingSink(sink, 100), [*range(16)])

    assert sink.taken == [0, 1, 2, 3, *range(8, 16)]
    assert ([*failure.done], failure.refused) == (sink.taken, {})
    assert (str(failure), failure.failure) == ("no idea", "invalid")


@virtual
async def test_a_batch_that_is_only_too_large_is_written_in_parts() -> None:
    sink = Taking(
        lambda batch: BatchFailed("too large", took_nothing=True) if len(batch) > 3 else None
    )

    await BisectingSink(sink, 100).write([*range(20)])

    assert sink.taken == [*range(20)]


@pytest.mark.parametrize("kind", [Unreachable, NotWritable, BatchFailed])
@pytest.mark.parametrize("its_class", ["unavailable", "misconfigured", "unclear"])
@virtual
async def test_another_failure_goes_out_with_what_is_done_and_refused_by_then(
    kind: type[BatchFailed], its_class: FailureClass
) -> None:
    def refuses(batch: Batch) -> Exception | None:
        if batch == [6, 7]:
            return kind("away", its_class, is_answered=True)
        return refusing({1, 7})(batch)

    sink = Taking(refuses)

    failure = await failed(BisectingSink(sink, 100), [*range(8)])

    assert type(failure) is kind
    assert (str(failure), failure.failure, failure.is_answered) == ("away", its_class, True)
    assert [*failure.done] == sink.taken == [0, 2, 3, 4, 5]
    assert failure.refused == {1: "1 is bad"}


@virtual
async def test_a_failure_of_the_whole_that_is_no_refusal_goes_out_as_it_is() -> None:
    cause = Unreachable("away", done=[0])
    sink = Taking(lambda _: cause)

    assert await failed(BisectingSink(sink, 100), [1, 2]) is cause
    assert len(sink.tries) == 1


@virtual
async def test_what_an_outage_says_is_at_fault_counts_under_the_brake() -> None:
    def refuses(batch: Batch) -> Exception | None:
        return Unreachable("away", refused={0: "bad", 1: "bad", 2: "bad"})

    it = BisectingSink(Taking(refuses), 2)

    failure = await failed(it, [1, 2, 3, 4])

    assert (failure.failure, failure.refused) == ("unavailable", {0: "bad", 1: "bad"})
    assert (await failed(it, [3, 4])).refused == {}


@virtual
async def test_what_nobody_foresaw_is_about_the_content_and_nothing_is_tried_twice() -> None:
    sink = Taking(lambda batch: ValueError("odd") if 2 in batch else None)
    it = BisectingSink(sink, 100)

    with pytest.raises(ValueError, match="odd"):
        await it.write([1, 2])
    failure = await failed(it, [2])

    assert failure.refused == {0: "ValueError: odd"}


@virtual
async def test_a_part_of_a_large_batch_is_one_as_well_and_takes_few_tries() -> None:
    large: Batch = LargeList()
    large += range(100_000)
    sink = Taking(refusing({1, 50_000, 99_999}))

    failure = await failed(BisectingSink(sink, 100), large)

    assert [*failure.refused] == [1, 50_000, 99_999]
    assert len(sink.taken) == len(failure.done) == 99_997
    assert all(map(is_large, sink.tries))
    assert len(sink.tries) <= 1 + 3 * 2 * ceil(log2(100_000))


@virtual
async def test_others_have_their_turns_while_half_of_a_large_batch_is_noted() -> None:
    large: Batch = LargeList()
    large += range(20_000)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(others())
    failure = await failed(BisectingSink(Taking(telling(range(0, 20_000, 2))), 100), large)
    beside.cancel()

    assert len(failure.refused) == len(failure.done) == 10_000
    assert turns >= 10


# What was cut off


@virtual
async def test_a_part_that_was_cut_off_is_written_again_as_it_was() -> None:
    cut_off: list[Batch] = []

    def refuses(batch: Batch) -> Exception | None:
        if batch == [6, 7, 8] and not cut_off:
            cut_off.append(batch)
            return BatchFailed("cut off", "unclear")
        return refusing({1, 10})(batch)

    sink = Taking(refuses)
    it = BisectingSink(sink, 100)
    batch = [*range(12)]

    first = await failed(it, batch[:])
    done = {*first.done, *first.refused}
    again = await failed(it, [each for each in batch if each not in done])

    assert first.failure == "unclear"
    assert sum(each is cut_off[0] for each in sink.tries) == 2
    assert sink.taken == [each for each in batch if each not in (1, 10)]
    assert [*again.refused.values()] == ["10 is bad"]


@pytest.mark.parametrize("size", [1, 3])
@virtual
async def test_what_was_cut_off_as_a_whole_is_the_same_again_though_it_comes_in_another_list(
    size: int,
) -> None:
    said: list[Exception | None] = [
        *(
            Unreachable("cut off", "unclear"),
            Unreachable("away"),
            Unreachable("cut off", "unclear"),
        ),
        None,
    ]
    sink = Taking(lambda _: said.pop(0))
    it = BisectingSink(sink, 100)
    batch = [object() for _ in range(size)]

    for _ in range(3):
        await failed(it, [*batch])
    await it.write([*batch])

    assert all(each is sink.tries[0] for each in sink.tries)
    assert sink.taken == batch


@virtual
async def test_what_only_begins_alike_is_another_batch() -> None:
    said: list[Exception | None] = [Unreachable("cut off", "unclear"), None]
    sink = Taking(lambda _: said.pop(0))
    it = BisectingSink(sink, 100)

    await failed(it, [1, 2, 3])
    await it.write([1, 3, 2])

    assert sink.tries == [[1, 2, 3], [1, 3, 2]]


@virtual
async def test_no_more_are_known_than_can_be_under_way() -> None:
    away = True
    sink = Taking(lambda _: Unreachable("cut off", "unclear") if away else None, at_once=2)
    it = BisectingSink(sink, 100)
    batches = [[object()] for _ in range(3)]

    for batch in batches:
        await failed(it, batch)
    away = False
    for batch in batches:
        await it.write([*batch])

    assert [each is batch for each, batch in zip(sink.tries[3:], batches, strict=True)] == [
        *(False, True, True)
    ]
