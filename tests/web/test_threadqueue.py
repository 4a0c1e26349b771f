"""Work that is done one piece after the other, for as many as may wait."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest
from falcon.testing import ASGIConductor

from headrace.web.service import MOST_WAITING, Service, ThreadQueue, TooManyBodies
from tests.clients import PATIENCE
from tests.web.auth.house import House
from tests.web.auth.people import JSON, guarded


async def test_work_is_done_one_after_the_other_in_the_order_in_which_it_came() -> None:
    turns, done = ThreadQueue(), list[int]()
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
    turns = ThreadQueue()

    with pytest.raises(ZeroDivisionError):
        await turns.take(divmod, 1, 0)

    assert await turns.take(divmod, 7, 2) == (3, 1)


async def test_no_more_wait_than_may() -> None:
    turns, may_end = ThreadQueue(), threading.Event()
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
    turns, has_begun, may_end = ThreadQueue(), asyncio.Event(), threading.Event()
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


@pytest.mark.parametrize(
    ("full", "answers"),
    [("reading", {503: 1, 200: 2}), ("logins", {201: 1, 503: 2})],
)
async def test_who_signs_in_without_need_waits_in_no_line_of_who_posts_configs(
    service: Service, client: ASGIConductor, full: str, answers: dict[int, int]
) -> None:
    setattr(service, full, ThreadQueue(most_waiting=0))

    answered = [
        await client.simulate_post("/api/pipelines", json={"inputs": [{"type": "http"}]}),
        await client.simulate_post("/api/auth/login", json={"username": "a", "password": "b"}),
        await client.simulate_post("/api/auth/token", json={"token": "a"}),
    ]

    assert Counter(each.status_code for each in answered) == answers


async def test_logins_of_a_server_with_accounts_wait_in_the_line_of_logins(
    service: Service,
) -> None:
    house = House(service, guarded(service.clock))
    house.service.logins = ThreadQueue(most_waiting=0)

    answer = await house.ask("POST", "/api/auth/login", JSON, {"username": "a", "password": "b"})

    assert answer.status == 503
