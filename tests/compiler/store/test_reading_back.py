"""Much that is outstanding is read back a page at a time: little of it is in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.edges import READY_BYTES
from headrace.compiler.store.database import Database, log_of
from headrace.compiler.store.folder import DATABASE
from headrace.compiler.store.group import MOST_BYTES
from headrace.compiler.store.journal import PAGE_BYTES, Journal
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storedrows import READY_ENTRIES
from headrace.compiler.store.writer import GIVEN_BACK_PAGES, QUIET_SECONDS
from tests.virtual import virtual

OUTSTANDING = 64 * 2**20


@pytest.mark.parametrize("size", [100, 10_000, 300_000])
@virtual
async def test_a_page_at_a_time_is_in_memory(tmp_path: Path, size: int) -> None:
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, tmp_path, sync="process", keep_free_bytes=0, reserve_bytes=0)
    journal = await Journal.open(store, "p", "http", "journal", 2**40)
    total = OUTSTANDING // (16 if size == 100 else 1)
    count = total // size
    payload = bytes(size)
    for start in range(0, count, 4_096):
        for _ in range(start, min(start + 4_096, count)):
            group = journal.append(payload)
        await group.stored()
        assert journal.ready_bytes <= READY_BYTES + size
        assert len(journal._ready) <= READY_ENTRIES

    read = most = 0
    journal.stop()
    while entries := await journal.read():
        read += len(entries)
        most = max(most, sum(len(each.payload) for each in journal._ready))
        journal.let_go([each.number for each in entries])
        assert len(journal._rows) == len(journal._ready)
    assert read == count
    row = max(MOST_BYTES + size, size)  # a page has at least one row, and the last one whole
    assert most <= max(READY_BYTES + size, PAGE_BYTES + row)
    assert (journal.entries, journal.bytes) == (0, 0)
    await store.close()


@virtual
async def test_what_is_marked_as_read_or_as_left_is_not_written_anew(tmp_path: Path) -> None:
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, tmp_path, sync="process", keep_free_bytes=0, reserve_bytes=0)
    writing = await Journal.open(store, "p", "http", "journal", 2**40)
    for _ in range(
        28
    ):  # the first are handed on at once, as far as there is room for them in memory
        await writing.append(bytes(200_000)).stored()
    log = log_of(tmp_path / DATABASE)
    store.database.checkpoint()

    await writing.close()
    reading = await Journal.open(store, "p", "http", "journal", 2**40)
    read = 0
    while read < reading.entries:
        read += len(await reading.read())
    await reading.close()

    assert 0 < log.stat().st_size < 2**20
    await store.close()


@virtual
async def test_the_file_is_given_back_when_nothing_is_in_it(tmp_path: Path) -> None:
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, tmp_path, sync="process", keep_free_bytes=0, reserve_bytes=0)
    journal = await Journal.open(store, "p", "http", "journal", 2**40)
    for _ in range(64):
        group = journal.append(bytes(2**20))
    await group.stored()
    journal.stop()
    while entries := await journal.read():
        journal.let_go([each.number for each in entries])
    await clock.sleep(60)
    await store.close()

    assert (tmp_path / "store.db").stat().st_size < 8 * 2**20


@virtual
async def test_room_is_given_back_when_all_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, tmp_path, sync="process", keep_free_bytes=0, reserve_bytes=0)
    journal = await Journal.open(store, "p", "http", "journal", 2**40)
    for _ in range(400):
        await journal.append(bytes(60_000)).stored()
    left = list[int]()
    give_back = Database.give_back

    def counted(self: Database, pages: int) -> None:
        left.append(journal.entries)
        give_back(self, pages)

    monkeypatch.setattr(Database, "give_back", counted)
    journal.stop()
    while entries := await journal.read():
        journal.let_go([each.number for each in entries])
        await clock.sleep(QUIET_SECONDS * 0.6)
    assert left == []

    await clock.sleep(1)
    assert left
    assert set(left) == {0}
    assert store.database.free_pages() <= GIVEN_BACK_PAGES
    await store.close()
