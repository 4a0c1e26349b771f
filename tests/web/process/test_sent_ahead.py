"""Requests that are sent ahead: a few are parsed, the rest waits unparsed, and nothing more is read."""

from __future__ import annotations

import asyncio

import pytest

from tests.web.process.posting import LARGE_POST, entered, in_turns, one, statuses, taken, until
from tests.web.process.wires import Slow, steps, wire_of
from tests.web.resources.ingest.posting_to import Asked


async def test_of_a_packet_that_holds_thousands_of_posts_only_a_few_are_parsed_ahead(
    asked: Asked,
) -> None:
    connection = in_turns(asked, 4)()
    connection.data_received(b"".join(one(number) for number in range(3000)))
    waiting, held, is_paused = (
        len(connection.pipeline),
        connection.held,
        connection.flow.read_paused,
    )
    most = 0
    while len(asked.offered) < 3000:
        await steps(1)
        most = max(most, len(connection.pipeline))

    await until(connection, 3000)
    await steps()

    assert 0 < waiting < 100
    assert held > 2000 * len(one(1))
    assert is_paused
    assert most < 100
    assert taken(asked) == [*range(3000)]
    assert (connection.held, connection.flow.read_paused) == (0, False)


async def test_nothing_more_is_read_while_requests_wait(asked: Asked) -> None:
    slow = Slow()
    connection = entered(asked, slow)
    connection.data_received(b"GET / HTTP/1.1\r\n\r\n" * 500)
    await steps()
    slow.may_answer.set()
    is_paused = []
    while len(statuses(connection)) < 500:
        await steps(1)
        is_paused.append(connection.flow.read_paused or not connection.pipeline)
    await steps()

    assert all(is_paused)
    assert statuses(connection) == [200] * 500
    assert not connection.flow.read_paused


async def test_an_application_that_asks_for_more_is_not_read_on_for(asked: Asked) -> None:
    slow = Slow()
    connection = entered(asked, slow)
    connection.data_received(b"GET / HTTP/1.1\r\n\r\n" * 5000)
    await steps()  # the application has read to the end of its request
    is_paused, held = connection.flow.read_paused, connection.held
    slow.may_answer.set()
    most = 0
    while len(statuses(connection)) < 5000:
        await steps(20)
        most = max(most, connection.held)
    await steps()

    assert is_paused
    assert most <= held
    assert (connection.held, connection.flow.read_paused) == (0, False)


@pytest.mark.parametrize("packets", [1, 2])
async def test_a_large_body_behind_what_waits_is_read_when_it_is_its_turn(
    asked: Asked, packets: int
) -> None:
    slow = Slow()
    connection = entered(asked, slow)
    sent = b"GET / HTTP/1.1\r\n\r\n" + LARGE_POST + one(1)
    half = len(sent) // packets
    for start in range(0, len(sent), half):
        connection.data_received(sent[start : start + half])
    await steps()
    slow.may_answer.set()

    await until(connection, 3)

    assert statuses(connection) == [200, 202, 202]
    assert [len(batch) for batch, _ in asked.offered] == [20_001, 1]


async def test_who_has_sent_more_when_the_server_ends_can_read_what_was_answered(
    asked: Asked,
) -> None:
    connection = in_turns(asked, 4)()
    connection.data_received(b"".join(one(number) for number in range(3000)))
    connection.shutdown()
    async with asyncio.timeout(30):
        while not connection.transport.is_closing():
            await steps(1)
    await steps()

    assert connection.transport.is_lingering
    assert wire_of(connection).is_open
    assert taken(asked) == [*range(len(statuses(connection)))]
    assert wire_of(connection).written.count(b"connection: close") == 1
