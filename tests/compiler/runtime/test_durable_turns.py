"""What is read back from the disk leaves everybody else their turns."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from time import thread_time

import pytest

from tests.compiler.runtime.durable import Gated, durable, engine_on, post
from tests.slowness import slowness
from tests.stand_ins import run

LONGEST = 0.02


class Counting(Gated):
    """Counts what it is given."""

    count = 0

    async def write(self, batch) -> None:
        await self.gate.wait()
        self.count += 1


@pytest.mark.timed
@pytest.mark.parametrize(
    ("posts", "body"),
    [
        (12_000, b'{"n":1,"machine":"press-01","temp":81.5}'),
        (300, b"[" + b",".join([b'{"n":1,"temp":81.5}'] * 1_500) + b"]"),
        (60, b"[" + b"1e300," * 5_000 + b"1]"),
    ],
    ids=["many small ones", "of many messages", "slow numbers"],
)
async def test_no_turn_is_long_while_much_is_read_back(
    tmp_path: Path, posts: int, body: bytes
) -> None:
    longest: list[float] = []
    out = Counting()

    async def watch() -> None:
        while out.count < posts:
            began = thread_time()
            await asyncio.sleep(0)
            longest.append(thread_time() - began)

    async with engine_on(tmp_path, durable(Gated(is_open=False))) as it:
        for _ in range(0, posts, 20):
            await asyncio.gather(*(post(it, body) for _ in range(20)))
    async with engine_on(tmp_path) as it:
        gc.collect()
        gc.disable()
        try:
            watching = asyncio.ensure_future(watch())
            await run(it, durable(out))
            async with asyncio.timeout(60):
                await watching
        finally:
            gc.enable()

    assert out.count == posts
    assert max(longest) < LONGEST * slowness()
