"""How the `s3` output fills, closes and hands on its parts: on virtual time, to a store in memory."""

from __future__ import annotations

import asyncio
import gzip
import itertools
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import zstandard

from headrace.connectors.disk.parts import PACKINGS
from headrace.connectors.s3.objectkeys import BucketNumbers, PartNumbers, bucket_numbers
from headrace.connectors.s3.sink import S3Sink
from tests.doubles import StubContext
from tests.s3_sides import Shop, context, shopping
from tests.virtual import virtual

MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)
MIB = 1024 * 1024
QUARTER = ["x" * (MIB // 4)]
"""A message that takes a quarter of the smallest bound, and a little more."""
ASIDE = "a part is set aside and tried again, and others go on: "


def key(number: int, time: str = "08-00-00", folder: str = "", extension: str = "ndjson") -> str:
    """Return the key of a part of that morning."""
    return f"{folder}2026-03-01T{time}Z-{number:06d}.{extension}"


async def opened(**options: Any) -> tuple[S3Sink, Shop, StubContext]:
    """Return a sink that is started, its store and its context."""
    ctx = context("http://127.0.0.1:1")
    shop = Shop(ctx.clock)
    sink = shopping(ctx, shop, **options)
    await sink.start()
    return sink, shop, ctx


async def sent(ctx: StubContext) -> None:
    """Wait until what could be sent is."""
    await ctx.clock.sleep(0.001)


# Names and formats


@virtual(started_at=MORNING)
async def test_ndjson_is_one_compact_message_a_line():
    sink, shop, _ = await opened(prefix="readings", rotate={"max_rows": 3})

    await sink.write([{"n": 1, "s": "ü"}, 2.0])
    await sink.write([None])
    await sink.finish()

    assert shop.objects == {key(1, folder="readings/"): '{"n":1,"s":"ü"}\n2.0\nnull\n'.encode()}
    assert [part.media_type for part in shop.parts] == ["application/x-ndjson"]


@virtual(started_at=MORNING)
async def test_a_json_array_is_compact():
    sink, shop, _ = await opened(format="json_array", rotate={"max_rows": 3})

    await sink.write([{"n": 1}, {"n": 2}])
    await sink.write([3])
    await sink.write([4])
    await sink.finish()

    assert shop.objects == {
        key(1, extension="json"): b'[{"n":1},{"n":2},3]',
        key(2, extension="json"): b"[4]",
    }
    assert [part.media_type for part in shop.parts] == ["application/json"] * 2


@pytest.mark.parametrize(
    ("word", "extension", "media_type", "unpacked"),
    [
        ("gzip", "ndjson.gz", "application/gzip", gzip.decompress),
        ("zstd", "ndjson.zst", "application/zstd", zstandard.decompress),
    ],
)
@virtual(started_at=MORNING)
async def test_a_part_is_compressed_as_a_whole_and_its_name_says_so(
    word, extension, media_type, unpacked
):
    sink, shop, _ = await opened(compression=word, rotate={"max_rows": 2000})

    await sink.write([{"n": n} for n in range(1000)])
    await sink.write([{"n": n} for n in range(1000, 2000)])
    await sink.finish()

    [(found, body)] = shop.objects.items()
    assert found == key(1, extension=extension)
    assert len(body) < 10_000
    assert unpacked(body) == b"".join(b'{"n":%d}\n' % n for n in range(2000))
    assert shop.parts[0].media_type == media_type


@pytest.mark.parametrize(
    ("prefix", "folder"),
    [
        ("", ""),
        (" / ", ""),
        ("a", "a/"),
        ("/a/b c/ ", "a/b c/"),
        ("Größe/a+b=c&d", "Größe/a+b=c&d/"),
    ],
)
@virtual(started_at=MORNING)
async def test_the_prefix_is_trimmed_of_blanks_and_slashes(prefix, folder):
    sink, shop, _ = await opened(prefix=prefix)

    await sink.write([1])
    await sink.finish()

    assert list(shop.objects) == [key(1, folder=folder)]
    assert shop.prefix == folder


@virtual(started_at=datetime(2026, 2, 28, 23, 59, 30, tzinfo=UTC))
async def test_the_partition_is_of_the_time_at_which_a_part_is_opened():
    sink, shop, ctx = await opened(
        prefix="p", partition="/y=%Y/m=%m/d=%d/%H%M %j/", rotate={"interval_secs": 60}
    )

    await sink.write([1])
    await ctx.clock.sleep(59)
    await sink.write([2])
    await ctx.clock.sleep(2)
    await sink.write([3])
    await sink.finish()

    assert shop.objects == {
        "p/y=2026/m=02/d=28/2359 059/2026-02-28T23-59-30Z-000001.ndjson": b"1\n2\n",
        "p/y=2026/m=03/d=01/0000 060/2026-03-01T00-00-31Z-000002.ndjson": b"3\n",
    }
    assert shop.prefix == "p/"


@virtual
async def test_a_run_without_messages_leaves_no_object():
    sink, shop, ctx = await opened(rotate={"interval_secs": 1})

    await sink.write([])
    await ctx.clock.sleep(10)
    await sink.finish()

    assert shop.tried == []
    assert not shop.is_open


@virtual(started_at=MORNING)
async def test_a_message_that_cannot_be_written_leaves_the_part_as_it_was():
    sink, shop, _ = await opened(rotate={"max_rows": 10})
    await sink.write([1])

    with pytest.raises(ValueError, match="surrogate"):
        await sink.write([2, "\ud800"])
    await sink.write([3])
    await sink.finish()

    assert shop.objects == {key(1): b"1\n3\n"}


@virtual(started_at=MORNING)
async def test_a_name_that_is_taken_gives_way_to_the_next_number_and_nothing_is_overwritten():
    sink, shop, ctx = await opened(prefix="p")
    shop.taken |= {key(1, folder="p/"), key(4, folder="p/")}

    for n in (1, 2, 3):
        await sink.write([n])
    await sink.finish()

    assert sorted(shop.objects.values()) == [b"1\n", b"2\n", b"3\n"]
    assert not shop.objects.keys() & {key(1, folder="p/"), key(4, folder="p/")}
    assert ctx.warnings == [
        "the name of a part was taken: another server writes to this prefix, and the part gets a"
        " later number"
    ]


@virtual(started_at=MORNING)
async def test_outputs_of_one_server_give_no_name_twice_and_each_number_from_one():
    ctx, given = context("http://127.0.0.1:1"), BucketNumbers()
    shop = Shop(ctx.clock)
    one, two = (shopping(ctx, shop, given, prefix="p") for _ in range(2))
    other = shopping(ctx, shop, given, prefix="p", partition="%H")
    for it in (one, two, other):
        await it.start()

    for _ in range(20):
        await one.write([1])
        await two.write([2])
    await other.write([3])
    for it in (one, two, other):
        await it.finish()

    assert sorted(shop.objects) == sorted(
        [key(n + 1, folder="p/") for n in range(40)] + [key(1, folder="p/08/")]
    )
    assert len(shop.tried) == 41
    assert ctx.warnings == []


def test_the_numbers_of_a_bucket_are_shared_while_there_are_outputs_and_not_longer():
    path = key(0)
    one, two = PartNumbers(bucket_numbers(None, "b")), PartNumbers(bucket_numbers(None, "b"))
    found = [
        one.numbered(path),
        two.numbered(path),
        PartNumbers(bucket_numbers(None, "c")).numbered(path),
    ]
    del one, two

    assert found == [key(1), key(2), key(1)]
    assert PartNumbers(bucket_numbers(None, "b")).numbered(path) == key(1)


# Rotation


@virtual(started_at=MORNING)
async def test_a_part_is_closed_after_the_batch_that_fills_it_and_uploaded_at_once():
    sink, shop, ctx = await opened(rotate={"max_rows": 3})

    for batch in ([1, 2], [3, 4, 5, 6], [7], [8], [9]):
        await sink.write(batch)
    await sent(ctx)

    assert shop.objects == {key(1): b"1\n2\n3\n4\n5\n6\n", key(2): b"7\n8\n9\n"}
    await sink.finish()


@virtual(started_at=MORNING)
async def test_no_rows_are_read_as_one():
    sink, shop, _ = await opened(rotate={"max_rows": 0})

    await sink.write([1])
    await sink.write([2, 3])
    await sink.finish()

    assert list(shop.objects.values()) == [b"1\n", b"2\n3\n"]


@virtual(started_at=MORNING)
async def test_a_part_is_uploaded_on_time_also_while_nothing_arrives():
    sink, shop, ctx = await opened(rotate={"interval_secs": 60})

    await ctx.clock.sleep(10)
    await sink.write([1])
    await ctx.clock.sleep(59)
    await sink.write([2])
    before = dict(shop.objects)
    await ctx.clock.sleep(2)
    after = dict(shop.objects)
    await ctx.clock.sleep(3600)
    await sink.write([3])
    await sink.finish()

    assert before == {}
    assert after == {key(1, "08-00-10"): b"1\n2\n"}
    assert shop.objects == after | {key(2, "09-01-11"): b"3\n"}
    assert shop.times[0] == 70


@virtual(started_at=MORNING)
async def test_the_time_runs_from_the_opening_of_each_part():
    sink, shop, ctx = await opened(rotate={"interval_secs": 60, "max_rows": 2})

    await sink.write([1])
    await ctx.clock.sleep(50)
    await sink.write([2])  # full: the first clock stops
    await sink.write([3])
    await ctx.clock.sleep(50)
    await sink.write([4])
    await ctx.clock.sleep(11)
    await sink.write([5])
    await ctx.clock.sleep(59)
    await sink.finish()

    assert list(shop.objects.values()) == [b"1\n2\n", b"3\n4\n", b"5\n"]


@virtual(started_at=MORNING)
async def test_a_part_that_holds_half_of_the_bound_is_closed_and_that_is_told_once():
    sink, shop, ctx = await opened(rotate={"max_rows": 1000}, max_buffered_bytes=MIB)

    for _ in range(4):
        await sink.write(QUARTER)
    await sent(ctx)

    assert [len(body) for body in shop.objects.values()] == [2 * (MIB // 4 + 3)] * 2
    assert ctx.warnings == [
        "parts are closed before 'rotate' says so: 'max_buffered_bytes' is 1,048,576, and one of"
        " them may hold half of that"
    ]
    await sink.finish()


# Uploading


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


# The end


@virtual(started_at=MORNING)
async def test_at_the_end_the_last_part_and_those_that_wait_are_uploaded():
    sink, shop, ctx = await opened(rotate={"max_rows": 2})
    shop.seconds = 0.2

    for n in range(9):
        await sink.write([n])
    await sink.finish()

    found = [body for _, body in sorted(shop.objects.items())]
    assert found == [b"0\n1\n", b"2\n3\n", b"4\n5\n", b"6\n7\n", b"8\n"]
    assert (ctx.failures, ctx.warnings) == ([], [])
    assert not shop.is_open


@virtual(started_at=MORNING)
async def test_at_the_end_a_part_that_waits_for_its_next_try_is_tried_at_once():
    sink, shop, ctx = await opened()
    shop.is_down = True
    await sink.write([1])
    await ctx.clock.sleep(100)
    shop.is_down = False
    before = ctx.clock.monotonic()

    await sink.finish()

    assert ctx.clock.monotonic() == before
    assert shop.objects == {key(1): b"1\n"}


@virtual(started_at=MORNING)
async def test_what_is_not_uploaded_in_time_is_told_of_when_there_is_no_place_for_it():
    sink, shop, ctx = await opened(rotate={"max_rows": 2})
    shop.is_down = True
    for n in range(5):
        await sink.write([n])

    await sink.finish()

    assert ctx.clock.monotonic() == 2.5
    assert ctx.failures[-1] == "parts are lost: they could not be uploaded in time"
    assert ctx.warnings == [
        "lost, because not uploaded in time: 3 parts with 5 messages (10 bytes); with --data-dir they"
        " would be kept"
    ]
    assert shop.under_way == 0


@virtual(started_at=MORNING)
async def test_an_upload_that_hangs_does_not_hold_up_the_end():
    sink, shop, ctx = await opened()
    shop.closed = asyncio.Event()
    await sink.write([1])

    await sink.finish()

    assert ctx.clock.monotonic() == 2.5
    assert shop.under_way == 0
    assert ctx.failures == ["parts are lost: they could not be uploaded in time"]
    assert ctx.warnings == [
        "lost, because not uploaded in time: 1 part with 1 message (2 bytes); with --data-dir they"
        " would be kept"
    ]


@virtual(started_at=MORNING)
async def test_when_the_end_is_cut_short_what_is_lost_is_told_all_the_same():
    sink, shop, ctx = await opened()
    shop.closed = asyncio.Event()
    await sink.write([1])

    with pytest.raises(TimeoutError):
        async with ctx.clock.timeout(0.1):
            await sink.finish()

    assert ctx.failures == ["parts are lost: they could not be uploaded in time"]
    assert ctx.warnings == [
        "lost, because not uploaded in time: 1 part with 1 message (2 bytes); with --data-dir they"
        " would be kept"
    ]
    assert not shop.is_open
