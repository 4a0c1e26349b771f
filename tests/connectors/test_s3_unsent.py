"""Parts that are not uploaded: kept while their pipeline runs and at its end, and sent by the next one."""

from __future__ import annotations

import asyncio

import pytest

from headrace.connectors.s3.partkeeper import LATE_SECONDS, PartKeeper
from headrace.connectors.s3.partsleft import LOST
from tests.partsinmemory import PartsInMemory
from tests.s3_filling import MIB, QUARTER
from tests.s3_keeping import FIRST, MORNING, SECOND, entry, left, opened, part
from tests.s3_sides import Shop, context
from tests.virtual import virtual


@virtual(started_at=MORNING)
async def test_what_is_not_uploaded_in_time_is_kept_and_the_log_says_so():
    kept = PartsInMemory()

    ctx = await left(kept)

    assert len(kept.parts) == 2
    assert ctx.warnings == [
        "not uploaded: 2 parts with 3 messages (6 bytes); kept in the store of --data-dir for the next"
        " start of this output"
    ]
    assert set(ctx.failures) == {"the shop does not answer"}
    assert ctx.lost == {}


@virtual(started_at=MORNING)
async def test_the_next_output_sends_it_under_the_names_it_had_beside_its_own():
    kept = PartsInMemory()
    await left(kept)

    sink, shop, ctx = await opened(kept)
    await sink.write(["new"])
    await sink.finish()

    third = "p/2026-03-01T08-00-02Z-000001.ndjson"
    assert shop.objects == {FIRST: b"0\n1\n", SECOND: b"2\n", third: b'"new"\n'}
    assert kept.parts == {}
    assert ctx.notes == ["2 parts with 3 messages (6 bytes) of an earlier run are uploaded now"]


@virtual(started_at=MORNING)
async def test_no_new_part_gets_the_name_of_one_that_is_kept():
    kept = PartsInMemory()
    kept.put(entry(b"old\n"), lambda *_: None)

    sink, shop, ctx = await opened(kept)
    await sink.write(["new"])
    await sink.finish()

    assert shop.objects == {FIRST: b"old\n", SECOND: b'"new"\n'}
    assert ctx.warnings == []


@virtual(started_at=MORNING)
async def test_its_name_may_be_taken_by_then():
    kept = PartsInMemory()
    await left(kept)
    shop = Shop(context("http://127.0.0.1:1").clock)
    shop.taken.add(FIRST)

    sink, _, _ = await opened(kept, shop)
    await sink.finish()

    assert sorted(shop.objects.values()) == [b"0\n1\n", b"2\n"]
    assert FIRST not in shop.objects
    assert kept.parts == {}


@virtual(started_at=MORNING)
async def test_what_cannot_be_sent_the_next_time_either_stays():
    kept = PartsInMemory()
    await left(kept)

    ctx = await left(kept)
    sink, shop, _ = await opened(kept)
    await sink.finish()

    assert "not uploaded: 4 parts with 6 messages (12 bytes)" in ctx.warnings[-1]
    assert sorted(shop.objects.values()) == [b"0\n1\n", b"0\n1\n", b"2\n", b"2\n"]
    assert kept.parts == {}


@virtual(started_at=MORNING)
async def test_what_is_uploaded_at_once_is_never_kept():
    kept = PartsInMemory()
    sink, shop, ctx = await opened(kept)
    shop.seconds = LATE_SECONDS - 0.1

    for n in range(4):
        await sink.write([n])
    await ctx.clock.sleep(LATE_SECONDS)

    assert len(shop.objects) == 4
    assert kept._next == 0
    await sink.finish()


