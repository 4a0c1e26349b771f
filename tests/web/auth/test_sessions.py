"""Sessions: how they end, and who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headrace.compiler.clock import Clock, run_virtual
from headrace.web.auth import sessions as subject
from headrace.web.auth.access import Access, Caller
from headrace.web.auth.sessions import Sessions

ANN, BOB = Caller(Access.ADMIN, "ann"), Caller(Access.READ, "bob")
IDLE = 600

Scene = Callable[[Sessions, Clock], Coroutine[Any, Any, None]]


def played(scene: Scene, most: int = 100) -> None:
    """Play a scene in virtual time."""

    async def main() -> None:
        clock = Clock(asyncio.get_running_loop())
        await scene(Sessions(clock, IDLE, most=most), clock)

    run_virtual(main)


def found(sessions: Sessions, id: str) -> Caller | None:
    return sessions.find(id.encode())


def test_an_id_is_32_random_bytes_in_hex_and_another_one_each_time() -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        ids = {sessions.open(ANN) for _ in range(50)}

        assert len(ids) == 50
        assert all(len(bytes.fromhex(id)) == 32 for id in ids)

    played(scene)


def test_who_is_signed_in_is_found_by_the_id_alone() -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        of_ann, of_bob = sessions.open(ANN), sessions.open(BOB)

        assert found(sessions, of_ann) == ANN
        assert found(sessions, of_bob) == BOB
        for wrong in ("", "0" * 64, of_ann.upper(), of_ann[:-1], of_ann + "0"):
            assert found(sessions, wrong) is None

    played(scene)


def test_no_id_stays_in_memory() -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        id = sessions.open(ANN)

        [(key, session)] = sessions._sessions.items()
        assert id not in repr((key, key.hex(), session.caller))

    played(scene)


def test_a_session_ends_when_it_was_idle_for_so_long() -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        id = sessions.open(ANN)

        await clock.sleep(IDLE - 1)
        assert found(sessions, id) == ANN
        await clock.sleep(IDLE - 1)
        assert found(sessions, id) == ANN
        await clock.sleep(IDLE)
        assert found(sessions, id) is None
        assert len(sessions) == 0

    played(scene)


def test_a_session_is_over_at_its_end_also_when_its_timer_is_late(monkeypatch) -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        monkeypatch.setattr(clock, "call_at", lambda *_: None)
        idle = sessions.open(ANN)
        of_token = sessions.open(ANN, clock.seconds() + 5)

        await clock.sleep(5)
        assert found(sessions, of_token) is None
        await clock.sleep(IDLE - 5)
        assert found(sessions, idle) is None

    played(scene)


def test_a_session_made_from_a_token_ends_with_it_however_busy_it_is() -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        id = sessions.open(ANN, clock.seconds() + 2.5 * IDLE)

        for _ in range(4):
            await clock.sleep(IDLE / 2)
            assert found(sessions, id) == ANN
        await clock.sleep(IDLE / 2)
        assert found(sessions, id) is None

    played(scene)


def test_a_session_made_from_a_token_may_be_idle_no_longer_than_others() -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        id = sessions.open(ANN, clock.seconds() + 10 * IDLE)

        await clock.sleep(IDLE)
        assert found(sessions, id) is None

    played(scene)


def test_a_dropped_session_is_gone_and_no_other() -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        dropped, kept = sessions.open(ANN), sessions.open(ANN)

        sessions.drop(dropped.encode())
        sessions.drop(dropped.encode())
        sessions.drop(b"nothing")
        assert found(sessions, dropped) is None
        assert found(sessions, kept) == ANN

    played(scene)


@pytest.mark.parametrize("ends_at", [None, 10 * IDLE])
def test_what_waits_for_the_end_of_a_session_is_told_of_every_kind_of_end(
    ends_at: int | None,
) -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        began = clock.seconds()
        id = sessions.open(ANN, None if ends_at is None else began + ends_at)
        caller = found(sessions, id)
        assert caller is not None
        assert caller.ended is not None

        await clock.sleep(IDLE / 2)
        found(sessions, id)
        await caller.ended()
        assert clock.seconds() - began == 1.5 * IDLE

    played(scene)


def test_what_waits_is_told_when_the_token_of_the_session_ends() -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        began = clock.seconds()
        caller = found(sessions, sessions.open(ANN, began + 5))
        assert caller is not None
        assert caller.ended is not None

        await caller.ended()
        assert clock.seconds() - began == 5

    played(scene)


def test_what_waits_is_told_at_once_when_a_session_is_dropped() -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        began = clock.seconds()
        id = sessions.open(ANN)
        caller = found(sessions, id)
        assert caller is not None
        assert caller.ended is not None
        waiting = asyncio.ensure_future(caller.ended())
        await clock.sleep(1)

        sessions.drop(id.encode())
        await waiting
        assert clock.seconds() - began == 1

    played(scene)


def test_one_too_many_takes_the_place_of_the_one_that_was_idle_longest() -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        first, second, third = (sessions.open(Caller(Access.READ, name)) for name in "abc")
        found(sessions, first)

        fourth = sessions.open(BOB)
        assert found(sessions, second) is None
        assert all(found(sessions, id) for id in (first, third, fourth))

    played(scene, most=3)


def test_who_opens_very_many_loses_their_own(monkeypatch) -> None:
    monkeypatch.setattr(subject, "MOST_OF_ONE", 5)

    async def scene(sessions: Sessions, clock: Clock) -> None:
        of_ann = sessions.open(ANN)
        of_bob = [sessions.open(BOB) for _ in range(8)]

        assert found(sessions, of_ann) == ANN
        assert [found(sessions, id) is not None for id in of_bob] == [False] * 3 + [True] * 5

    played(scene)


def test_a_dropped_session_leaves_no_timer_behind() -> None:
    async def scene(sessions: Sessions, clock: Clock) -> None:
        id = sessions.open(ANN)
        [session] = sessions._sessions.values()

        sessions.drop(id.encode())
        assert session.timer is not None
        assert session.timer.cancelled()

    played(scene)
