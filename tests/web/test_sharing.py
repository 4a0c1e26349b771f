"""One answer for all who ask meanwhile, and never one about what was before the question."""

from __future__ import annotations

import asyncio

import pytest

from headrace.web.service import SharedWork


class Slow:
    """Work that goes on until it is let go, and tells the how manieth it was."""

    def __init__(self) -> None:
        self.begun: list[asyncio.Future[None]] = []

    async def work(self) -> int:
        number = len(self.begun)
        self.begun.append(asyncio.get_running_loop().create_future())
        await self.begun[number]
        return number


async def some_turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_who_asks_while_one_is_worked_out_gets_the_next_all_together():
    shared, slow = SharedWork[int](), Slow()
    first = asyncio.ensure_future(shared.ask(slow.work))
    await some_turns()

    later = [asyncio.ensure_future(shared.ask(slow.work)) for _ in range(50)]
    await some_turns()
    assert len(slow.begun) == 1
    slow.begun[0].set_result(None)
    await some_turns()
    slow.begun[1].set_result(None)

    assert await first == 0
    assert await asyncio.gather(*later) == [1] * 50
    assert len(slow.begun) == 2


async def test_a_failure_is_told_to_all_and_the_next_begins_anew():
    shared, slow = SharedWork[int](), Slow()

    async def fails() -> int:
        raise ValueError("no")

    said = await asyncio.gather(*(shared.ask(fails) for _ in range(3)), return_exceptions=True)
    assert [str(each) for each in said] == ["no"] * 3

    again = asyncio.ensure_future(shared.ask(slow.work))
    await some_turns()
    slow.begun[0].set_result(None)
    assert await again == 0


async def test_who_leaves_takes_the_answer_from_nobody():
    shared, slow = SharedWork[int](), Slow()
    leaving = asyncio.ensure_future(shared.ask(slow.work))
    staying = asyncio.ensure_future(shared.ask(slow.work))
    await some_turns()

    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    slow.begun[0].set_result(None)

    assert await staying == 0