@virtual(started_at=MORNING)
async def test_what_waits_for_an_outage_to_end_is_kept_and_let_go_of_when_it_is_over():
    kept = PartsInMemory()
    sink, shop, ctx = await opened(kept, rotate={"max_rows": 1})
    shop.is_down = True
    await sink.write([0])
    await ctx.clock.sleep(0.1)
    first = [*kept.parts.values()]
    await sink.write([1])
    await ctx.clock.sleep(0.1)

    assert [each.rpartition(b"\n")[0][-1:] for each in first] == [b"0"]
    assert len(kept.parts) == 2
    shop.is_down = False
    await ctx.clock.sleep(5)
    assert sorted(shop.objects.values()) == [b"0\n", b"1\n"]
    assert kept.parts == {}
    await sink.finish()
    assert ctx.warnings == []


@virtual(started_at=MORNING)
async def test_what_hangs_is_kept_soon_and_sent_once():
    kept = PartsInMemory()
    sink, shop, ctx = await opened(kept)
    shop.closed = asyncio.Event()
    await sink.write([1])
    await ctx.clock.sleep(2 * LATE_SECONDS + 0.1)
    during = len(kept.parts)
    shop.closed.set()
    await ctx.clock.sleep(0.01)

    assert during == 1
    assert (shop.objects, kept.parts) == ({FIRST: b"1\n"}, {})
    await sink.finish()


@virtual(started_at=MORNING)
async def test_what_is_refused_alone_is_kept():
    kept = PartsInMemory()
    sink, shop, ctx = await opened(kept)
    shop.refused = {FIRST}

    await sink.write([1])
    await sink.write([2])
    await ctx.clock.sleep(0.01)

    assert shop.objects == {SECOND: b"2\n"}
    assert len(kept.parts) == 1
    await sink.finish()
    assert "not uploaded: 1 part with 1 message (2 bytes); kept in" in ctx.warnings[-1]


@virtual(started_at=MORNING)
async def test_what_is_kept_while_it_waits_takes_its_place_in_memory_all_the_same():
    kept = PartsInMemory()
    sink, shop, ctx = await opened(kept, max_buffered_bytes=MIB)
    shop.is_down = True
    for _ in range(3):
        await sink.write(QUARTER)

    waiting = asyncio.ensure_future(sink.write(QUARTER))
    await ctx.clock.sleep(10)

    assert not waiting.done()
    assert len(kept.parts) == 3
    waiting.cancel()
    await sink.finish()


@virtual(started_at=MORNING)
async def test_a_disk_that_takes_nothing_is_tried_again_and_told_of_where_something_is_lost():
    kept = PartsInMemory()
    kept.full = "the disk is full"
    sink, shop, ctx = await opened(kept)
    shop.is_down = True
    await sink.write([1])
    await ctx.clock.sleep(10)
    kept.full = ""
    await ctx.clock.sleep(4)
    later = len(kept.parts)
    kept.full = "the disk is full"
    await sink.write([2])

    await sink.finish()

    assert later == 1
    assert ctx.warnings == [
        "lost, because not uploaded in time: 1 part with 1 message (2 bytes); they cannot be kept in the"
        " store: the disk is full",
        "not uploaded: 1 part with 1 message (2 bytes); kept in the store of --data-dir for the next"
        " start of this output",
    ]
    assert ctx.lost == {LOST: 1}


@virtual(started_at=MORNING)
async def test_what_is_uploaded_after_all_is_not_kept():
    kept = PartsInMemory()
    sink, shop, ctx = await opened(kept)
    shop.seconds = 1.0

    await sink.write([1])
    await sink.finish()

    assert ctx.clock.monotonic() == 1
    assert shop.objects == {FIRST: b"1\n"}
    assert kept.parts == {}
    assert (ctx.warnings, ctx.failures) == ([], [])


@pytest.mark.parametrize("seconds", [0.1, 0.6, 2.4])
@virtual(started_at=MORNING)
async def test_when_the_end_is_cut_short_it_is_kept_all_the_same(seconds):
    kept = PartsInMemory()
    sink, shop, ctx = await opened(kept)
    shop.closed = asyncio.Event()
    await sink.write([seconds])

    with pytest.raises(TimeoutError):
        async with ctx.clock.timeout(seconds):
            await sink.finish()

    assert len(kept.parts) == 1
    assert "kept in" in ctx.warnings[-1]


