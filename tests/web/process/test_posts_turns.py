"""Posts that are answered in the protocol: in their order, in turn with others, while somebody is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio

from headrace.compiler.clock import Clock
from headrace.web.app import Application
from headrace.web.process.connectionlimit import ConnectionLimit
from headrace.web.process.posts import PostAnswers
from headrace.web.process.protocol import LOOKS, Protocol
from headrace.web.resources.ingest import LARGEST, Ingest
from headrace.web.service import Service
from tests.web.process.posting import (
    LARGE_POST,
    LINE,
    entered,
    in_turns,
    one,
    statuses,
    taken,
    until,
)
from tests.web.process.wires import House, Slow, open_ones, standing, steps, wire_of
from tests.web.resources.ingest.posting_to import Asked


@pytest_asyncio.fixture
async def connection(asked: Asked) -> AsyncIterator[Protocol]:
    connection = entered(asked)
    yield connection
    connection.connection_lost(None)


async def test_an_answer_is_there_when_the_end_of_the_body_is(
    connection: Protocol, asked: Asked
) -> None:
    whole = one(1)
    connection.data_received(whole[:-1])
    before = statuses(connection)
    connection.data_received(whole[-1:])

    assert (before, statuses(connection), taken(asked)) == ([], [202], [1])


@pytest.mark.parametrize("word", [b"100-continue", b"100-Continue"])
async def test_who_asks_first_is_told_to_go_on_before_the_body(
    connection: Protocol, word: bytes
) -> None:
    whole = one(1, b"expect: " + word)
    connection.data_received(whole[:-1])
    before = statuses(connection)
    connection.data_received(whole[-1:])

    assert (before, statuses(connection)) == ([100], [100, 202])


async def test_posts_of_one_packet_beyond_a_turn_leave_others_theirs(asked: Asked) -> None:
    connection = in_turns(asked, 4)()
    connection.data_received(b"".join(one(number) for number in range(20)))
    counts = [len(asked.offered)]
    while len(asked.offered) < 20:
        await steps(1)
        counts.append(len(asked.offered))

    await until(connection, 20)

    assert counts[0] == 4
    assert max(after - before for before, after in pairwise(counts)) <= 4
    assert taken(asked) == [*range(20)]
    assert statuses(connection) == [202] * 20


async def test_a_post_whose_end_comes_later_has_its_turn_then(asked: Asked) -> None:
    enter = in_turns(asked, 4)
    connections = [enter() for _ in range(20)]
    for number, each in enumerate(connections):
        each.data_received(one(number)[:-1])
    await steps(30)
    for number, each in enumerate(connections):
        each.data_received(one(number)[-1:])
    at_once = len(asked.offered)
    counts = [at_once]
    while len(asked.offered) < 20:
        await steps(1)
        counts.append(len(asked.offered))

    assert 0 < at_once <= 4
    assert max(after - before for before, after in pairwise(counts)) <= 4
    assert [statuses(each) for each in connections] == [[202]] * 20


async def test_posts_of_all_connections_share_a_turn_in_the_order_they_came(asked: Asked) -> None:
    enter = in_turns(asked, 4)
    connections = [enter() for _ in range(10)]
    for number, each in enumerate(connections):
        each.data_received(one(number))
    at_once = taken(asked)
    probe = enter()
    probe.data_received(b"GET /livez HTTP/1.1\r\n\r\n")
    await until(probe, 1)
    before_the_probe = taken(asked)
    late = enter()
    late.data_received(one(10))
    for each in (*connections, late):
        await until(each, 1)

    assert at_once == [0, 1, 2, 3]
    assert len(before_the_probe) < 10
    assert taken(asked) == [*range(11)]


async def test_a_turn_ends_with_a_post_to_a_pipeline_that_is_behind(asked: Asked) -> None:
    asked.is_behind = True
    enter = in_turns(asked, 1000)
    connections = [enter() for _ in range(3)]
    for number, each in enumerate(connections):
        each.data_received(one(number))
    counts = [len(asked.offered)]
    while len(asked.offered) < 3:
        await steps(1)
        counts.append(len(asked.offered))

    assert [*dict.fromkeys(counts)] == [1, 2, 3]


async def test_who_leaves_before_its_turn_has_posted_nothing(asked: Asked) -> None:
    enter = in_turns(asked, 1)
    connections = [enter() for _ in range(3)]
    for number, each in enumerate(connections):
        each.data_received(one(number))

    connections[1].connection_lost(None)
    await until(connections[2], 1)

    assert taken(asked) == [0, 2]


async def test_who_sends_no_more_is_answered_when_its_turn_comes(asked: Asked) -> None:
    enter = in_turns(asked, 1)
    first, waiting, half = enter(), enter(), enter()
    first.data_received(one(1))
    waiting.data_received(one(2) + one(3))
    half.data_received(one(4)[:-1])

    stay = [each.eof_received() for each in (first, waiting, half)]
    await until(waiting, 2)

    assert stay == [False, True, False]
    assert taken(asked) == [1, 2, 3]
    assert not wire_of(waiting).is_open


async def test_what_follows_a_body_is_no_credential_for_who_waits_for_its_turn(
    asked: Asked,
) -> None:
    asked.needs = "s3cret"
    enter = in_turns(asked, 1)
    first, second = enter(), enter()
    head = LINE + b"transfer-encoding: chunked\r\n\r\n"
    first.data_received(one(1, b"x-key: s3cret"))
    second.data_received(head + b"1\r\n2\r\n0\r\nx-key: s3cret\r\n\r\n")
    at_once = statuses(second)

    await until(second, 1)

    assert (at_once, statuses(first), statuses(second)) == ([], [202], [401])
    assert taken(asked) == [1]


async def test_who_posts_is_waited_for_anew(asked: Asked) -> None:
    service = Service(asked, None, Clock(asyncio.get_running_loop()))  # type: ignore[arg-type]
    house = House(ConnectionLimit(most=2), Application(service))
    posts = PostAnswers(Ingest(service), standing(Clock(asyncio.get_running_loop())))
    posting = house.enter(posts)
    posting.data_received(one(1))
    idle = house.enter(posts)
    posting.data_received(one(2))

    house.enter(posts)

    assert open_ones([posting, idle]) == [0]


async def test_answers_come_in_the_order_of_the_requests_while_one_waits(
    connection: Protocol, asked: Asked
) -> None:
    connection.data_received(LARGE_POST + one(1))
    before = statuses(connection), connection.flow.read_paused
    connection.data_received(b"GET /livez HTTP/1.1\r\n\r\n" + one(2))

    await until(connection, 4)

    assert before == ([], True)  # what else is sent behind is not read
    assert not connection.flow.read_paused
    assert [len(batch) for batch, _ in asked.offered] == [20_001, 1, 1]
    assert statuses(connection) == [202, 202, 200, 202]
    assert b"20001" in wire_of(connection).written.split(b"HTTP/1.1 ")[1]


async def test_a_post_behind_another_request_waits_for_its_answer(asked: Asked) -> None:
    slow = Slow()
    connection = entered(asked, slow)
    connection.data_received(b"POST /in HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}" + one(1) + one(2))
    await steps()
    before = statuses(connection), taken(asked)

    slow.may_answer.set()
    await until(connection, 3)

    assert before == ([], [])
    assert (statuses(connection), taken(asked)) == ([200, 202, 202], [1, 2])


async def test_a_body_that_is_too_large_is_refused_when_its_turn_comes(asked: Asked) -> None:
    slow = Slow()
    connection = entered(asked, slow)
    connection.data_received(b"POST /in HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
    connection.data_received(LINE + b"transfer-encoding: chunked\r\n\r\n")
    part = b" " * (1 << 20)
    for _ in range(LARGEST // len(part) + 1):
        connection.data_received(b"%x\r\n%b\r\n" % (len(part), part))

    slow.may_answer.set()
    await until(connection, 2)

    assert statuses(connection) == [200, 413]
    assert connection.transport.is_closing()


async def test_who_does_not_read_answers_is_taken_nothing_more(
    connection: Protocol, asked: Asked
) -> None:
    connection.pause_writing()
    connection.data_received(one(1) + one(2))
    await steps()
    before = taken(asked)

    connection.resume_writing()
    await until(connection, 2)

    assert (before, taken(asked)) == ([], [1, 2])


async def test_who_leaves_without_reading_answers_has_posted_nothing(
    connection: Protocol, asked: Asked
) -> None:
    connection.pause_writing()
    connection.data_received(one(1))
    await steps()

    connection.connection_lost(None)
    await steps()

    assert (asked.offered, statuses(connection)) == ([], [])


async def test_who_is_gone_when_its_messages_are_queued_is_answered_nothing() -> None:
    class Last(Asked):
        def offer(self, *arguments: Any, **keywords: Any) -> bool:
            connection.connection_lost(None)
            return super().offer(*arguments, **keywords)

    last = Last()
    connection = entered(last)
    connection.data_received(LARGE_POST)
    async with asyncio.timeout(30):
        while connection.tasks:
            await steps(1)

    assert (len(last.offered), statuses(connection)) == (1, [])
    assert connection.timeout_keep_alive_task is None


@pytest.mark.parametrize("sent", [one(1)[:-1], LINE, LARGE_POST, LARGE_POST + one(1)])
async def test_a_client_that_leaves_in_the_middle_has_posted_nothing(
    connection: Protocol, asked: Asked, sent: bytes
) -> None:
    connection.data_received(sent)
    await steps()

    connection.connection_lost(ConnectionResetError())
    await steps(20)

    assert (asked.offered, statuses(connection), connection.tasks) == ([], [], set())


async def test_a_post_that_is_being_answered_when_the_server_ends_is_answered_first(
    connection: Protocol, asked: Asked
) -> None:
    connection.data_received(LARGE_POST)
    connection.shutdown()
    is_open = wire_of(connection).is_open

    await until(connection, 1)

    assert is_open
    assert b"connection: close\r\n" in wire_of(connection).written
    assert not wire_of(connection).is_open
    assert len(asked.offered) == 1


async def test_behind_the_last_request_nothing_is_taken(connection: Protocol, asked: Asked) -> None:
    connection.data_received(one(1, b"connection: close") + one(2) + b"DELETE / HTTP/1.1\r\n\r\n")
    await steps()

    assert (taken(asked), statuses(connection)) == ([1], [202])
    assert b"connection: close\r\n" in wire_of(connection).written
    assert connection.transport.is_closing()


async def test_what_nobody_foresaw_is_a_500_and_stands_in_the_log(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Asked):
        def offer(self, *_: object, **__: object) -> bool:
            raise ZeroDivisionError("s3cret")

    connection = entered(Broken())
    with caplog.at_level(logging.ERROR, "headrace.web"):
        connection.data_received(one(1) + one(2))
        await until(connection, 2)

    assert statuses(connection) == [500, 500]
    assert b"s3cret" not in wire_of(connection).written
    assert [record.message for record in caplog.records] == [
        "ingestMessages: unexpected ZeroDivisionError"
    ] * 2


async def test_what_goes_on_behind_a_post_is_counted_and_let_go(asked: Asked) -> None:
    limit = ConnectionLimit(most_held=12_000)
    clock = Clock(asyncio.get_running_loop())
    service = Service(asked, None, clock)  # type: ignore[arg-type]
    posts = PostAnswers(Ingest(service), standing(clock))
    connection = House(limit, Application(service)).enter(posts)
    body = b" " * 5000 + b"1"
    sent = LINE + b"content-length: %d\r\n\r\n" % len(body) + body
    for _ in range(5):
        connection.data_received(sent[:3000])
        assert connection.held == 3000
        connection.data_received(sent[3000:])

    assert (connection.held, statuses(connection)) == (0, [202] * 5)


async def test_a_refused_post_whose_body_does_not_go_on_is_stuck_as_well(asked: Asked) -> None:
    asked.needs = "key"
    connection = entered(asked)
    connection.data_received(one(1)[:-1])

    stuck = [connection.is_stuck() for _ in range(LOOKS + 1)]

    assert statuses(connection) == [401]
    assert (stuck[0], stuck[-1]) == (False, True)


async def test_a_post_that_does_not_go_on_is_stuck(connection: Protocol) -> None:
    connection.data_received(one(1) + one(2)[:-1])

    assert [connection.is_stuck() for _ in range(LOOKS + 1)][-1]
