"""What a store tells of itself: its id, and what it has counted."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store.database import Database
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.room import Room
from headrace.compiler.store.storedrows import Changes
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull
from headrace.compiler.store.writer import LOOK_SECONDS
from tests.virtual import virtual


async def opened(path: Path | None, keep_free_bytes: int = 0) -> Store:
    clock = Clock(asyncio.get_running_loop())
    return await Store.open(
        clock, path, sync="process", keep_free_bytes=keep_free_bytes, reserve_bytes=0
    )


async def queue(store: Store) -> Journal:
    return await Journal.open(store, "p", "http", "journal", 2**40)


async def sleep(seconds: float) -> None:
    await Clock(asyncio.get_running_loop()).sleep(seconds)


@virtual
async def test_each_has_an_id_of_its_own_that_stays(tmp_path: Path) -> None:
    ids: list[str] = []
    for name in ("one", "one", "two"):
        store = await opened(tmp_path / name)
        ids.append(store.id)
        await store.close()
    ids.append((await opened(None)).id)

    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert all(re.fullmatch(r"[0-9a-f]{32}", each) for each in ids)


@virtual
async def test_a_copy_of_a_removed_file_has_the_same(tmp_path: Path) -> None:
    store = await opened(tmp_path / "store")
    id = store.id
    shutil.rmtree(tmp_path / "store")
    await sleep(LOOK_SECONDS + 2)
    assert (store.condition.state, store.id) == ("open", id)
    await store.close()

    store = await opened(tmp_path / "store")
    assert store.id == id
    await store.close()


@virtual
async def test_one_whose_row_is_lost_gets_another(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    id = store.id
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("DELETE FROM store")

    store = await opened(tmp_path)
    assert len(store.id) == 32
    assert store.id != id
    await store.close()


@virtual
async def test_commits_are_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened(tmp_path)
    journal = await queue(store)
    assert store.commit_seconds == (0.0, 0)
    commit, now = Database.commit, [100.0]

    def slow(database: Database, changes: Changes) -> None:
        commit(database, changes)
        now[0] += 0.5

    monkeypatch.setattr(Database, "commit", slow)
    monkeypatch.setattr(store.clock, "monotonic", lambda: now[0])
    for _ in range(2):
        await journal.append(b"a").stored()

    assert store.commit_seconds == (1.0, 2)
    await store.close()


@virtual
async def test_what_fails_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened(tmp_path)
    journal = await queue(store)
    with monkeypatch.context() as patched:

        def fail(*_: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        patched.setattr(Database, "commit", fail)
        with pytest.raises(StoreFailed):
            await journal.append(b"a").stored()
        assert store.condition.failures == 1
        with pytest.raises(StoreFailed):
            await queue(store)  # nothing is tried
        assert store.condition.failures == 1
        await sleep(2.5)
        assert store.condition.failures == 3
    await sleep(1)
    assert (store.condition.state, store.condition.failures) == ("open", 3)
    await store.close()


@virtual
async def test_that_it_is_full_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(tmp_path, keep_free_bytes=1_000)
    journal = await queue(store)
    monkeypatch.setattr(Room, "free_bytes", lambda _: 500)
    with pytest.raises(StoreFull):
        await journal.append(b"a").stored()
    await sleep(60)

    assert (store.condition.state, store.condition.failures) == ("full", 1)
    assert store.free_bytes() == 500
    await store.close()


@virtual
async def test_what_is_free_is_told_of_a_disk_alone(tmp_path: Path) -> None:
    assert (await opened(None)).free_bytes() is None
    store = await opened(tmp_path / "store")
    free = store.free_bytes()
    assert free is not None
    assert free > 0
    shutil.rmtree(tmp_path / "store")
    assert store.free_bytes() is None
    await store.close()


@virtual
async def test_entries_that_are_damaged_or_gone_are_counted(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    journal = await queue(store)
    for payloads in ([b"a", b"b"], [b"c"], [b"d", b"e", b"f"]):
        for payload in payloads:
            group = journal.append(payload)
        await group.stored()
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE entries SET crc = crc + 1 WHERE n = 1")
        database.execute("UPDATE entries SET count = 1000000000 WHERE n = 2")

    store = await opened(tmp_path)
    journal = await queue(store)
    assert [each.payload for each in await journal.read()] == [b"d", b"e", b"f"]
    assert store.condition.damaged == 3
    assert journal.entries == 3
    store.rows.lost(1, 5)
    assert store.condition.damaged == 8
    await store.close()
