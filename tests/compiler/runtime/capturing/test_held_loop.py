"""However large what is captured is, and whatever is redacted of it, nobody else waits for long."""

from __future__ import annotations

import asyncio
import gc
import json
from time import thread_time

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.capturing.captures import CaptureRequest
from headrace.compiler.runtime.engine import Engine
from tests.authoring.playing.playing import program
from tests.clients import PATIENCE
from tests.slowness import shortest, slowness

pytestmark = [
    pytest.mark.long,
    pytest.mark.timed,
]

LONGEST = 0.02
"""Seconds of this thread's CPU time: those that other processes take from it do not count."""
BODIES = {
    "messages": lambda: [{"temp": n, "name": "x" * 80, "n": [1, 2, 3]} for n in range(100_000)],
    "one of lists": lambda: [{"name": [[n] for n in range(1_000_000)]}],
    "one text": lambda: ["é\x01" * 2_000_000],
    "one of texts": lambda: [{"name": [f"n{n}" for n in range(400_000)]}],
}


@pytest.fixture(autouse=True)
def _nothing_to_collect() -> None:
    """Have the interpreter look through what a test makes, and not through what all others did."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("redact", [(), ("name",)], ids=["as it is", "redacted"])
@pytest.mark.parametrize("kind", BODIES)
def test_no_turn_is_long(kind: str, redact: tuple[str, ...]) -> None:
    body = json.dumps(BODIES[kind]()).encode()

    def seconds() -> float:
        return _longest_turn(body, redact)

    assert shortest(seconds, LONGEST, times=3) < LONGEST * slowness()


def _longest_turn(body: bytes, redact: tuple[str, ...]) -> float:
    """Return the CPU seconds of the longest turn while a body is posted and captured."""
    longest = 0.0

    async def captured() -> int:
        nonlocal longest
        it = Engine(Clock(asyncio.get_running_loop()))
        await it.load(program("- {id: p, inputs: [{type: http}]}"))
        capture = it.capture(CaptureRequest(bytes=2**30, redact=redact))

        async def look() -> None:
            nonlocal longest
            last = thread_time()
            while True:
                await it.clock.sleep(0)
                longest, last = max(longest, thread_time() - last), thread_time()

        looking = asyncio.ensure_future(look())
        way_in = it.way_in("p")
        assert way_in is not None
        taken = way_in.take(body, None)
        assert not isinstance(taken, int)
        await taken
        size = lines = 0
        async for part in capture:
            size += len(part)
            lines += part.count(b"\n")
            if lines == 2:  # the header, and what was posted
                break
        looking.cancel()
        capture.close()
        await it.close()
        return size

    async def in_time() -> int:
        async with asyncio.timeout(4 * PATIENCE):
            return await captured()

    assert asyncio.run(in_time()) > len(body) // 20
    return longest
