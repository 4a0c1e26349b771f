"""A queue that is ended: no other takes it up, and what is left of it stays."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import ClassVar

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store import folder
from headrace.compiler.store.database import Database
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storedrows import Changes, StoredPage, StoredQueue
from headrace.compiler.store.storeerrors import StoreFailed
from headrace.compiler.store.writer import LOOK_SECONDS
from tests.compiler.store.killed import kill
from tests.virtual import virtual


class Broken(Database):
    """A database that cannot be written to, or read, when that is wanted."""

    commits_fail: ClassVar = False
    pages_fail: ClassVar = 0

    def commit(self, changes: Changes) -> None:
        if Broken.commits_fail:
            raise sqlite3.OperationalError("disk I/O error")
        super().commit(changes)

    def page(self, queue: int, after: int, before: int, most_bytes: int) -> StoredPage:
        if Broken.pages_fail:
            Broken.pages_fail -= 1
            raise sqlite3.OperationalError("disk I/O error")
        return super().page(queue, after, before, most_bytes)


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> type[Broken]:
    monkeypatch.setattr(folder, "Database", Broken)
    monkeypatch.setattr(Broken, "commits_fail", False)
    monkeypatch.setattr(Broken, "pages_fail", 0)
    return Broken


async def opened(path: Path | None = None, told: list[str] | None = None) -> Store:
    clock = Clock(asyncio.get_running_loop())
    tell = [].append if told is None else told.append
    return await Store.open(
        clock, path, sync="process", keep_free_bytes=0, reserve_bytes=0, tell=tell
    )


async def queue(store: Store) -> Journal:
    return await Journal.open(store, "p", "http", "journal", 2**40)


async def with_entries(store: Store, *payloads: bytes) -> Journal:
    journal = await queue(store)
    for payload in payloads:
        group = journal.append(payload)
    await group.stored()
    return journal


async def left(store: Store) -> StoredQueue:
    """Return the one queue that is ended."""
    [found] = [each for each in await store.queues.listed() if each.ended is not None]
    return found


@virtual
async def test_one_of_which_nothing_is_left_is_gone() -> None:
    store = await opened()
    journal = await with_entries(store, b"a", b"b")
    journal.let_go([each.number for each in await journal.read()])
    await journal.end()

    assert await store.queues.listed() == []


@virtual
async def test_one_that_was_never_used_is_gone() -> None:
    store = await opened()
    await (await queue(store)).end()

    assert await store.queues.listed() == []


@virtual
async def test_what_is_left_is_not_taken_up_by_a_namesake(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    clock = Clock(asyncio.get_running_loop())
    journal = await with_entries(store, b"a", b"b", b"c")
    await journal.read()
    journal.let_go([1])
    await clock.sleep(60)
    await journal.end()
    ended = clock.seconds()
    again = await with_entries(store, b"new")

    old, new = await store.queues.listed()
    assert (old.entries, old.rows, old.ended) == (2, 2, pytest.approx(ended))
    assert (new.entries, new.ended) == (1, None)
    assert old[1:4] == new[1:4] == ("p", "http", "journal")
    assert [each.payload for each in await again.read()] == [b"new"]
    await store.close()

    store = await opened(tmp_path)
    assert [each.payload for each in await (await queue(store)).read()] == [b"new"]
    assert await left(store) == old
    await store.queues.discard(old.id)
    assert [each.id for each in await store.queues.listed()] == [new.id]
    await store.close()


@virtual
async def test_namesakes_are_ended_one_after_the_other() -> None:
    store = await opened()
    for payload in (b"a", b"b", b"c"):
        await (await with_entries(store, payload)).end()

    found = await store.queues.listed()
    assert len({each.id for each in found}) == 3
    assert all(each.ended is not None for each in found)


@virtual
async def test_what_is_being_stored_belongs_to_it(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    journal = await queue(store)
    group = journal.append(b"a")
    await journal.end()
    await group.stored()

    assert (await left(store)).entries == 1
    await store.close()


@virtual
async def test_one_of_which_something_is_set_aside_stays(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    journal = await with_entries(store, b"a")
    [entry] = await journal.read()
    journal.set_aside(entry.number)
    await journal.end()

    ended = await left(store)
    assert ended.entries == 0
    await store.queues.discard(ended.id)
    assert store.database._run.execute("SELECT * FROM aside").fetchall() == []
    await store.close()


@virtual
async def test_a_disk_that_fails_hears_of_it_later(tmp_path: Path, disk: type[Broken]) -> None:
    store = await opened(tmp_path)
    clock = Clock(asyncio.get_running_loop())
    journal = await with_entries(store, b"a")
    disk.commits_fail = True
    await journal.end()
    with pytest.raises(StoreFailed):
        await queue(store)
    disk.commits_fail = False
    await clock.sleep(2)

    assert (await queue(store)).entries == 0
    assert (await left(store)).entries == 1
    await store.close()


@virtual
async def test_it_stays_ended_where_files_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = await opened(path)
    clock = Clock(asyncio.get_running_loop())
    await (await with_entries(store, b"a")).end()
    before = await left(store)
    (path / "store.db").unlink()
    await clock.sleep(LOOK_SECONDS + 2)
    assert store.condition.state == "open"
    kill(store)

    store = await opened(path)
    assert await left(store) == before
    assert (await queue(store)).entries == 0
    await store.close()


@virtual
async def test_it_stays_ended_where_the_database_is_made_anew(
    tmp_path: Path, disk: type[Broken]
) -> None:
    told: list[str] = []
    store = await opened(tmp_path, told)
    await (await with_entries(store, b"a")).end()
    before = await left(store)
    await (await with_entries(store, b"b")).close()
    await (await Journal.open(store, "other", "http", "journal", 2**40)).end()
    again = await queue(store)
    disk.pages_fail = 2
    assert [each.payload for each in await again.read()] == [b"b"]
    assert any("it is kept as" in each for each in told)

    assert await left(store) == before
    # The number of the one that is gone is not used again.
    ids = [each.id for each in await store.queues.listed()]
    assert (await store.queues.open("another", "http", "journal")).id == max(ids) + 2
    await store.close()


@virtual
async def test_a_number_of_a_queue_is_not_used_again(tmp_path: Path) -> None:
    ids: list[int] = []
    for _ in range(2):
        store = await opened(tmp_path)
        for _ in range(2):
            ids.append((await store.queues.open("p", "http", "journal")).id)
            store.queues.leave(ids[-1])
            await (await queue(store)).end()
        await store.close()

    assert ids == [1, 2, 3, 4]


@virtual
async def test_a_large_one_is_discarded_some_at_a_time(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    large = await store.queues.open("p", "large", "journal")
    store.queues.leave(large.id)
    for table, columns in [("entries", "1, 0, 0, 0, 0, x''"), ("aside", "1, 0, 0, x'', 0, ''")]:
        store.database._run.execute(
            "WITH RECURSIVE each(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM each WHERE n < 5000)"
            f" INSERT INTO {table} SELECT n, {large.id}, n, {columns} FROM each"
        )
    journal = await queue(store)
    discarding = asyncio.ensure_future(store.queues.discard(large.id))
    turns = 0
    while not discarding.done():
        await store.queues.listed()  # in turn with it
        turns += 1
        if turns == 3:
            discarding.cancel()
    left = await store.queues.open("p", "large", "journal")
    rows = {each.id: each.rows for each in await store.queues.listed()}
    assert 0 < rows[large.id] < 5_000
    assert left.id != large.id

    await store.queues.discard(large.id)
    assert large.id not in {each.id for each in await store.queues.listed()}
    for table in ("entries", "aside"):
        assert store.database._run.execute(f"SELECT * FROM {table}").fetchall() == []
    await journal.close()
    await store.close()
