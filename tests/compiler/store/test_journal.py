"""Queues of a store in memory: order, spilling to the disk, letting go, bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store.journal import Journal, StoredEntry
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storedrows import READY_ENTRIES
from headrace.compiler.store.storeerrors import StoreFull
from tests.virtual import virtual


async def opened(max_bytes: int = 2**30) -> tuple[Store, Journal]:
    store = await Store.open(Clock(asyncio.get_running_loop()))
    return store, await Journal.open(store, "p", "http", "journal", max_bytes)


def numbers(entries: Sequence[StoredEntry]) -> list[int]:
    return [each.number for each in entries]


async def read(journal: Journal, count: int) -> list[StoredEntry]:
    """Return so many entries."""
    found: list[StoredEntry] = []
    while len(found) < count:
        found += await journal.read(count - len(found))
    return found


@virtual
async def test_what_is_stored_is_handed_on_with_what_was_made_of_it() -> None:
    _, journal = await opened()

    group = journal.append(b"one", [1])
    assert journal.append(b"two", [2]) is group  # what comes in one turn is committed together
    await group.stored()

    assert [(each.number, each.payload, each.made) for each in await read(journal, 2)] == [
        (0, b"one", [1]),
        (1, b"two", [2]),
    ]


@virtual
async def test_nothing_is_handed_on_before_it_is_stored() -> None:
    _, journal = await opened()
    reading = asyncio.ensure_future(journal.read())
    group = journal.append(b"one")

    assert not reading.done()
    await group.stored()
    assert numbers(await reading) == [0]


@virtual
async def test_what_is_not_let_go_of_comes_again() -> None:
    store, journal = await opened()
    for text in (b"a", b"b", b"c"):
        await journal.append(text).stored()
    journal.let_go([each.number for each in await read(journal, 2)])
    await Clock(asyncio.get_running_loop()).sleep(1)

    again = await Journal.open(store, "p", "http", "journal", 2**30)
    assert [(each.number, each.payload) for each in await again.read()] == [(2, b"c")]


@virtual
async def test_numbers_never_begin_anew() -> None:
    store, journal = await opened()
    await journal.append(b"a").stored()
    journal.let_go(numbers(await journal.read()))
    await Clock(asyncio.get_running_loop()).sleep(1)
    assert (journal.bytes, journal.entries) == (0, 0)
    [queue] = await store.queues.listed()
    assert (queue.rows, queue.next) == (0, 1)

    again = await Journal.open(store, "p", "http", "journal", 2**30)
    await again.append(b"b").stored()
    assert numbers(await again.read()) == [1]


@virtual
async def test_what_a_reader_does_not_keep_up_with_is_read_from_the_disk_in_order() -> None:
    _, journal = await opened()
    count = 3 * READY_ENTRIES
    groups = [journal.append(b"%d" % number, number) for number in range(count)]
    await groups[-1].stored()

    found = await read(journal, count)
    assert [int(each.payload) for each in found] == [*range(count)]
    assert [each.made for each in found] == [
        number if number < READY_ENTRIES else None for number in range(count)
    ]
    journal.let_go(numbers(found))
    await journal.append(b"last", "made").stored()
    assert (await journal.read())[0].made == "made"  # it keeps up again


@virtual
async def test_a_full_queue_takes_nothing_until_something_goes() -> None:
    _, journal = await opened(max_bytes=300)
    await journal.append(b"x" * 200).stored()
    with pytest.raises(StoreFull, match=r"268 of 300 bytes are in use \(max_bytes\)"):
        journal.append(b"x" * 200)

    journal.let_go(numbers(await journal.read()))
    await journal.append(b"x" * 200).stored()


@virtual
async def test_a_row_of_which_something_is_needed_stays() -> None:
    store, journal = await opened()
    for text in (b"a", b"b"):
        group = journal.append(text)
    await group.stored()
    first, second = numbers(await read(journal, 2))

    journal.let_go([second])
    await Clock(asyncio.get_running_loop()).sleep(1)
    assert [(each.rows, each.entries) for each in await store.queues.listed()] == [(1, 2)]
    journal.let_go([first])
    await Clock(asyncio.get_running_loop()).sleep(1)
    assert [(each.rows, each.entries) for each in await store.queues.listed()] == [(0, 0)]


@virtual
async def test_a_large_payload_is_a_row_of_its_own() -> None:
    store, journal = await opened()
    large = bytes(range(256)) * 4096
    journal.append(b"a")
    journal.append(large)
    await journal.append(b"b").stored()

    assert [each.payload for each in await read(journal, 3)] == [b"a", large, b"b"]
    again = await Journal.open(store, "p", "http", "journal", 2**30)
    assert [each.payload for each in await read(again, 3)] == [b"a", large, b"b"]


@virtual
async def test_queues_are_apart() -> None:
    store, journal = await opened()
    other = await Journal.open(store, "p", "http", "queue", 2**30)
    journal.append(b"a")
    await other.append(b"b").stored()

    assert [each.payload for each in await journal.read()] == [b"a"]
    assert [each.payload for each in await other.read()] == [b"b"]
    assert store.commits == 1


@virtual
async def test_a_stopped_queue_is_read_out_and_ends() -> None:
    _, journal = await opened()
    await journal.append(b"a").stored()
    reading = asyncio.ensure_future(read(journal, 1))
    await reading
    waiting = asyncio.ensure_future(journal.read())
    await asyncio.sleep(0)
    journal.append(b"b")
    journal.stop()

    assert numbers(await waiting) == [1]
    assert await journal.read() == []


@virtual
async def test_a_fault_of_one_who_waits_for_the_disk_is_not_that_of_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = await Store.open(Clock(asyncio.get_running_loop()), tmp_path, keep_free_bytes=0)
    one, other = [await Journal.open(store, each, "http", "journal", 2**40) for each in "pq"]
    group = one.append(b"1")

    def broken() -> None:
        raise RuntimeError("a fault of ours")

    group.tell.append(broken)
    await other.append(b"2").stored()

    assert [each.payload for each in await other.read()] == [b"2"]
    assert "what waited for the disk broke" in caplog.text
    await store.close()
