"""What is dropped of what does not arrive: a connection, packet by packet."""

from __future__ import annotations

import resource

import pytest
import pytest_asyncio

from headrace.web.process.connectionlimit import ConnectionLimit, room
from headrace.web.process.protocol import LOOKS, Protocol
from tests.web.process.wires import (
    BODY,
    HEAD,
    House,
    Slow,
    open_ones,
    refusing,
    send,
    steps,
    wire_of,
)


@pytest_asyncio.fixture
async def connection() -> Protocol:
    return House(ConnectionLimit()).enter()


def looks_until_stuck(connection: Protocol) -> int:
    return next(look for look in range(3 * LOOKS) if connection.is_stuck())


@pytest.mark.parametrize(
    "begun",
    [b"", b"P", b"POST /in HTTP/1.1\r\nHost: ", HEAD, HEAD + b"Content-Length: 3\r\n\r\n1"],
)
async def test_a_request_that_does_not_arrive_is_stuck_at_last(
    connection: Protocol, begun: bytes
) -> None:
    if begun:
        connection.data_received(begun)

    assert looks_until_stuck(connection) == LOOKS


async def test_a_head_has_to_be_complete_in_time_and_a_body_only_to_go_on(
    connection: Protocol,
) -> None:
    connection.data_received(b"POST /in HTTP/1.1\r\n")
    heads = []
    for _ in range(LOOKS + 1):
        connection.data_received(b"X: x\r\n")
        heads.append(connection.is_stuck())
    connection.data_received(b"Content-Length: 1000\r\n\r\n")
    bodies = []
    for _ in range(3 * LOOKS):
        connection.data_received(b"1")
        bodies.append(connection.is_stuck())

    assert (heads[-1], any(bodies)) == (True, False)


async def test_what_has_arrived_is_never_stuck(connection: Protocol) -> None:
    connection.data_received(HEAD + b"Content-Length: 2\r\n\r\n{}")

    assert not any(connection.is_stuck() for _ in range(3 * LOOKS))


async def test_requests_that_come_in_one_packet_do_not_count_for_the_next(
    connection: Protocol,
) -> None:
    connection.data_received((HEAD + b"Content-Length: 2\r\n\r\n{}") * 5000 + HEAD)
    connection.data_received(b"Content-Length: 2\r\n\r\n{}")

    assert not connection.transport.is_closing()


