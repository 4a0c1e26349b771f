"""A connection that is posted to in the protocol idles from its last answer, and no longer than it may."""

from __future__ import annotations

import asyncio

from headrace.compiler.clock import Clock
from headrace.web.asgi import AsgiMessage, Receive, Send, respond
from tests.virtual import virtual
from tests.web.process.posting import entered, one, statuses
from tests.web.process.wires import Slow, steps, wire_of
from tests.web.resources.ingest.posting_to import Asked

KEEP_ALIVE = 5
"""Seconds that a connection may idle here: uvicorn's default."""


@virtual
async def test_a_connection_idles_from_its_last_answer() -> None:
    connection, clock = entered(Asked()), Clock(asyncio.get_running_loop())
    is_open = []
    for wait in (0, KEEP_ALIVE - 1, KEEP_ALIVE - 1, 0.9):
        if wait > 1:
            connection.data_received(one(1))
        await clock.sleep(wait)
        is_open.append(wire_of(connection).is_open)
    connection.data_received(one(1))
    await clock.sleep(KEEP_ALIVE - 0.1)
    is_open.append(wire_of(connection).is_open)
    await clock.sleep(0.2)

    assert [*is_open, wire_of(connection).is_open] == [True] * 5 + [False]


@virtual
async def test_a_connection_idles_when_the_timer_was_set_by_an_earlier_answer() -> None:
    connection, clock = entered(Asked()), Clock(asyncio.get_running_loop())
    connection.data_received(one(1))
    await clock.sleep(1)
    connection.data_received(one(2))
    is_open = []
    for wait in (KEEP_ALIVE - 0.1, 0.2):
        await clock.sleep(wait)
        is_open.append(wire_of(connection).is_open)

    assert is_open == [True, False]


@virtual
async def test_a_request_that_has_begun_is_not_idle() -> None:
    connection, clock = entered(Asked()), Clock(asyncio.get_running_loop())
    whole = one(2)
    connection.data_received(one(1))
    connection.data_received(whole[:-1])
    await clock.sleep(3 * KEEP_ALIVE)
    is_open = [wire_of(connection).is_open]

    connection.data_received(whole[-1:])
    for wait in (KEEP_ALIVE - 0.1, 0.2):
        await clock.sleep(wait)
        is_open.append(wire_of(connection).is_open)

    assert is_open == [True, True, False]


@virtual
async def test_a_connection_whose_answer_takes_long_is_not_idle_although_a_post_came_with_it() -> (
    None
):
    slow, clock = Slow(), Clock(asyncio.get_running_loop())
    connection = entered(Asked(), slow)
    connection.data_received(one(1) + b"GET / HTTP/1.1\r\n\r\n")
    await clock.sleep(3 * KEEP_ALIVE)
    is_open = wire_of(connection).is_open
    slow.may_answer.set()
    await clock.sleep(KEEP_ALIVE + 0.1)

    assert is_open
    assert statuses(connection) == [202, 200]
    assert not wire_of(connection).is_open


async def test_what_an_application_answers_idles_as_well() -> None:
    async def refusing(scope: AsgiMessage, receive: Receive, send: Send) -> None:
        await respond(send, 404, b"{}")

    connection = entered(Asked(), refusing)
    connection.data_received(one(1) + b"GET / HTTP/1.1\r\n\r\n")
    await steps()

    assert statuses(connection) == [202, 404]
    assert connection.timeout_keep_alive_task is not None


@virtual
async def test_a_refused_post_idles_when_its_body_has_come_behind_the_answer() -> None:
    asked = Asked()
    asked.needs = "key"
    connection, clock = entered(asked), Clock(asyncio.get_running_loop())
    connection.data_received(one(1)[:-1])
    before = statuses(connection)
    await clock.sleep(2 * KEEP_ALIVE)
    connection.data_received(one(1)[-1:])
    is_open = []
    for wait in (KEEP_ALIVE - 0.1, 0.2):
        await clock.sleep(wait)
        is_open.append(wire_of(connection).is_open)

    assert before == [401]
    assert is_open == [True, False]
    assert not connection.transport.is_lingering


@virtual
async def test_a_blank_line_behind_a_post_begins_no_request() -> None:
    connection, clock = entered(Asked()), Clock(asyncio.get_running_loop())
    connection.data_received(one(1))
    connection.data_received(b"\r\n")
    is_open = []
    for wait in (KEEP_ALIVE - 0.1, 0.2):
        await clock.sleep(wait)
        is_open.append(wire_of(connection).is_open)

    assert is_open == [True, False]
