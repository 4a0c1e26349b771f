"""Who asks: work goes on as long as its client waits for it."""

from __future__ import annotations

import asyncio
import threading

import falcon
import falcon.testing
import pytest

from headrace.web.asgi import AsgiMessage
from headrace.web.bodies import Request
from headrace.web.service import ThreadQueue
from tests.clients import PATIENCE


class Connection:
    """A client whose request has been read; it leaves when it is told to."""

    def __init__(self) -> None:
        self._left = asyncio.Event()

    def leave(self) -> None:
        self._left.set()

    async def receive(self) -> AsgiMessage:
        await self._left.wait()
        return {"type": "http.disconnect"}


def request(connection: Connection) -> Request:
    return Request(falcon.testing.create_scope(), connection.receive)


async def test_what_work_returns_is_returned_to_a_client_that_waits() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert await request(Connection()).unless_gone(work()) == 7


async def test_what_work_raises_is_raised() -> None:
    async def work() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        await request(Connection()).unless_gone(work())


async def test_work_is_cancelled_when_its_client_leaves() -> None:
    connection, begun, cancelled = Connection(), asyncio.Event(), asyncio.Event()

    async def work() -> int:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return 7

    answering = asyncio.ensure_future(request(connection).unless_gone(work()))
    await begun.wait()
    connection.leave()

    assert await answering is None
    await cancelled.wait()


async def test_work_is_cancelled_with_its_request() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    answering = asyncio.ensure_future(request(Connection()).unless_gone(work()))
    await begun.wait()
    answering.cancel()

    with pytest.raises(asyncio.CancelledError):
        await answering
    await cancelled.wait()


async def test_a_body_is_read_for_a_client_that_waits_whatever_comes_out() -> None:
    assert await request(Connection()).in_turn(ThreadQueue(), lambda: None) is None
    assert await request(Connection()).in_turn(ThreadQueue(), divmod, 7, 2) == (3, 1)


async def test_who_has_left_waits_in_no_queue() -> None:
    turns, may_end, read = ThreadQueue(), threading.Event(), list[str]()
    reading = asyncio.ensure_future(request(Connection()).in_turn(turns, may_end.wait, PATIENCE))
    leaving = Connection()
    gone = asyncio.ensure_future(request(leaving).in_turn(turns, read.append, "of who has left"))
    stays = asyncio.ensure_future(request(Connection()).in_turn(turns, read.append, "of who stays"))
    for _ in range(5):
        await asyncio.sleep(0)

    leaving.leave()
    with pytest.raises(falcon.HTTPBadRequest) as refused:
        await gone
    assert refused.value.description == "the client has left"
    may_end.set()
    await asyncio.gather(reading, stays)

    assert read == ["of who stays"]
