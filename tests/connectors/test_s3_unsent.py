"""Parts that were not uploaded when their pipeline ended: on the disk, and sent by whoever is next."""

from __future__ import annotations

import asyncio

import pytest

from headrace.connectors.s3.objectpart import Content
from tests.s3_keeping import FIRST, MORNING, SECOND, files, left, opened, part, unsent
from tests.s3_sides import Shop, context
from tests.virtual import virtual


@virtual(started_at=MORNING)
async def test_what_is_not_uploaded_in_time_is_kept_and_the_log_says_where(tmp_path):
    ctx = await left(tmp_path)

    [file] = files(tmp_path)
    where = file.parent.relative_to(tmp_path)
    assert where.parts[0] == "s3-unsent"
    assert where.parts[1].startswith("plant-")
    assert file.stat().st_mode & 0o777 == 0o600
    assert ctx.warnings == [
        f"not uploaded: 2 parts with 3 messages (6 bytes); kept in '{where}' of --data-dir for the"
        " next output with this bucket and prefix"
    ]
    assert set(ctx.failures) == {"the shop does not answer"}


@virtual(started_at=MORNING)
async def test_the_next_output_sends_it_under_the_names_it_had_beside_its_own(tmp_path):
    await left(tmp_path)

    sink, shop, ctx = await opened(tmp_path)
    await sink.write(["new"])
    await sink.finish()

    third = "p/2026-03-01T08-00-02Z-000001.ndjson"
    assert shop.objects == {FIRST: b"0\n1\n", SECOND: b"2\n", third: b'"new"\n'}
    assert files(tmp_path) == []
    assert ctx.notes == ["2 parts with 3 messages (6 bytes) of an earlier run are uploaded now"]


@virtual(started_at=MORNING)
async def test_no_new_part_gets_the_name_of_one_that_is_kept(tmp_path):
    unsent(tmp_path).keep([part(b"old\n")], MORNING).close()

    sink, shop, ctx = await opened(tmp_path)
    await sink.write(["new"])
    await sink.finish()

    assert shop.objects == {FIRST: b"old\n", SECOND: b'"new"\n'}
    assert ctx.warnings == []


@virtual(started_at=MORNING)
async def test_its_name_may_be_taken_by_then(tmp_path):
    await left(tmp_path)
    ctx = context("http://127.0.0.1:1")
    shop = Shop(ctx.clock)
    shop.taken.add(FIRST)

    sink, _, _ = await opened(tmp_path, shop)
    await sink.finish()

    assert sorted(shop.objects.values()) == [b"0\n1\n", b"2\n"]
    assert FIRST not in shop.objects
    assert files(tmp_path) == []


@virtual(started_at=MORNING)
async def test_an_output_elsewhere_leaves_it_alone(tmp_path):
    await left(tmp_path)

    for options in ({"prefix": "q"}, {"context": {"connection": {"bucket": "other"}}}):
        sink, shop, _ = await opened(tmp_path, **options)
        await sink.finish()
        assert shop.objects == {}

    assert len(files(tmp_path)) == 1


@virtual(started_at=MORNING)
async def test_of_two_outputs_one_sends_it(tmp_path):
    await left(tmp_path)

    one, shop, _ = await opened(tmp_path)
    two, other, _ = await opened(tmp_path)
    await one.finish()
    await two.finish()

    assert (len(shop.objects), len(other.objects)) == (2, 0)


@virtual(started_at=MORNING)
async def test_what_cannot_be_sent_the_next_time_either_stays(tmp_path):
    await left(tmp_path)

    ctx = await left(tmp_path)
    sink, shop, _ = await opened(tmp_path)
    await sink.finish()

    assert "not uploaded: 4 parts with 6 messages (12 bytes)" in ctx.warnings[-1]
    assert sorted(shop.objects.values()) == [b"0\n1\n", b"0\n1\n", b"2\n", b"2\n"]
    assert files(tmp_path) == []


@virtual(started_at=MORNING)
async def test_what_is_uploaded_after_all_is_not_kept(tmp_path):
    sink, shop, ctx = await opened(tmp_path)
    shop.seconds = 1.0

    await sink.write([1])
    await sink.finish()

    assert ctx.clock.monotonic() == 1
    assert shop.objects == {FIRST: b"1\n"}
    assert files(tmp_path) == []
    assert (ctx.warnings, ctx.failures) == ([], [])


@virtual(started_at=MORNING)
async def test_when_the_end_is_cut_short_it_is_kept_all_the_same(tmp_path):
    for seconds in (0.1, 0.6, 2.4):
        sink, shop, ctx = await opened(tmp_path)
        shop.closed = asyncio.Event()
        await sink.write([seconds])

        with pytest.raises(TimeoutError):
            async with ctx.clock.timeout(seconds):
                await sink.finish()
        await ctx.clock.sleep(0.001)  # a thread is writing

        assert ctx.warnings
        assert "kept in" in ctx.warnings[-1]
    sink, shop, _ = await opened(tmp_path)
    await sink.finish()

    assert sorted(shop.objects.values()) == [b"0.1\n", b"0.6\n", b"2.4\n"]


@virtual(started_at=MORNING)
async def test_what_is_to_be_compressed_is_compressed_by_whoever_sends_it(tmp_path):
    sink, shop, _ = await opened(tmp_path, compression="gzip", rotate={"max_rows": 1000})
    shop.closed = asyncio.Event()
    await sink.write([{"n": n} for n in range(999)])
    await sink.finish()

    sink, shop, _ = await opened(tmp_path)
    await sink.finish()

    [sent] = shop.parts
    assert sent.key == f"{FIRST}.gz"
    assert sent.media_type == "application/gzip"
    assert len(shop.objects[sent.key]) < 5000


@virtual(started_at=MORNING)
async def test_a_part_is_told_from_others_by_what_it_was_known_by_before(tmp_path):
    kept = part(token="abc", upload=(FIRST, "upload-1"))

    unsent(tmp_path).keep([kept, part(b"2\n")], MORNING).close()
    [found, _], wrong = unsent(tmp_path).parts()
    found.prepare()

    assert wrong == []
    assert (found.key, found.token, found.upload, found.messages) == (FIRST, "abc", kept.upload, 1)
    assert found.content == Content(b"1\n", "none")
