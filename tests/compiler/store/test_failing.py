"""A disk that fails: nothing is taken, it is tried each second, and nothing that was confirmed is lost."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import ClassVar

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store import folder, writer
from headrace.compiler.store.database import Database
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storedrows import Changes, StoredPage
from headrace.compiler.store.storeerrors import StoreFailed, StoreInUse
from tests.compiler.store.killed import kill
from tests.virtual import virtual


class Failing(Database):
    """A database on a disk of which syncs, or reading, fail when that is wanted."""

    commits_fail: ClassVar = False
    pages_fail: ClassVar = 0
    """So many times."""

    def commit(self, changes: Changes) -> None:
        """Write; where the sync fails, what was written may be there or not: here it is."""
        super().commit(changes)
        if Failing.commits_fail:
            raise sqlite3.OperationalError("disk I/O error")

    def page(self, queue: int, after: int, before: int, most_bytes: int) -> StoredPage:
        if Failing.pages_fail:
            Failing.pages_fail -= 1
            raise sqlite3.OperationalError("disk I/O error")
        return super().page(queue, after, before, most_bytes)


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> type[Failing]:
    monkeypatch.setattr(folder, "Database", Failing)
    monkeypatch.setattr(Failing, "commits_fail", False)
    monkeypatch.setattr(Failing, "pages_fail", 0)
    return Failing


async def opened(path: Path, told: list[str]) -> tuple[Clock, Store, Journal]:
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(
        clock, path, sync="process", keep_free_bytes=0, reserve_bytes=0, tell=told.append
    )
    return clock, store, await Journal.open(store, "p", "http", "journal", 2**40)


async def payloads(journal: Journal, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        found += [each.payload for each in await journal.read(count - len(found))]
    return found


@virtual
async def test_nothing_is_taken_until_it_can_be_written_again(
    tmp_path: Path, disk: type[Failing]
) -> None:
    told: list[str] = []
    clock, store, journal = await opened(tmp_path, told)
    await journal.append(b"a").stored()

    disk.commits_fail = True
    with pytest.raises(StoreFailed, match="it cannot be written: disk I/O error"):
        await journal.append(b"b").stored()
    assert store.condition.state == "failing"
    with pytest.raises(StoreFailed):
        journal.append(b"c")
    assert journal.entries == 1
    await clock.sleep(10)
    assert store.condition.state == "failing"

    disk.commits_fail = False
    await clock.sleep(1.1)
    assert store.condition.state == "open"
    await journal.append(b"d").stored()
    assert told == [
        "the store takes nothing: it cannot be written: disk I/O error",
        "the store takes entries again",
    ]
    assert await payloads(journal, 2) == [b"a", b"d"]
    await store.close()

    _, store, journal = await opened(tmp_path, told)
    assert journal.entries == 2
    assert await payloads(journal, 2) == [b"a", b"d"]  # what was refused is not there after all
    await store.close()


@virtual
async def test_what_waits_when_it_fails_is_refused_as_well(
    tmp_path: Path, disk: type[Failing]
) -> None:
    _, store, journal = await opened(tmp_path, [])
    disk.commits_fail = True
    groups = [journal.append(bytes(2**18)) for _ in range(20)]
    assert len(set(map(id, groups))) > 1

    causes = await asyncio.gather(*(each.stored() for each in groups), return_exceptions=True)
    assert all(type(cause) is StoreFailed for cause in causes)
    assert (journal.entries, journal.bytes) == (0, 0)
    await store.close()


@virtual
async def test_what_is_let_go_of_meanwhile_goes_later(tmp_path: Path, disk: type[Failing]) -> None:
    clock, store, journal = await opened(tmp_path, [])
    await journal.append(b"a").stored()
    [entry] = await journal.read()
    disk.commits_fail = True
    with pytest.raises(StoreFailed):
        await journal.append(b"b").stored()
    journal.let_go([entry.number])
    await clock.sleep(5)
    disk.commits_fail = False
    await clock.sleep(2)

    assert [each.rows for each in await store.queues.listed()] == [0]
    await store.close()


@virtual
async def test_a_page_that_cannot_be_read_is_read_when_it_can(
    tmp_path: Path, disk: type[Failing]
) -> None:
    told: list[str] = []
    _, store, journal = await opened(tmp_path, told)
    await journal.append(b"a").stored()
    await store.close()

    _, store, journal = await opened(tmp_path, told)
    disk.pages_fail = 1
    assert await payloads(journal, 1) == [b"a"]
    assert told == [
        "the store takes nothing: it cannot be written: disk I/O error",
        "the store takes entries again",
    ]
    await store.close()


@virtual
async def test_what_cannot_be_read_again_and_again_is_made_anew_of_what_can(
    tmp_path: Path, disk: type[Failing]
) -> None:
    told: list[str] = []
    _, store, journal = await opened(tmp_path, told)
    await journal.append(b"a").stored()
    await store.close()

    _, store, journal = await opened(tmp_path, told)
    disk.pages_fail = 2
    assert await payloads(journal, 1) == [b"a"]
    assert any("it is kept as" in each and "1 could be read" in each for each in told)
    assert (tmp_path / "store.db.damaged-1").exists()
    await store.close()


@virtual
async def test_one_that_may_end_the_process_waits_until_that_can_be_written(
    tmp_path: Path, disk: type[Failing]
) -> None:
    clock, store, journal = await opened(tmp_path, [])
    for payload in (b"a", b"b", b"c"):
        group = journal.append(payload)
    await group.stored()
    for _ in range(2):
        assert len(await journal.read()) == 3
        kill(store)
        clock, store, journal = await opened(tmp_path, [])

    disk.commits_fail = True
    reading = asyncio.ensure_future(journal.read())  # its row has to be split
    await clock.sleep(5)
    assert not reading.done()
    disk.commits_fail = False
    [first] = await reading
    assert (first.payload, first.deaths) == (b"a", 2)
    journal.let_go([first.number])

    disk.commits_fail = True
    reading = asyncio.ensure_future(journal.read())  # it has to be marked
    await clock.sleep(5)
    assert not reading.done()
    disk.commits_fail = False
    assert [each.payload for each in await reading] == [b"b"]
    kill(store)

    _, store, journal = await opened(tmp_path, [])
    assert [(each.payload, each.deaths) for each in await journal.read()] == [(b"b", 3)]
    await store.close()


@virtual
async def test_who_waits_for_it_hears_that_the_store_is_closed(
    tmp_path: Path, disk: type[Failing]
) -> None:
    clock, store, journal = await opened(tmp_path, [])
    await journal.append(b"a").stored()
    for _ in range(2):
        await journal.read()
        kill(store)
        clock, store, journal = await opened(tmp_path, [])
    disk.commits_fail = True
    reading = asyncio.ensure_future(journal.read())
    await clock.sleep(5)
    await store.close()

    with pytest.raises(StoreFailed, match="the store is closed"):
        await reading


@virtual
async def test_what_is_set_aside_and_the_id_are_kept_where_a_database_is_made_anew(
    tmp_path: Path, disk: type[Failing]
) -> None:
    told: list[str] = []
    clock, store, journal = await opened(tmp_path, told)
    for payload in (b"a", b"b"):
        await journal.append(payload).stored()
    for entry in await journal.read():
        journal.set_aside(entry.number)
    await clock.sleep(1)
    before = store.database._run.execute("SELECT * FROM aside").fetchall()
    assert [row[-3] for row in before] == [b"\1\0\0\0a", b"\1\0\0\0b"]
    await journal.append(b"c").stored()
    again = await Journal.open(store, "p", "http", "journal", 2**40)
    id = store.id
    disk.pages_fail = 2
    assert await payloads(again, 1) == [b"c"]

    assert any("it is kept as" in each for each in told)
    assert store.database._run.execute("SELECT * FROM aside").fetchall() == before
    assert store.id == id
    await store.close()


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


async def filled(journal: Journal) -> tuple[int, StoreFailed]:
    """Put entries down until one is refused; return how many are stored, and why."""
    stored = 0
    while True:
        try:
            await journal.append(b"%d" % stored + bytes(10_000)).stored()
        except StoreFailed as cause:
            return stored, cause
        stored += 1


@pytest.mark.parametrize("most_bytes", [pytest.param(2**20, id="RLIMIT_FSIZE")])
@virtual
async def test_a_file_that_may_not_grow_loses_nothing(tmp_path: Path, most_bytes: int) -> None:
    """What a quota says SQLite does not tell from a disk that fails."""
    told: list[str] = []
    clock, store, journal = await opened(tmp_path, told)
    with no_file_grows_beyond(most_bytes):
        stored, cause = await filled(journal)
        assert "SQLITE_IOERR" in str(cause)
        await clock.sleep(3)
    await clock.sleep(2)
    assert store.condition.state == "open"
    await journal.append(b"%d" % stored + bytes(10_000)).stored()
    await store.close()

    _, store, journal = await opened(tmp_path, told)
    assert journal.entries == stored + 1 > 20
    found = await payloads(journal, stored + 1)
    assert found == [b"%d" % which + bytes(10_000) for which in range(stored + 1)]
    await store.close()


@virtual
async def test_a_store_that_fails_can_be_closed(tmp_path: Path, disk: type[Failing]) -> None:
    told: list[str] = []
    clock, store, journal = await opened(tmp_path, told)
    disk.commits_fail = True
    with pytest.raises(StoreFailed):
        await journal.append(b"a").stored()
    await store.close()
    told.clear()
    await clock.sleep(60)

    assert told == []
    with pytest.raises(StoreFailed, match="the store is closed"):
        journal.append(b"b")
    disk.commits_fail = False
    _, store, journal = await opened(tmp_path, told)
    await store.close()


@virtual
async def test_what_was_put_down_before_it_is_closed_is_stored(tmp_path: Path) -> None:
    _, store, journal = await opened(tmp_path, [])
    groups = [journal.append(bytes(2**18)) for _ in range(20)]
    await asyncio.gather(store.close(), store.close())

    for group in groups:
        await group.stored()
    _, store, journal = await opened(tmp_path, [])
    assert journal.entries == 20
    await store.close()


async def test_a_disk_that_does_not_answer_does_not_keep_a_store_from_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    _, store, journal = await opened(tmp_path, told)
    answers = Event()
    monkeypatch.setattr(Failing, "commit", lambda *_: answers.wait())
    monkeypatch.setattr(writer, "CLOSE_SECONDS", 0.1)
    group = journal.append(b"a")
    await store.close()

    assert told == ["the store has not answered for 0.1 s: it is left as it is"]
    answers.set()
    await group.stored()


@virtual
async def test_a_queue_in_use_is_not_discarded(tmp_path: Path) -> None:
    clock, store, journal = await opened(tmp_path, [])
    await journal.append(b"a").stored()
    [queue] = await store.queues.listed()
    with pytest.raises(StoreInUse):
        await store.queues.discard(queue.id)

    await journal.close()
    await store.queues.discard(queue.id)
    assert await store.queues.listed() == []
    await clock.sleep(1)
    await store.close()
