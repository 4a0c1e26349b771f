"""What is heard of a store: each change of its state once, and each damage."""

from __future__ import annotations

import asyncio
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


async def opened(path: Path, heard: list[tuple[str, str]]) -> tuple[Clock, Store, Journal]:
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(
        clock,
        path,
        sync="process",
        keep_free_bytes=0,
        reserve_bytes=0,
        hear=lambda news, why: heard.append((news, why)),
    )
    return clock, store, await Journal.open(store, "p", "http", "journal", 2**40)


@virtual
async def test_a_full_disk_is_heard_of_once_and_that_there_is_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[str, str]] = []
    clock, store, journal = await opened(tmp_path, heard)
    with monkeypatch.context() as full:
        full.setattr(Room, "free_bytes", lambda _: -1 * round(clock.monotonic()))
        for _ in range(5):
            with pytest.raises(StoreFull):
                await journal.append(b"a").stored()
            await clock.sleep(1)
    await clock.sleep(2)
    await journal.append(b"b").stored()
    await store.close()

    assert [news for news, _ in heard] == ["full", "open"]
    assert "kept free" in heard[0][1]


@virtual
async def test_a_disk_that_fails_is_heard_of_once_whatever_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, tried = list[tuple[str, str]](), [0]
    clock, store, journal = await opened(tmp_path, heard)

    def failing(self: Database, changes: Changes) -> None:
        tried[0] += 1
        raise sqlite3.OperationalError(f"disk I/O error {tried[0]}")

    with monkeypatch.context() as fails:
        fails.setattr(Database, "commit", failing)
        with pytest.raises(StoreFailed):
            await journal.append(b"a").stored()
        await clock.sleep(5)
    await clock.sleep(2)
    await journal.append(b"b").stored()
    await store.close()

    assert tried[0] > 3
    assert [news for news, _ in heard] == ["failing", "open"]
    assert "disk I/O error 1" in heard[0][1]


@virtual
async def test_files_that_are_removed_are_heard_of(tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []
    clock, store, journal = await opened(tmp_path, heard)
    (tmp_path / "store.db").unlink()
    await clock.sleep(LOOK_SECONDS + 2)
    await journal.append(b"b").stored()
    await store.close()

    assert [news for news, _ in heard] == ["failing", "open"]
    assert heard[0][1].endswith("store.db' was removed")


@virtual
async def test_damage_is_heard_of_as_it_is_found(tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []
    _, store, journal = await opened(tmp_path, heard)
    await journal.append(b"a").stored()
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE entries SET crc = crc + 1")
    _, store, journal = await opened(tmp_path, heard)
    journal.stop()
    assert await journal.read() == []
    await store.close()
    (tmp_path / "store.db").write_bytes(b"something else" * 1000)
    _, store, _ = await opened(tmp_path, heard)
    await store.close()

    assert [news for news, _ in heard] == ["damaged", "damaged"]
    assert "entries of queue 1 from 0 on are damaged" in heard[0][1]
    assert "file is not a database" in heard[1][1]
