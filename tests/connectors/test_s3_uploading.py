"""How the `s3` output hands on its parts: a few at a time, again where that fails, within bounds."""

from __future__ import annotations

import asyncio
import gzip
import itertools
from dataclasses import replace

import pytest

from headrace.connectors.disk.packing import PACKINGS
from tests.promises import promise
from tests.s3_filling import ASIDE, MIB, MORNING, QUARTER, key, opened
from tests.virtual import virtual


@virtual(started_at=MORNING)
async def test_parts_are_uploaded_while_the_next_one_fills_a_few_at_a_time():
    sink, shop, ctx = await opened()
    shop.seconds = 1.0

    for n in range(10):
        await sink.write([n])
    filled = ctx.clock.monotonic()
    await ctx.clock.sleep(3.5)

    assert filled == 0
    assert shop.most_under_way == 4
    assert sorted(shop.objects) == [key(n + 1) for n in range(10)]
    await sink.finish()


@promise("s3.output.away")
@virtual(started_at=MORNING)
async def test_a_part_that_cannot_be_uploaded_is_tried_again_until_it_is_and_others_follow():
    sink, shop, ctx = await opened(rotate={"max_rows": 1})
    shop.is_down = True

    for n in range(3):
        await sink.write([n])
    await ctx.clock.sleep(12)
    during = [found for _, found in shop.tried]
    shop.is_down = False
    await ctx.clock.sleep(3)

    assert during[0:3] == [key(1), key(2), key(3)]
    assert during[3:8] == [key(1), key(2), key(3), key(1), key(2)]  # it may be one of them alone
    assert 6 <= len(during[3:]) <= 11  # 0.25, 0.5, 1 s, and then every 2 s
    assert sorted(shop.objects.values()) == [b"0\n", b"1\n", b"2\n"]
    assert ctx.failures == ["the shop does not answer"] * (len(during) - 2)
    assert ctx.notes == ["written to again"]
    await sink.finish()


@virtual(started_at=MORNING)
async def test_a_part_that_the_store_refuses_is_set_aside_and_tried_again_ever_more_rarely():
    sink, shop, ctx = await opened()
    shop.refused = {key(2)}

    for n in range(8):
        await sink.write([n])
    await ctx.clock.sleep(0.01)
    others = sorted(shop.objects)
    await ctx.clock.sleep(300)
    times = [time for time, found in shop.tried if found == key(2)]
    shop.refused = set()
    await ctx.clock.sleep(40)

    assert others == [key(n) for n in (1, 3, 4, 5, 6, 7, 8)]
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert 0.2 <= pauses[0] <= 0.3
    assert 24 <= pauses[-1] <= 36
    assert shop.objects[key(2)] == b"1\n"
    assert ctx.failures == [f"{ASIDE}the shop refuses this one"] * len(times)
    assert ctx.notes == ["a part that was set aside is uploaded now"]
    await sink.finish()


@virtual(started_at=MORNING)
async def test_many_parts_that_are_refused_do_not_keep_the_store_busy():
    sink, shop, ctx = await opened()
    shop.refused = {key(n + 1) for n in range(500)}

    for n in range(500):
        await sink.write([n])
    await ctx.clock.sleep(10)
    before = len(shop.tried)
    await ctx.clock.sleep(100)

    assert (
        len(shop.tried) - before < 2000
    )  # sixteen a second, and not all whenever their time is up
    await sink.finish()


@virtual(started_at=MORNING)
async def test_parts_that_are_refused_are_held_and_told_of_at_the_end():
    sink, shop, ctx = await opened(max_buffered_bytes=MIB)
    shop.refused = {key(n) for n in (1, 2, 3)}
    for _ in range(3):
        await sink.write(QUARTER)

    waiting = asyncio.ensure_future(sink.write(QUARTER))
    await ctx.clock.sleep(10)
    waited = not waiting.done()
    shop.refused.discard(key(3))
    await waiting
    before = ctx.clock.monotonic()
    await sink.finish()

    assert waited
    assert len(shop.objects) == 2
    assert key(3) in shop.objects
    assert ctx.clock.monotonic() == before  # they were tried once more, and not waited for
    assert ctx.warnings[-1] == (
        "lost, because not uploaded in time: 2 parts with 2 messages (524,294 bytes); with --data-dir"
        " they would be kept"
    )


@virtual(started_at=MORNING)
async def test_what_is_set_aside_does_not_keep_an_open_part_from_being_uploaded():
    sink, shop, ctx = await opened(max_buffered_bytes=MIB, rotate={"max_rows": 2})
    shop.refused = {key(1)}
    await sink.write(QUARTER * 2)
    await sink.write(QUARTER)
    await ctx.clock.sleep(1)

    async with ctx.clock.timeout(1):
        for _ in range(5):
            await sink.write(QUARTER)

    assert len(shop.objects) == 5
    await sink.finish()


