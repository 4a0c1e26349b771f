"""Work that is done one piece after the other, for as many as may wait."""

from __future__ import annotations

import asyncio
import threading

import pytest

from headrace.web.turns import MOST_WAITING, TooManyBodies, Turns
from tests.clients import PATIENCE


async def test_work_is_done_one_after_the_other_in_the_order_in_which_it_came() -> None:
    turns, done = Turns(), list[int]()
    at_once, most = 0, 0

    def work(number: int) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        done.append(number)
        at_once -= 1
        return number

    assert await asyncio.gather(*(turns.take(work, n) for n in range(20))) == [*range(20)]
    assert (most, done) == (1, [*range(20)])


async def test_what_work_raises_is_raised_and_the_next_has_its_turn() -> None:
    turns = Turns()

    with pytest.raises(ZeroDivisionError):
        await turns.take(divmod, 1, 0)

    assert await turns.take(divmod, 7, 2) == (3, 1)


async def test_no_more_wait_than_may() -> None:
    turns, may_end = Turns(), threading.Event()
    waiting = [
        asyncio.ensure_future(turns.take(may_end.wait, PATIENCE)) for _ in range(MOST_WAITING + 1)
    ]
    await asyncio.sleep(0)

    with pytest.raises(TooManyBodies, match="100 bodies wait to be read already"):
        await turns.take(may_end.wait, PATIENCE)
    waiting.pop().cancel()  # whose place is free
    await asyncio.sleep(0)
    waiting.append(asyncio.ensure_future(turns.take(may_end.wait, PATIENCE)))
    may_end.set()

    assert all(await asyncio.gather(*waiting))


async def test_work_that_has_begun_keeps_its_turn_when_nobody_waits_for_it_any_more() -> None:
    turns, has_begun, may_end = Turns(), asyncio.Event(), threading.Event()
    loop, read = asyncio.get_running_loop(), list[str]()

    def work() -> None:
        loop.call_soon_threadsafe(has_begun.set)
        may_end.wait(PATIENCE)
        read.append("first")

    left = asyncio.ensure_future(turns.take(work))
    await has_begun.wait()
    left.cancel()
    next_one = asyncio.ensure_future(turns.take(read.append, "second"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert read == []
    may_end.set()
    await next_one

    assert (read, left.cancelled()) == (["first", "second"], True)
