"""What the engine tells is of one moment: it does not change with what runs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.compiler.buckets import Bounds
from headrace.compiler.jsontext import decode
from headrace.compiler.runtime.engine import SLICE
from headrace.compiler.runtime.monitoring.bucketfigures import BucketPage
from headrace.operators.buffer import Buffer
from tests.stand_ins import Kept, Told, batches, does, engine, pipeline, reads, run, takes
from tests.virtual import virtual


@virtual
async def test_figures_are_those_of_the_moment_in_which_they_were_asked_for():
    it = engine()
    source = Told(it.clock, [batches([1], [2]), 10, batches([3], [4, 5])])
    await run(
        it,
        pipeline(
            "p", [reads(source)], [does(odd), Buffer(seconds=60, max_messages=9)], [takes(Kept())]
        ),
    )
    [before] = await it.pipelines()

    await it.clock.sleep(20)

    [after] = await it.pipelines()
    assert (before.inbound, before.held, before.failures["transform"]) == (2, 1, 1)
    assert (after.inbound, after.held, after.failures["transform"]) == (5, 2, 2)
    assert after.text is before.text  # encoded once
    with pytest.raises(AttributeError):
        before.inbound = 0  # type: ignore[misc]
    await it.close()


def odd(batch: list[int]) -> list[list[int]]:
    """Hand on batches of one odd number, and fail on the others."""
    [number] = batch
    if number % 2 == 0:
        raise ValueError("even")
    return [batch]


@virtual
async def test_of_many_pipelines_those_that_go_meanwhile_are_not_told():
    it = engine()
    for number in range(SLICE + 5):
        await it.compile(pipeline(f"p{number}", [reads(Told(it.clock, []))]))
    asking = it.pipelines()
    asking.send(None)  # up to its first pause

    gone = it.graph.pipelines.pop(f"p{SLICE}")
    with pytest.raises(StopIteration) as told:
        asking.send(None)

    others = [f"p{number}" for number in range(SLICE + 5) if number != SLICE]
    assert [each.id for each in told.value.value] == others
    await gone.stop(0)
    await it.close()


@virtual
async def test_a_past_that_was_told_stands_still():
    it = engine()
    source = Told(it.clock, [batches([2]), 10, batches([4])])
    await run(it, pipeline("p", [reads(source)], [does(odd)], [takes(Kept())]))
    before = await it.past("p", "fine")

    await it.clock.sleep(20)

    after = await it.past("p", "fine")
    assert [each.count for each in before.failures] == [1]
    assert [each.count for each in after.failures] == [2]
    assert len(after.buckets) > len(before.buckets)
    await it.close()


@virtual(started_at=datetime(2026, 3, 1, 8, tzinfo=UTC))
async def test_a_page_of_a_bucket_is_as_long_as_is_asked_for():
    it = engine()
    it.state.declare({"b": Bounds(max_keys=10)})
    [bucket] = it.state
    bucket.merge({key: {"text": "x" * 100} for key in "abcd"})

    by_entries = await it.bucket("b", BucketPage(3, 10_000))
    by_bytes = await it.bucket("b", BucketPage(200, 300))
    whole = await it.bucket("b", BucketPage(200, 10_000))
    bucket.merge({"a": {"text": "y"}})

    assert await it.bucket("c", BucketPage(200, 10_000)) is None
    assert [each.key for each in by_entries.entries] == ["a", "b", "c"]
    assert [each.key for each in by_bytes.entries] == ["a", "b"]  # the second one exceeds it
    assert {len(page.entries) < page.keys for page in (by_entries, by_bytes)} == {True}
    assert [decode(bytes(each.values)) for each in whole.entries] == [{"text": "x" * 100}] * 4
    assert whole.entries[0].updated_at == "2026-03-01T08:00:00.000000+00:00"
    await it.close()
