"""What becomes of the parts of an `s3` output when its pipeline ends."""

from __future__ import annotations

import asyncio

import pytest

from tests.s3_filling import MORNING, key, opened
from tests.virtual import virtual


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
    assert ctx.lost == {"parts are lost: they could not be uploaded in time": 5}
    assert ctx.classes[-1] == "unavailable"
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
