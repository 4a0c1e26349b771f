"""Payloads that are put together are decoded in parts: what they hold takes nobody else's turn."""

from __future__ import annotations

import asyncio
import gc
import json
from time import thread_time

import pytest

from headrace.compiler.clock import run_virtual
from headrace.compiler.component.envelopes import Wrap
from headrace.compiler.runtime import turns
from headrace.compiler.runtime.unpacking import AT_ONCE
from tests.clients import PATIENCE
from tests.slowness import slowness
from tests.stand_ins import Kept, RawTold, engine, pipeline, reads, run, running, takes

LONGEST = 0.02
"""Seconds of this thread's CPU time: those that other processes take from it do not count."""


def put_together(*bodies: bytes, max_batch: int, **options: object) -> list[list[object]]:
    """Return what an output gets of payloads that have arrived together."""

    async def main() -> list[list[object]]:
        it = engine()
        source, kept = RawTold(it.clock, [[*zip(bodies, range(len(bodies)), strict=True)]]), Kept()
        source.max_batch = max_batch
        await run(it, pipeline("p", [reads(source, **options)], [], [takes(kept)]))
        await it.close()
        return kept.batches

    return run_virtual(main)


@pytest.mark.parametrize("length", [1, 100, AT_ONCE // 2, AT_ONCE // 2 + 1, AT_ONCE, AT_ONCE + 1])
def test_a_batch_is_whole_and_in_order_however_it_was_decoded(length: int) -> None:
    messages = [f"{n}".ljust(length, ".") for n in range(50)]
    bodies = [json.dumps(each).encode() for each in messages]

    assert put_together(*bodies, max_batch=20) == [messages[:20], messages[20:40], messages[40:]]
    wrapped = put_together(*bodies, max_batch=50, envelope=Wrap())
    assert [[each["value"] for each in batch] for batch in wrapped] == [messages]  # type: ignore[index]


def test_what_is_no_json_is_left_out_wherever_it_is() -> None:
    bodies = [b"{", b'"' + b"x" * AT_ONCE + b'"', b"1", b"", b"2", b"["]

    assert put_together(*bodies, max_batch=10) == [["x" * AT_ONCE, 1, 2]]


def test_batches_that_are_not_made_when_the_grace_is_over_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for bound in ("TURN_SECONDS", "LONGEST_SECONDS", "SHORTEST_SECONDS"):
        monkeypatch.setattr(turns, bound, -1.0)  # over before it began: each part waits

    async def main() -> None:
        it = engine()
        await it.clock.sleep(1)  # the turn of a pump that has not had one is over as well
        source, kept = RawTold(it.clock, [[(b" " * AT_ONCE + b"1", n) for n in range(99)]]), Kept()
        source.max_batch = 2
        await it.compile(pipeline("p", [reads(source)], [], [takes(kept)]))
        ended = running(it, "p")
        while not kept.batches:
            await it.clock.sleep(0)

        await ended.stop(0)

        assert kept.batches == [[1, 1]]
        assert {each.message: each.count for each in ended.failures.table.latest()} == {
            "stopped before everything that was accepted went through": 49
        }
        await it.close()

    run_virtual(main)


@pytest.mark.long
@pytest.mark.timed
@pytest.mark.parametrize("bytes", [100, AT_ONCE])
def test_no_turn_is_long_whatever_numbers_the_payloads_hold(bytes: int) -> None:
    body = b"[" + b",".join([b"9e307"] * ((bytes - 2) // 6)) + b"]"
    count, longest = 100 * AT_ONCE // bytes, 0.0
    gc.collect()

    async def main() -> list[list[object]]:
        nonlocal longest
        it = engine()
        source, kept = RawTold(it.clock, [[(body, n) for n in range(count)]]), Kept()
        source.max_batch = count
        await it.compile(pipeline("p", [reads(source)], [], [takes(kept)]))
        last = thread_time()
        while not kept.batches:
            await it.clock.sleep(0)
            longest, last = max(longest, thread_time() - last), thread_time()
        await it.close()
        return kept.batches

    async def in_time() -> list[list[object]]:
        async with asyncio.timeout(PATIENCE):
            return await main()

    assert asyncio.run(in_time()) == [[json.loads(body)] * count]
    assert longest < LONGEST * slowness()
