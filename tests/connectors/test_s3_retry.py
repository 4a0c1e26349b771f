"""What `retry` means for the parts of an `s3` output: others hear that they wait, and for what."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from headrace.compiler.errors import Unreachable
from headrace.connectors.s3.retries import AT_ONCE
from tests.partsinmemory import PartsInMemory
from tests.promises import promise
from tests.s3_keeping import FIRST, MORNING, SECOND, opened
from tests.virtual import virtual

EACH = {"rotate": {"max_rows": 1}}
DAY = 86_400.0


def pauses(shop: Any) -> list[float]:
    """Return the seconds between the tries."""
    return [after - before for (before, _), (after, _) in itertools.pairwise(shop.tried)]


def no_bucket() -> list[Exception]:
    """Return what a store says whose bucket is not there."""
    return [Unreachable("no such bucket", "misconfigured")] * 100


@promise("delivery.parts.waits")
@virtual(started_at=MORNING)
async def test_an_outage_is_told_of_as_that_of_any_output_and_so_is_its_end():
    sink, shop, ctx = await opened(None, **EACH, retry={})
    shop.is_down = True

    await sink.write([1])
    await ctx.clock.sleep(12)
    during = [*ctx.waited_for], ctx.outage.waits_for
    shop.is_down = False
    await ctx.clock.sleep(3)

    assert during == (["unavailable"], "unavailable")
    assert ctx.waited_for == ["unavailable", None]
    assert ctx.outage.retries == len(shop.tried) - 1
    assert (ctx.notes, ctx.called) == (["written to again"], [])
    assert max(pauses(shop)) < 2.5
    await sink.finish()


@promise("delivery.parts.waits")
@virtual(started_at=MORNING)
async def test_where_somebody_has_to_act_it_is_tried_every_half_a_minute_and_called_for_once():
    sink, shop, ctx = await opened(None, **EACH, retry={"seconds": 60})
    shop.faults = no_bucket()

    await sink.write([1])
    await ctx.clock.sleep(600)
    during = ctx.outage.waits_for
    shop.faults = []
    await ctx.clock.sleep(40)

    assert during == "misconfigured"
    assert all(24 <= pause <= 36 for pause in pauses(shop))
    assert ctx.called == ["no such bucket"]
    assert ctx.waited_for == ["misconfigured", None]
    assert (shop.objects, ctx.lost) == ({FIRST: b"1\n"}, {})  # however long that takes
    await sink.finish()


@promise("delivery.parts.waits")
@virtual(started_at=MORNING)
async def test_a_part_that_somebody_has_to_act_for_waits_alone_and_is_told_of():
    sink, shop, ctx = await opened(None, **EACH, retry={})
    shop.refused = {FIRST}

    for n in (1, 2):
        await sink.write([n])
    await ctx.clock.sleep(600)
    during = [*ctx.waited_for], dict(shop.objects)
    mine = [time for time, found in shop.tried if found == FIRST]
    shop.refused = set()
    await ctx.clock.sleep(40)

    assert during == (["misconfigured"], {SECOND: b"2\n"})
    assert all(24 <= after - before <= 36 for before, after in itertools.pairwise(mine))
    assert len(ctx.called) == 1
    assert ctx.waited_for == ["misconfigured", None]
    assert FIRST in shop.objects
    await sink.finish()


@virtual(started_at=MORNING)
async def test_an_outage_beside_such_a_part_is_told_of_and_does_not_end_its_wait():
    sink, shop, ctx = await opened(None, **EACH, retry={})
    shop.refused = {FIRST}
    await sink.write([1])
    await ctx.clock.sleep(1)

    shop.is_down = True
    await sink.write([2])
    await ctx.clock.sleep(1)
    shop.is_down = False
    await ctx.clock.sleep(5)

    assert ctx.waited_for == ["misconfigured", "unavailable", "misconfigured"]
    await sink.finish()


@promise("delivery.parts.seconds")
@pytest.mark.parametrize("most", [None, 100])
@virtual(started_at=MORNING)
async def test_what_fails_when_an_outage_has_lasted_too_long_is_given_up(most: int | None):
    kept = PartsInMemory()
    sink, shop, ctx = await opened(
        kept, **EACH, retry={"seconds": 60}, context={"most_refused": most}
    )
    shop.is_down = True
    for n in range(6):
        await sink.write([n])
    await ctx.clock.sleep(59)
    before = len(kept.parts), len(ctx.letters_of), ctx.lost.total()
    await ctx.clock.sleep(2)
    waits = ctx.outage.waits_for
    tried = len(shop.tried)
    await sink.write([6])
    await ctx.clock.sleep(1)
    each = len(shop.tried) - tried
    shop.is_down = False
    await sink.write([7])
    await ctx.clock.sleep(1)

    assert before == (6, 0, 0)
    assert (each, waits) == (1, None)
    assert len(ctx.letters_of) == (0 if most is None else 7)
    assert ctx.lost.total() == (7 if most is None else 0)
    assert (kept.parts, [*shop.objects.values()]) == ({}, [b"7\n"])
    shop.is_down = True  # another one is bridged as the first was
    await sink.write([8])
    await ctx.clock.sleep(30)
    shop.is_down = False
    await ctx.clock.sleep(40)
    assert len(shop.objects) == 2
    await sink.finish()


@promise("delivery.parts.seconds")
@virtual(started_at=MORNING)
async def test_parts_of_an_earlier_run_are_given_up_as_well():
    kept = PartsInMemory()
    sink, shop, ctx = await opened(kept, **EACH)
    shop.is_down = True
    for n in range(2 * AT_ONCE):
        await sink.write([n])
    await sink.finish()

    sink, shop, ctx = await opened(kept, **EACH, retry={"seconds": 60})
    shop.is_down = True
    await ctx.clock.sleep(3_000)

    assert (kept.parts, ctx.lost.total()) == ({}, 2 * AT_ONCE)
    await sink.finish()


@virtual(started_at=MORNING)
async def test_without_retry_nothing_is_given_up_and_nobody_is_called():
    sink, shop, ctx = await opened(None, **EACH)
    shop.faults = no_bucket()

    await sink.write([1])
    await ctx.clock.sleep(20)
    early = len(shop.tried)
    shop.faults, shop.is_down = [], True
    await ctx.clock.sleep(DAY)

    assert early > 8  # the backoff, as of any failure
    assert (ctx.waited_for, ctx.called, ctx.lost) == ([], [], {})
    shop.is_down = False
    await ctx.clock.sleep(40)
    assert shop.objects == {FIRST: b"1\n"}
    await sink.finish()
