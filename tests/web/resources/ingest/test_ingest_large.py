"""Posting what is large: decoded in slices, one after the other, and nobody is held up."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable

import pytest

from headrace.compiler.jsontext import decode
from headrace.compiler.runtime.wayin import LEAST_COUNTED, LargePosts
from tests.web.resources.ingest.posting_to import LARGE_BODY, post


@pytest.mark.long
async def test_a_large_body_is_what_it_would_be_at_once(way, asked) -> None:
    half = len(LARGE_BODY) // 2

    exchange = await post(way, LARGE_BODY[:half], LARGE_BODY[half:])

    assert exchange.json == {"accepted": 20_001}
    assert [list(batch) for batch, _ in asked.offered] == [decode(LARGE_BODY)]
    assert asked.sizes == [20_001 * LEAST_COUNTED]


async def test_a_small_post_is_answered_while_a_large_one_is_decoded(way, asked) -> None:
    large = asyncio.ensure_future(post(way, LARGE_BODY))
    for _ in range(10):
        await asyncio.sleep(0)

    small = await post(way, b"1")

    assert small.status == 202
    assert not large.done()
    assert (await large).status == 202
    assert [len(batch) for batch, _ in asked.offered] == [1, 20_001]


async def test_large_bodies_are_decoded_one_after_the_other(way, asked) -> None:
    bodies = [LARGE_BODY, b"[%b]" % (b"1," * 200_000 + b"1"), b"[%b]" % (b"[]," * 150_000 + b"1")]

    exchanges = await asyncio.gather(*(post(way, body) for body in bodies))

    assert [exchange.status for exchange in exchanges] == [202, 202, 202]
    assert [len(batch) for batch, _ in asked.offered] == [20_001, 200_001, 150_001]


@pytest.mark.parametrize(
    ("of", "keeps_digits"),
    [
        ([b"[" * 100 + b"1" + b"]" * 100, *[b"1"] * 50_000], False),
        ([b"[[]]"] * 20_000, True),
        ([b"59841654316460142684e95"] * 5_000, False),
    ],
    ids=["nests", "many_brackets_where_digits_are_kept", "slow_numbers"],
)
async def test_what_takes_long_though_it_is_not_large_takes_its_turns_as_well(
    way, asked, of: list[bytes], keeps_digits: bool
) -> None:
    asked.decoding.keep_digits(keeps=keeps_digits)
    told = asyncio.ensure_future(post(way, b"[%b]" % b",".join(of)))
    for _ in range(5):
        await asyncio.sleep(0)

    assert not told.done()
    assert (await told).json == {"accepted": len(of)}


async def test_a_client_that_leaves_while_its_large_body_is_decoded_holds_nobody_up(
    way, asked
) -> None:
    left = way.exchange([LARGE_BODY])
    leaving, waiting = (asyncio.ensure_future(work) for work in (left.run(), post(way, LARGE_BODY)))
    for _ in range(5):
        await asyncio.sleep(0)

    left.leave()
    await leaving

    assert (left.messages, asked.offered) == ([], [])
    assert not waiting.done()
    assert (await waiting).status == 202
    assert len(asked.offered) == 1


async def test_beyond_the_bound_no_further_large_body_waits(way, asked) -> None:
    asked.large = LargePosts(2 * len(LARGE_BODY))

    exchanges = await asyncio.gather(*(post(way, LARGE_BODY) for _ in range(3)))
    later = await post(way, LARGE_BODY)

    assert [exchange.status for exchange in exchanges] == [202, 202, 503]
    assert exchanges[2].headers["retry-after"] == "1"
    assert exchanges[2].json == {
        "error": "too many large bodies wait to be decoded, nothing was taken"
    }
    assert later.status == 202


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        LARGE_BODY[:-1],
        LARGE_BODY + b"x",
        LARGE_BODY[:-2] + b"x]",
        LARGE_BODY.replace(b"}", b"]", 1),
        b"n,temp\n" * 100_000,
        b'"' + b"a" * 400_000,
    ],
    ids=["deep", "cut off", "goes on", "wrong at the end", "wrong bracket", "lines", "open string"],
)
async def test_a_large_body_that_is_not_json_is_refused(way, asked, body) -> None:
    exchange = await post(way, body)

    assert exchange.status == 400
    assert exchange.json["error"].startswith("the body is not JSON: ")
    assert asked.offered == []


async def _kept(*exchanges: Callable[[], Awaitable[object]]) -> int:
    """Return the bytes that are there after some posts, beside those after the first of them."""
    there = []
    gc.disable()
    tracemalloc.start()
    try:
        for exchange in exchanges:
            await exchange()
            for _ in range(200):  # what was decoded is let go of slice by slice
                await asyncio.sleep(0)
            there.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        gc.enable()
    return there[-1] - there[0]


async def test_a_large_body_that_is_refused_is_not_kept_until_somebody_looks_for_cycles(
    way,
) -> None:
    async def refused() -> None:
        assert (await post(way, LARGE_BODY[:-1] + b",x]")).status == 400

    assert await _kept(*[refused] * 3) < len(LARGE_BODY) / 2


async def test_the_large_body_of_a_client_that_leaves_is_not_kept_either(way) -> None:
    async def left() -> None:
        exchange = way.exchange([LARGE_BODY])
        leaving = asyncio.ensure_future(exchange.run())
        for _ in range(8):
            await asyncio.sleep(0)
        exchange.leave()
        await leaving
        assert exchange.messages == []

    assert await _kept(*[left] * 3) < len(LARGE_BODY) / 2
