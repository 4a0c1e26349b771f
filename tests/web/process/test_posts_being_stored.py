"""Posts that are stored before they are answered, over both ways."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.beingstored import STORED_SECONDS, BeingStored, CommitWaiters
from headrace.compiler.runtime.wayin import NoRoom
from tests.virtual import virtual
from tests.web.process.test_posts import Answered, Sides, answers, request, side
from tests.web.process.wires import steps, wire_of
from tests.web.resources.ingest.posting_to import Asked


class Storing(Asked):
    """An engine whose posts are stored when that is told; the first of some are told together."""

    def __init__(self) -> None:
        super().__init__()
        self.waiters = CommitWaiters(Clock(asyncio.get_running_loop()))
        self.is_full = False

    def keep(self, batch: list[Any], origin: Any, size: int, body: Any, *, is_json: bool) -> Any:
        if self.is_full:
            raise NoRoom("there is no room, nothing was taken")
        self.offered.append((batch, bytes(body)))
        return BeingStored(len(batch), self.waiters)


@pytest.fixture(params=[True, False], ids=["in the protocol", "by the application"])
def in_protocol(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


async def seen(sides: Sides) -> list[Answered]:
    await steps(40)
    return answers(wire_of(sides.connection).written)


@virtual
async def test_a_post_is_answered_when_it_is_stored(in_protocol: bool) -> None:
    asked = Storing()
    sides = side(asked, in_protocol=in_protocol)
    sides.connection.data_received(request(b"[1, 2]"))
    before = await seen(sides)

    asked.waiters.end(None)

    [answer] = await seen(sides)
    assert before == []
    assert (answer.status, answer.body) == (202, {"accepted": 2})
    assert asked.offered == [([1, 2], b"[1, 2]")]


@virtual
async def test_a_post_that_could_not_be_stored_may_come_again(in_protocol: bool) -> None:
    asked = Storing()
    sides = side(asked, in_protocol=in_protocol)
    sides.connection.data_received(request())
    await steps(40)

    asked.waiters.end(NoRoom("the disk is full, nothing was taken"))

    [answer] = await seen(sides)
    assert (answer.status, answer.body) == (503, {"error": "the disk is full, nothing was taken"})
    assert dict(answer.headers)["retry-after"] == "1"


@virtual
async def test_what_there_is_no_room_for_is_refused_at_once(in_protocol: bool) -> None:
    asked = Storing()
    asked.is_full = True
    sides = side(asked, in_protocol=in_protocol)
    sides.connection.data_received(request())

    [answer] = await seen(sides)
    assert answer.status == 503


@virtual
async def test_nothing_is_stored_of_no_messages(in_protocol: bool) -> None:
    asked = Storing()
    sides = side(asked, in_protocol=in_protocol)
    sides.connection.data_received(request(b"[]"))

    [answer] = await seen(sides)
    assert (answer.status, answer.body) == (202, {"accepted": 0})
    assert asked.offered == []


@virtual
async def test_the_next_post_of_a_connection_is_taken_when_the_one_before_is_stored(
    in_protocol: bool,
) -> None:
    asked = Storing()
    sides = side(asked, in_protocol=in_protocol)
    first, asked.waiters = asked.waiters, CommitWaiters(Clock(asyncio.get_running_loop()))
    second, asked.waiters = asked.waiters, first
    sides.connection.data_received(request(b"1") + request(b"[2, 3]"))
    await steps(40)
    taken_before = [batch for batch, _ in asked.offered]

    asked.waiters = second
    first.end(None)
    answered_between = len(await seen(sides))
    second.end(None)

    assert taken_before == [[1]]
    assert answered_between == 1
    assert [each.body for each in await seen(sides)] == [{"accepted": 1}, {"accepted": 2}]


@virtual
async def test_a_client_that_leaves_harms_nobody(in_protocol: bool) -> None:
    asked = Storing()
    gone, other = side(asked, in_protocol=in_protocol), side(asked, in_protocol=in_protocol)
    for each in (gone, other):
        each.connection.data_received(request())
    await steps(40)
    gone.connection.connection_lost(None)
    await steps(40)

    asked.waiters.end(None)

    assert [each.status for each in await seen(other)] == [202]
    assert await seen(gone) == []


@virtual
async def test_a_client_that_sends_no_more_is_answered() -> None:
    asked = Storing()
    sides = side(asked, in_protocol=True)
    sides.connection.data_received(request())
    await steps(40)

    stays = sides.connection.eof_received()
    asked.waiters.end(None)

    assert stays
    assert [each.status for each in await seen(sides)] == [202]
    assert sides.connection.transport.is_closing()


@virtual
async def test_a_commit_that_takes_too_long_is_told(in_protocol: bool) -> None:
    asked = Storing()
    clock = Clock(asyncio.get_running_loop())
    sides = side(asked, in_protocol=in_protocol)
    sides.connection.data_received(request())

    await clock.sleep(STORED_SECONDS - 0.1)
    before = await seen(sides)
    await clock.sleep(0.2)
    [answer] = await seen(sides)
    asked.waiters.end(None)  # it is stored after all

    assert before == []
    assert answer.status == 503
    assert answer.body == {"error": "it was not stored within 5 s, and may be yet"}
    assert len(await seen(sides)) == 1