async def test_a_trailer_has_the_bounds_of_a_head(connection: Protocol) -> None:
    connection.data_received(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ")
    is_closing = []
    for _ in range(6):
        connection.data_received(b"x" * 16 * 1024)
        is_closing.append(connection.transport.is_closing())

    assert is_closing == [False] * 4 + [True] * 2
    assert wire_of(connection).written.startswith(b"HTTP/1.1 431 ")
    assert b"the trailer of a request has at most 65536 bytes" in wire_of(connection).written


async def test_a_body_in_chunks_may_have_more_than_a_head(connection: Protocol) -> None:
    connection.data_received(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(20):
        connection.data_received(b"4000;x\r\n" + b"x" * 0x4000 + b"\r\n")
    connection.data_received(b"0\r\nX: y\r\n\r\n")
    await steps()

    assert wire_of(connection).written.startswith(b"HTTP/1.1 200 ")


async def test_an_answer_that_nobody_reads_on_is_stuck_at_last(connection: Protocol) -> None:
    wire = wire_of(connection)
    connection.data_received(HEAD + b"Content-Length: 2\r\n\r\n{}")
    wire.unread = 5000
    slowly = []
    for _ in range(3 * LOOKS):
        wire.unread -= 1
        slowly.append(connection.is_stuck())

    assert not any(slowly)
    assert looks_until_stuck(connection) == LOOKS - 1  # the last look was the first of these


async def test_who_is_waited_for_longest_makes_room_for_who_comes() -> None:
    house = House(ConnectionLimit(most=32))
    guests = [house.enter() for _ in range(32)]
    guests[0].data_received(HEAD + b"Content-Length: 2\r\n\r\n{}")  # it is being answered

    guests += [house.enter() for _ in range(5)]

    # Two of those who can go do so at once.
    assert open_ones(guests) == [0, *range(7, 37)]


async def test_a_head_or_a_body_that_does_not_end_makes_room_as_well() -> None:
    house = House(ConnectionLimit(most=2))
    guests = [house.enter(), house.enter()]
    guests[0].data_received(b"GET / HT")
    guests[1].data_received(HEAD + b"Content-Length: 2\r\n\r\n{")

    guests += [house.enter(), house.enter()]

    assert open_ones(guests) == [2, 3]


async def test_where_everybody_is_being_answered_nobody_else_comes_in() -> None:
    house = House(ConnectionLimit(most=3))
    guests = [house.enter() for _ in range(3)]
    for each in guests:
        each.data_received(HEAD + b"Content-Length: 2\r\n\r\n{}")

    late = house.enter()

    assert open_ones([*guests, late]) == [0, 1, 2]
    assert wire_of(late).written.startswith(b"HTTP/1.1 503 ")
    assert not wire_of(late).is_open


async def test_bodies_that_do_not_arrive_are_bounded_together() -> None:
    house = House(ConnectionLimit(most_held=10_000))
    guests = [house.enter() for _ in range(5)]
    for each in guests:
        each.data_received(HEAD + b"Content-Length: 9000\r\n\r\n")
        each.data_received(b"x" * 2000)

    assert open_ones(guests) == [1, 2, 3, 4]


async def test_bodies_that_have_arrived_count_until_they_are_answered() -> None:
    slow = Slow()
    house = House(ConnectionLimit(most_held=20_000), slow)
    guests = [house.enter() for _ in range(5)]
    for each in guests:
        send(each)
        await steps()

    # They are being answered, and stay; it is the newest for whom there is no room.
    assert open_ones(guests) == [0, 1, 2]
    slow.may_answer.set()
    await steps()
    late = [house.enter() for _ in range(3)]
    for each in late:
        send(each)

    assert open_ones([*guests, *late]) == [0, 1, 2, 5, 6, 7]
    await steps()
    assert [each.held for each in late] == [0, 0, 0]


async def test_one_who_does_not_go_on_makes_room_for_bodies_that_have_arrived() -> None:
    house = House(ConnectionLimit(most_held=12_000), Slow())
    guests = [house.enter() for _ in range(3)]
    send(guests[0])
    guests[1].data_received(BODY)
    guests[1].data_received(b"x" * 4000)

    send(guests[2])

    assert open_ones(guests) == [0, 2]


async def test_a_request_in_one_packet_counts_unless_it_is_small() -> None:
    house = House(ConnectionLimit(most_held=20_000), Slow())
    large, small = [house.enter() for _ in range(9)], [house.enter() for _ in range(9)]
    for each in large:
        each.data_received(BODY + b"x" * 5000)
    for each in small:
        each.data_received(HEAD + b"Content-Length: 2000\r\n\r\n" + b"x" * 2000)

    assert open_ones([*large, *small]) == [0, 1, 2, *range(9, 18)]


async def test_what_comes_behind_an_answer_is_not_kept_and_does_not_count() -> None:
    house = House(ConnectionLimit(most_held=20_000), refusing)
    guest = house.enter()
    guest.data_received(HEAD + b"Content-Length: 1000000\r\n\r\n")
    await steps()

    for _ in range(50):
        guest.data_received(b"x" * 1000)

    assert (guest.held, open_ones([guest])) == (0, [0])


async def test_requests_that_wait_behind_another_one_count() -> None:
    slow = Slow()
    house = House(ConnectionLimit(most_held=20_000), slow)
    guest = house.enter()
    guest.data_received((BODY + b"x" * 5000) * 2)
    guest.data_received(BODY + b"x" * 5000)
    held = [guest.held]

    slow.may_answer.set()
    await steps()
    held.append(guest.held)
    await steps(20)
    held.append(guest.held)

    assert held[0] > 15_000
    assert held[-1] == 0


def test_connections_leave_room_for_what_else_a_process_has_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = [
        (20, 20),
        (48, 48),
        (1024, 4096),
        (20_000, 20_000),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY),
    ]
    rooms = []
    for limit in limits:
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: limit)
        rooms.append(room())

    assert rooms == [1, 16, 768, 4096, 4096]
