"""What was set aside of a queue: how much that is, and that it can be discarded alone."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from headrace.compiler.clock import Clock
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.openstore import Store
from tests.compiler.remembering import declared, stored
from tests.virtual import virtual


async def opened(path: Path) -> tuple[Store, Journal]:
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, path, sync="process", keep_free_bytes=0, reserve_bytes=0)
    return store, await Journal.open(store, "p", "http", "journal", 2**40)


async def put_down(journal: Journal, *payloads: bytes) -> None:
    for payload in payloads:
        await journal.append(payload).stored()


async def aside(store: Store) -> list[tuple[int, int, int]]:
    """Return of each queue its entries, those that were set aside, and the bytes of those."""
    return [(each.entries, each.aside, each.aside_bytes) for each in await store.queues.listed()]


@virtual
async def test_it_is_told_beside_what_is_left_and_discarded_alone(tmp_path: Path) -> None:
    store, journal = await opened(tmp_path)
    await put_down(journal, b"poison", b"fine")
    poison, fine = await journal.read()
    before = store.condition.set_asides
    journal.set_aside(poison.number)
    await store.written()

    assert await aside(store) == [(1, 1, 4 + len(b"poison"))]
    assert store.condition.set_asides == before + 1
    await store.queues.discard_aside(1)
    assert await aside(store) == [(1, 0, 0)]
    journal.let_go([fine.number])
    await journal.close()
    assert await aside(store) == [(0, 0, 0)]
    await store.close()


@virtual
async def test_a_queue_that_ended_goes_with_what_of_it_was_set_aside(tmp_path: Path) -> None:
    store, journal = await opened(tmp_path)
    await put_down(journal, b"poison")
    [poison] = await journal.read()
    journal.set_aside(poison.number)
    await journal.end()

    assert await aside(store) == [(0, 1, 4 + len(b"poison"))]
    await store.queues.discard_aside(1)
    assert await aside(store) == []
    await store.close()


@virtual
async def test_a_queue_that_ended_stays_as_long_as_something_else_is_left_of_it(
    tmp_path: Path,
) -> None:
    store, journal = await opened(tmp_path)
    await put_down(journal, b"poison", b"left")
    poison, _ = await journal.read()
    journal.set_aside(poison.number)
    await journal.end()

    await store.queues.discard_aside(1)
    assert await aside(store) == [(1, 0, 0)]
    await store.close()


@virtual
async def test_what_is_damaged_is_among_it_and_counted_as_far_as_that_can_be(
    tmp_path: Path,
) -> None:
    store, journal = await opened(tmp_path)
    for payload in (b"a", b"b", b"c"):
        group = journal.append(payload)
    await group.stored()
    await put_down(journal, b"d")
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE entries SET crc = crc + 1 WHERE n = 1")
        database.execute("UPDATE entries SET count = 1000000000 WHERE n = 2")

    store, journal = await opened(tmp_path)
    journal.stop()
    assert await journal.read() == []
    assert store.condition.set_asides == 2
    assert await aside(store) == [(0, 4, 3 * 5 + 5)]
    await store.close()


@virtual
async def test_a_bucket_that_ended_stays_as_long_as_it_has_keys(tmp_path: Path) -> None:
    store, _ = await opened(tmp_path)
    bucket = await declared(store)
    bucket.merge({"a": {"n": 1}, "b": {"n": 2}})
    await stored(bucket)
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE remembered SET value = '1 2 3 {}' WHERE key = 'a'")
        database.execute("UPDATE queues SET ended = NULL")
    store, _ = await opened(tmp_path)
    await declared(store)  # it is read, and what is damaged set aside
    [id] = [each.id for each in await store.queues.listed() if each.aside]
    store.queues.end(id)
    await store.written()

    await store.queues.discard_aside(id)

    assert [each.aside for each in await store.queues.listed() if each.id == id] == [0]
    await store.close()
