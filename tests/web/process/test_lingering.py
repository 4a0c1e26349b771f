"""What is answered before it is read: the answer arrives, and the rest is dropped, for a while."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.clock import Clock
from headrace.web.asgi import AsgiMessage, Receive, Send, respond
from headrace.web.process.boundedreading import MOST_HEAD_BYTES
from headrace.web.process.connectionlimit import ConnectionLimit
from headrace.web.process.lingering import LINGER_SECONDS, MOST_DROPPED, SILENT_SECONDS
from headrace.web.process.protocol import Protocol
from tests.virtual import virtual
from tests.web.process.wires import HEAD, House, Slow, open_ones, send, steps, wire_of

PIECE = b"x" * 65536
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LONG = HEAD + b"Content-Length: 99999999\r\n\r\n"


async def too_large(scope: AsgiMessage, receive: Receive, send: Send) -> None:
    """Refuse a body that is not read."""
    await respond(send, 413, b"{}", (b"connection", b"close"))


async def refused(house: House | None = None) -> Protocol:
    """Return a connection whose request is answered, and not read."""
    guest = (house or House(ConnectionLimit(), too_large)).enter()
    guest.data_received(LONG)
    await steps()
    assert wire_of(guest).written.startswith(b"HTTP/1.1 413 ")
    return guest


async def test_our_side_is_closed_at_once_and_the_other_when_the_client_closes_it() -> None:
    guest = await refused()
    wire = wire_of(guest)

    assert (wire.has_ended, wire.is_open) == (True, True)
    for _ in range(100):
        guest.data_received(PIECE)
    assert (wire.is_open, guest.held) == (True, 0)
    guest.connection_lost(None)
    assert not wire.is_open


async def test_a_head_that_is_too_large_lingers_as_well() -> None:
    guest = House(ConnectionLimit()).enter()
    guest.data_received(b"GET / HTTP/1.1\r\nX: ")
    for _ in range(MOST_HEAD_BYTES // 1024 + 1):
        guest.data_received(b"x" * 1024)

    assert wire_of(guest).written.startswith(b"HTTP/1.1 431 ")
    assert wire_of(guest).written.count(b"HTTP/1.1 ") == 1
    assert (wire_of(guest).has_ended, wire_of(guest).is_open) == (True, True)


async def test_no_more_is_dropped_than_is_reasonable() -> None:
    guest = await refused()

    for _ in range(MOST_DROPPED // len(PIECE)):
        guest.data_received(PIECE)
    is_open = [wire_of(guest).is_open]
    guest.data_received(PIECE)

    assert [*is_open, wire_of(guest).is_open] == [True, False]


@virtual
async def test_who_sends_nothing_more_is_waited_for_no_longer() -> None:
    guest, clock = await refused(), Clock(asyncio.get_running_loop())

    await clock.sleep(SILENT_SECONDS - 0.1)
    is_open = [wire_of(guest).is_open]
    await clock.sleep(0.2)

    assert [*is_open, wire_of(guest).is_open] == [True, False]


@virtual
async def test_who_goes_on_for_ever_is_not_heard_for_ever() -> None:
    guest, seconds = await refused(), 0
    clock = Clock(asyncio.get_running_loop())

    while wire_of(guest).is_open:
        guest.data_received(b"x")
        await clock.sleep(1)
        seconds += 1

    assert seconds in (LINGER_SECONDS, LINGER_SECONDS + 1)


async def test_who_lingers_makes_room_before_all_others() -> None:
    house = House(ConnectionLimit(most=2), too_large)
    idle, lingering = house.enter(), await refused(house)

    late = house.enter()

    assert open_ones([idle]) == [0]
    assert (wire_of(lingering).is_open, wire_of(late).is_open) == (False, True)


async def test_a_server_that_ends_does_not_wait_for_who_lingers() -> None:
    guest = await refused()

    guest.shutdown()

    assert not wire_of(guest).is_open


async def test_a_request_that_was_read_is_closed_at_once() -> None:
    guest = House(ConnectionLimit()).enter()

    guest.data_received(HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")
    await steps()

    assert wire_of(guest).written.startswith(b"HTTP/1.1 200 ")
    assert (wire_of(guest).has_ended, wire_of(guest).is_open) == (False, False)


async def test_a_request_for_which_there_is_no_room_is_told_so() -> None:
    slow = Slow()
    house = House(ConnectionLimit(most_held=12_000), slow)
    guests = [house.enter() for _ in range(3)]

    for each in guests:
        send(each)
        await steps()
    slow.may_answer.set()
    await steps()

    said = [wire_of(each).written[:13] for each in guests]
    assert said == [b"HTTP/1.1 200 ", b"HTTP/1.1 200 ", b"HTTP/1.1 503 "]
    assert wire_of(guests[2]).has_ended


@pytest.mark.parametrize("junk", [b"zz\r\n", b"-1\r\n"])
async def test_what_turns_out_to_be_no_http_is_told_so_and_nobody_waits_for_the_rest(
    junk: bytes,
) -> None:
    over = asyncio.Event()

    async def reading(scope: AsgiMessage, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        over.set()
        await respond(send, 200, b"{}")  # to nobody

    guest = House(ConnectionLimit(), reading).enter()
    guest.data_received(CHUNKED)
    await steps()
    guest.data_received(junk)
    await steps()

    assert over.is_set()
    assert wire_of(guest).written.count(b"HTTP/1.1 ") == 1
    assert wire_of(guest).written.startswith(b"HTTP/1.1 400 ")