@virtual(started_at=MORNING)
async def test_what_is_to_be_compressed_is_compressed_once():
    kept = PartsInMemory()
    sink, shop, _ = await opened(kept, compression="gzip", rotate={"max_rows": 1000})
    shop.closed = asyncio.Event()
    await sink.write([{"n": n} for n in range(999)])
    await sink.finish()
    [size] = map(len, kept.parts.values())

    sink, shop, _ = await opened(kept)
    await sink.finish()

    [sent] = shop.parts
    assert sent.key == f"{FIRST}.gz"
    assert sent.media_type == "application/gzip"
    assert len(shop.objects[sent.key]) < size < 5000


@virtual
async def test_what_is_uploaded_before_it_is_on_its_way_to_the_disk_is_not_kept():
    kept, told = PartsInMemory(), []
    ctx = context("http://127.0.0.1:1")
    keeper = PartKeeper(kept, ctx, [], kept=told.append, drop=None)
    uploaded = part()

    keeper.keep([uploaded])
    uploaded.is_over, uploaded.content = True, None

    async with ctx.clock.timeout(10):
        await keeper.ended()
    assert (kept.parts, told) == ({}, [])


@virtual(started_at=MORNING)
async def test_a_part_is_told_from_others_by_what_it_was_known_by_before():
    kept = PartsInMemory()
    kept.put(entry(b"1\n", token="abc", upload=(FIRST, "upload-1")), lambda *_: None)
    shop = Shop(context("http://127.0.0.1:1").clock)
    shop.refused = {FIRST}

    sink, _, _ = await opened(kept, shop)
    [found] = sink._uploads.unsent

    assert (found.key, found.token, found.upload, found.messages) == (
        FIRST,
        "abc",
        (FIRST, "upload-1"),
        1,
    )
    await sink.finish()


@virtual(started_at=MORNING)
async def test_a_part_that_is_refused_again_stays_and_holds_up_nothing():
    kept = PartsInMemory()
    await left(kept)

    for n in range(2):
        ctx = context("http://127.0.0.1:1")
        shop = Shop(ctx.clock)
        shop.refused = {FIRST}
        sink, _, ctx = await opened(kept, shop)
        await sink.write(["new"])
        await ctx.clock.sleep(5)

        assert len(shop.objects) == 2 - n  # the second part went the first time, and the new one
        await sink.finish()
        assert ctx.warnings == [
            "not uploaded: 1 part with 2 messages (4 bytes); kept in the store of --data-dir for the"
            " next start of this output"
        ]
        assert len(kept.parts) == 1

    sink, shop, ctx = await opened(kept)
    await sink.finish()
    assert shop.objects == {FIRST: b"0\n1\n"}
    assert kept.parts == {}


@virtual(started_at=MORNING)
async def test_what_is_no_part_is_told_of_and_left_alone():
    kept = PartsInMemory()
    await left(kept)
    for each in (b"", b"something else", b'{"key": "p/x"}\n', entry(b"1\n")[:-1]):
        kept.put(each, lambda *_: None)

    sink, shop, ctx = await opened(kept)
    await sink.finish()

    assert len(shop.objects) == 2
    assert ctx.warnings == ["cannot send what is in the store and no part: entries: 4"]
    assert ctx.classes == ["misconfigured"]
    assert len(kept.parts) == 4


@virtual(started_at=MORNING)
async def test_a_kept_part_that_is_damaged_is_counted_as_lost_and_the_others_go_on():
    kept = PartsInMemory()
    await left(kept)
    kept.damaged = {0}
    sink, shop, ctx = await opened(kept)

    await sink.finish()

    assert shop.objects == {SECOND: b"2\n"}
    assert ctx.lost == {"a part that was kept is damaged": 2}
    assert kept.parts == {}
