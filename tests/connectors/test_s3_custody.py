"""When what an `s3` output was handed counts as written: when its part is uploaded, or on the disk."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from headrace.compiler.delivery import Acknowledgement, SharedDebt
from headrace.connectors.s3.objectpart import OVERHEAD, OWED_BYTES
from headrace.connectors.s3.sink import S3Sink
from tests.partsinmemory import PartsInMemory
from tests.promises import promise
from tests.s3_filling import MIB
from tests.s3_keeping import FIRST, MORNING, opened
from tests.virtual import virtual


class Ledger:
    """Hands batches to a sink as its writer does, and hears what is written."""

    def __init__(self, sink: S3Sink) -> None:
        self._sink = sink
        self.written: list[object] = []

    async def write(self, *messages: object) -> None:
        """Write a batch that somebody is to be told of."""
        custody = SharedDebt(Acknowledgement(partial(self.written.extend, messages)), 1)
        self._sink.owe(custody)
        await self._sink.write([*messages])
        custody.close()


@promise("s3.output.written")
@virtual(started_at=MORNING)
async def test_a_message_counts_as_written_when_its_part_is_uploaded():
    sink, shop, ctx = await opened(None, rotate={"max_rows": 2})
    ledger = Ledger(sink)
    shop.seconds = 1.0

    await ledger.write(1)
    await ctx.clock.sleep(10)
    filling = [*ledger.written]
    await ledger.write(2)
    await ledger.write(3)
    await ctx.clock.sleep(0.9)
    uploading = [*ledger.written]
    await ctx.clock.sleep(0.2)

    assert (filling, uploading, ledger.written) == ([], [], [1, 2])
    await sink.finish()
    assert ledger.written == [1, 2, 3]
    assert len(shop.objects) == 2


@promise("s3.output.written")
@virtual(started_at=MORNING)
async def test_a_message_counts_as_written_when_its_part_is_on_the_disk():
    kept = PartsInMemory()
    sink, shop, ctx = await opened(kept, rotate={"max_rows": 1})
    ledger = Ledger(sink)
    shop.is_down = True

    await ledger.write(1)
    await ctx.clock.sleep(0.1)

    assert ledger.written == [1]
    assert (len(kept.parts), shop.objects) == (1, {})
    await sink.finish()


@virtual(started_at=MORNING)
async def test_what_could_be_put_nowhere_never_counts_as_written_and_is_not_counted_as_lost():
    sink, shop, ctx = await opened(None, rotate={"max_rows": 2})
    ledger = Ledger(sink)
    shop.is_down = True
    sink.owe(None)
    await sink.write(["nobody's"])
    await ledger.write(1)
    await ledger.write(2)

    await sink.finish()

    assert ledger.written == []
    assert sum(ctx.lost.values()) == 1
    assert ctx.warnings[-1] == (
        "not uploaded in time: 2 parts with 3 messages (15 bytes); of their messages come again: 2"
    )


@virtual(started_at=MORNING)
async def test_whoever_can_wait_no_longer_has_the_open_part_uploaded():
    sink, shop, ctx = await opened(None, rotate={"interval_secs": 3600})
    ledger = Ledger(sink)
    sink.owe(None)
    await sink.write([0])
    held = ctx.holding[-1]
    nobody_waits = held()
    await ledger.write(1, 2)

    assert (nobody_waits, held()) == (0, 2)
    ctx.let_go()
    await ctx.clock.sleep(0.01)
    assert shop.objects == {FIRST: b"0\n1\n2\n"}
    assert ledger.written == [1, 2]
    assert held() == 0
    await sink.finish()


@virtual(started_at=MORNING)
async def test_what_is_owed_for_takes_its_place_in_memory_until_it_is_settled():
    kept = PartsInMemory()
    sink, shop, ctx = await opened(kept, rotate={"max_rows": 3})
    ledger = Ledger(sink)
    shop.is_down = True

    await ledger.write(1)
    await ledger.write(2)
    filling = sink.queue().used
    await ledger.write(3)
    closed = sink.queue().used
    await ctx.clock.sleep(0.1)

    assert filling == len(b"1\n2\n") + 2 * OWED_BYTES
    assert closed == OVERHEAD + len(b"1\n2\n3\n") + 3 * OWED_BYTES
    assert sink.queue().used == OVERHEAD + len(b"1\n2\n3\n")
    shop.is_down = False
    await sink.finish()
    assert sink.queue().used == 0


BIG = "x" * (MIB // 2 - 10)


@virtual(started_at=MORNING)
async def test_with_a_queue_parts_leave_the_memory_and_the_pipeline_goes_on():
    kept = PartsInMemory(most=4 * MIB)
    options = {"rotate": {"max_rows": 1}, "max_buffered_bytes": MIB, "queue": {}}
    sink, shop, ctx = await opened(kept, **options)
    shop.is_down = True

    for n in range(6):
        await sink.write([f"{n}{BIG}"])
        await ctx.clock.sleep(0.1)
    during = sink.queue().used, len(kept.parts)
    shop.is_down = False
    await ctx.clock.sleep(40)

    assert during == (0, 6)
    assert [body[1:2] for _, body in sorted(shop.objects.items())] == [b"%d" % n for n in range(6)]
    assert kept.parts == {}
    await sink.finish()
    assert ctx.warnings == []


@virtual(started_at=MORNING)
async def test_with_a_queue_that_is_full_the_pipeline_waits():
    kept = PartsInMemory(most=1.5 * MIB)
    options = {"rotate": {"max_rows": 1}, "max_buffered_bytes": MIB, "queue": {}}
    sink, shop, ctx = await opened(kept, **options)
    shop.is_down = True
    for n in range(3):
        await sink.write([f"{n}{BIG}"])
        await ctx.clock.sleep(0.1)

    waiting = asyncio.ensure_future(sink.write([f"3{BIG}"]))
    await ctx.clock.sleep(60)

    assert not waiting.done()
    assert len(kept.parts) == 2
    shop.is_down = False
    await waiting
    await ctx.clock.sleep(40)
    assert len(shop.objects) == 4
    assert ctx.lost == {}
    await sink.finish()


@virtual(started_at=MORNING)
async def test_with_a_queue_that_drops_the_oldest_goes_and_is_counted():
    kept = PartsInMemory(most=1.5 * MIB)
    options = {"rotate": {"max_rows": 1}, "max_buffered_bytes": MIB}
    sink, shop, ctx = await opened(kept, **options, queue={"when_full": "drop_oldest"})
    shop.is_down = True

    for n in range(6):
        await sink.write([f"{n}{BIG}"])
        await ctx.clock.sleep(0.1)
    shop.is_down = False
    await ctx.clock.sleep(40)

    numbers = sorted(body[1:2] for body in shop.objects.values())
    assert numbers[-1] == b"5"
    assert 2 <= len(numbers) < 6
    assert ctx.lost == {
        "dropped: more waited for it than may be kept (max_bytes of 'queue')": 6 - len(numbers)
    }
    assert kept.parts == {}
    await sink.finish()


@pytest.mark.parametrize("option", [True, {"max_bytes": 10}])
async def test_a_queue_without_a_directory_is_refused(option):
    with pytest.raises(Exception, match="nothing can be kept without --data-dir"):
        await opened(None, queue=option)
