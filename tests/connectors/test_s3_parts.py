"""How the `s3` output names, fills and closes its parts: on virtual time, to a store in memory."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime

import pytest
import zstandard

from headrace.connectors.s3.objectkeys import BucketNumbers, PartNumbers, bucket_numbers
from tests.rotating import write_for_a_minute_each
from tests.s3_filling import MIB, MORNING, QUARTER, key, opened, sent
from tests.s3_sides import Shop, context, shopping
from tests.virtual import virtual

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

    await write_for_a_minute_each(sink, ctx.clock)

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
