"""A disk in memory: stores come and go on it, and a process that is killed gets nothing onto it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.memorydisk import MemoryDisk
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storeerrors import StoreFull

KEY = ("p", "posts", "journal")


async def opened(disk: MemoryDisk) -> tuple[Store, Journal]:
    store = await Store.open(Clock(asyncio.get_running_loop()), disk=disk)
    return store, await Journal.open(store, *KEY, 1_000_000)


async def put(journal: Journal, payload: bytes) -> None:
    await journal.append(payload).ended()


async def kept(disk: MemoryDisk) -> list[bytes]:
    """Return what a new process finds."""
    store, journal = await opened(disk)
    count = journal.entries
    found = [each.payload for each in await journal.read(10)] if count else []
    disk.kill()
    del store
    return found


def on(work: Coroutine[Any, Any, Any]) -> Any:
    return run_virtual(work)


async def killed_at(disk: MemoryDisk, *, is_committed: bool) -> None:
    """Have a process be killed at the commit of a second entry."""
    _, journal = await opened(disk)
    await put(journal, b"one")
    disk.is_killed_at = lambda *, is_committed: is_committed is side
    side = is_committed
    told: list[str] = []
    disk.on_kill = lambda: told.append("killed")
    waiting = asyncio.ensure_future(put(journal, b"two"))
    done, _ = await asyncio.wait([waiting], timeout=10)
    assert not done  # nobody ever hears of it
    assert told == ["killed"]
    disk.is_killed_at = None
    waiting.cancel()


def test_what_is_committed_is_there_for_the_next_process():
    disk = MemoryDisk()

    async def first() -> None:
        _, journal = await opened(disk)
        await put(journal, b"one")
        disk.kill()

    on(first())

    assert on(kept(disk)) == [b"one"]


@pytest.mark.parametrize(("is_committed", "found"), [(False, [b"one"]), (True, [b"one", b"two"])])
def test_a_kill_at_a_commit_is_before_it_or_behind_it(is_committed: bool, found: list[bytes]):
    disk = MemoryDisk()

    on(killed_at(disk, is_committed=is_committed))

    assert on(kept(disk)) == found


def test_a_killed_process_gets_nothing_onto_it():
    disk = MemoryDisk()

    async def ghost() -> None:
        store, _ = await opened(disk)
        disk.kill()
        with pytest.raises(asyncio.CancelledError):
            await store.queues.listed()

    async def writing_ghost() -> None:
        _, journal = await opened(disk)
        disk.kill()
        await asyncio.wait([asyncio.ensure_future(put(journal, b"late"))], timeout=1)

    on(ghost())
    on(writing_ghost())

    assert on(kept(disk)) == []


def test_nothing_new_is_taken_while_it_is_full():
    async def filled() -> list[bytes]:
        disk = MemoryDisk()
        _, journal = await opened(disk)
        await put(journal, b"one")
        disk.full = 1
        group = journal.append(b"two")
        await group.ended()
        assert isinstance(group.cause, StoreFull)
        disk.full = 0
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=2)
        await put(journal, b"three")
        disk.kill()
        return await kept(disk)

    assert on(filled()) == [b"one", b"three"]