@virtual(started_at=MORNING)
async def test_a_part_that_alone_finds_the_store_out_of_order_does_not_block_the_others():
    sink, shop, ctx = await opened()
    shop.broken = {key(1)}

    for n in range(30):
        await sink.write([n])
    await ctx.clock.sleep(20)

    assert len(shop.objects) == 29
    assert set(ctx.failures) == {"the shop does not answer"}
    await sink.finish()


@virtual(started_at=MORNING)
async def test_another_outage_begins_with_short_pauses_again():
    sink, shop, ctx = await opened()
    for _ in range(2):
        shop.is_down = True
        await sink.write([1])
        await ctx.clock.sleep(30)
        shop.is_down = False
        await ctx.clock.sleep(30)

    begun = [time for time, _ in shop.tried if time >= 60]
    assert begun[0] == 60
    assert 0.2 <= begun[1] - begun[0] <= 0.3
    await sink.finish()


@virtual(started_at=MORNING)
async def test_what_else_goes_wrong_is_reported_and_tried_again_as_well():
    sink, shop, ctx = await opened()
    shop.faults = [RuntimeError("of ours"), OSError(5, "of the system")]

    await sink.write([1])
    await ctx.clock.sleep(2)

    assert shop.objects == {key(1): b"1\n"}
    assert ctx.failures == [
        f"{ASIDE}RuntimeError: of ours",
        f"{ASIDE}[Errno 5] of the system",
    ]
    await sink.finish()


@virtual(started_at=MORNING)
async def test_a_part_that_cannot_be_compressed_is_tried_again_like_any_other(
    monkeypatch: pytest.MonkeyPatch,
):
    sink, shop, ctx = await opened(compression="gzip")
    tries = iter([MemoryError(), MemoryError(), RuntimeError("no more threads")])
    pack = PACKINGS["gzip"].pack

    def scarce(body: bytes) -> bytes:
        if cause := next(tries, None):
            raise cause
        return pack(body)

    monkeypatch.setitem(PACKINGS, "gzip", replace(PACKINGS["gzip"], pack=scarce))
    await sink.write([1])
    await ctx.clock.sleep(10)
    await sink.write([2])
    await sink.finish()

    assert [gzip.decompress(body) for body in shop.objects.values()] == [b"1\n", b"2\n"]
    assert ctx.failures == [
        f"{ASIDE}{said}" for said in ("MemoryError", "MemoryError", "RuntimeError: no more threads")
    ]
    assert (ctx.warnings, ctx.notes) == ([], ["a part that was set aside is uploaded now"])


@promise("s3.output.away", "s3.output.held")
@virtual(started_at=MORNING)
async def test_when_too_much_is_held_a_batch_waits_until_there_is_room_and_nothing_is_lost():
    sink, shop, ctx = await opened(max_buffered_bytes=MIB)
    shop.is_down = True

    for _ in range(3):
        await sink.write(QUARTER)
    waiting = asyncio.ensure_future(sink.write(QUARTER))
    await ctx.clock.sleep(10)
    waited = not waiting.done()
    shop.is_down = False
    await waiting
    await sink.finish()

    assert waited
    assert len(shop.objects) == 4
    said = "1,048,576 bytes wait to be uploaded, so the pipeline waits"
    assert ctx.warnings == [said]
    assert set(ctx.failures) == {"the shop does not answer"}
    assert sorted(ctx.notes) == ["there is room for parts again", "written to again"]


@virtual(started_at=MORNING)
async def test_a_short_wait_for_room_is_not_told():
    sink, shop, ctx = await opened(max_buffered_bytes=MIB)
    shop.seconds = 1.5

    for _ in range(5):
        await sink.write(QUARTER)
    await sink.finish()

    assert len(shop.objects) == 5
    assert (ctx.failures, ctx.warnings, ctx.notes) == ([], [], [])


@virtual(started_at=MORNING)
async def test_a_batch_larger_than_the_bound_is_taken_alone():
    sink, shop, ctx = await opened(max_buffered_bytes=MIB, rotate={"interval_secs": 60})
    shop.seconds = 1.0
    large = ["y" * 3 * MIB]

    await sink.write([1])
    await sink.write(large)
    taken = ctx.clock.monotonic()
    await sink.write([2])
    await sink.finish()

    assert 1 <= taken < 2  # what was there before had to go
    assert list(shop.objects.values()) == [b"1\n", b'"%s"\n' % (b"y" * 3 * MIB), b"2\n"]


@promise("s3.output.held")
@virtual(started_at=MORNING)
async def test_small_parts_are_counted_with_more_than_their_messages():
    sink, shop, _ = await opened(max_buffered_bytes=MIB)
    shop.is_down = True

    taken = 0
    while sink.begin([1]) is None:
        taken += 1

    assert 900 < taken < 1100  # a kibibyte for each
    shop.is_down = False
    await sink.finish()


@virtual(started_at=MORNING)
async def test_parts_that_wait_are_compressed_and_take_less_room():
    sink, shop, _ = await opened(max_buffered_bytes=MIB, compression="zstd")
    shop.is_down = True

    for _ in range(20):
        await sink.write(QUARTER)
    shop.is_down = False
    await sink.finish()

    assert len(shop.objects) == 20
