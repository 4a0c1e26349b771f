"""A queue that is closed is left to the next: what was not let go of comes again, and nothing else."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store import folder, writer
from headrace.compiler.store.database import Database
from headrace.compiler.store.journal import Journal, StoredEntry
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storedrows import ROW_BYTES, Changes
from headrace.compiler.store.storeerrors import StoreFailed
from headrace.compiler.store.writer import LEAVE_SECONDS
from tests.compiler.store.killed import kill
from tests.virtual import virtual


async def opened(path: Path | None) -> Store:
    clock = Clock(asyncio.get_running_loop())
    return await Store.open(clock, path, sync="process", keep_free_bytes=0, reserve_bytes=0)


async def queue(store: Store) -> Journal:
    return await Journal.open(store, "p", "http", "journal", 2**40)


async def filled(store: Store, *commits: Sequence[bytes]) -> Journal:
    """Return a queue that has entries, those of each list in one row."""
    journal = await queue(store)
    for payloads in commits:
        for payload in payloads:
            group = journal.append(payload)
        await group.stored()
    return journal


async def read(journal: Journal) -> list[StoredEntry]:
    """Return all that is there."""
    found: list[StoredEntry] = []
    while len(found) < journal.entries:
        found += await journal.read()
    return found


def numbered(count: int) -> list[bytes]:
    return [b"%d" % which for which in range(count)]


@pytest.mark.parametrize("is_same", [True, False], ids=["same process", "next process"])
@pytest.mark.parametrize(
    ("gone", "rows"),
    [
        ([], 1),
        ([0], 1),
        ([99], 1),
        ([50], 2),
        ([*range(10), 20, 21, 40, *range(90, 100)], 3),
        ([*range(0, 100, 2)], 50),
        ([*range(99)], 1),
        ([*range(100)], 0),
    ],
    ids=["nothing", "first", "last", "middle", "runs", "each other", "all but one", "all"],
)
@virtual
async def test_of_a_row_what_is_left_comes_again(
    tmp_path: Path, gone: list[int], rows: int, is_same: bool
) -> None:
    store = await opened(tmp_path)
    journal = await filled(store, numbered(100))
    before = await read(journal)
    journal.let_go(gone)
    await journal.close()
    if not is_same:
        await store.close()
        store = await opened(tmp_path)

    [stored] = await store.queues.listed()
    again = await queue(store)
    assert (stored.rows, stored.entries, again.entries) == (rows, 100 - len(gone), 100 - len(gone))
    found = await read(again)
    assert found == [each for each in before if each.number not in set(gone)]
    assert again.bytes == stored.bytes + rows * ROW_BYTES
    again.let_go([each.number for each in found])
    assert (again.entries, again.bytes) == (0, 0)
    await store.close()


@virtual
async def test_in_memory_as_well_and_large_ones_keep_their_row() -> None:
    large = bytes(300_000)
    store = await opened(None)
    journal = await filled(store, [b"a", b"b", large, b"c", b"d", large])
    await read(journal)
    journal.let_go([1, 2, 3])
    await journal.close()

    again = await queue(store)
    assert [(each.number, each.payload) for each in await read(again)] == [
        (0, b"a"),
        (4, b"d"),
        (5, large),
    ]


@virtual
async def test_much_at_once_is_given_back(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    journal = await filled(store, *[[bytes(10_000)] * 100 for _ in range(30)])
    choice = random.Random(3)
    numbers = [each.number for each in await read(journal)]
    gone = choice.sample(numbers, 1_500)
    journal.let_go(gone)
    await journal.close()
    await store.close()

    store = await opened(tmp_path)
    again = await queue(store)
    assert [each.number for each in await read(again)] == sorted(set(numbers) - set(gone))
    await store.close()


@virtual
async def test_what_was_not_read_stays_as_it_is(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    journal = await filled(store, *[[bytes(50_000)] * 10 for _ in range(40)])
    first = await journal.read(15)
    journal.let_go([each.number for each in first])
    await journal.close()

    again = await queue(store)
    assert [each.number for each in await read(again)] == [*range(15, 400)]
    await store.close()


@virtual
async def test_after_a_kill_a_row_comes_whole(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    journal = await filled(store, numbered(10))
    await read(journal)
    journal.let_go(range(5))
    kill(store)

    store = await opened(tmp_path)
    again = await queue(store)
    assert [each.number for each in await read(again)] == [*range(10)]
    await store.close()


@virtual
async def test_what_is_given_back_is_under_way_no_more(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    journal = await filled(store, [b"a", b"b"], [b"c"])
    await read(journal)
    kill(store)
    store = await opened(tmp_path)
    journal = await queue(store)
    await read(journal)
    journal.let_go([0])
    await journal.close()
    kill(store)

    store = await opened(tmp_path)
    found = await read(await queue(store))
    assert [(each.payload, each.deaths) for each in found] == [(b"b", 1), (b"c", 1)]
    await store.close()


@virtual
async def test_what_is_let_go_of_too_late_comes_again(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    journal = await filled(store, numbered(4))
    await read(journal)
    journal.let_go([0])
    closing = asyncio.ensure_future(journal.close())
    await asyncio.sleep(0)
    journal.let_go([1])
    journal.set_aside(2)
    await closing
    journal.let_go([3])

    again = await queue(store)
    assert [each.number for each in await read(again)] == [1, 2, 3]
    await store.close()


@virtual
async def test_what_is_being_stored_when_it_is_closed_is_there(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    journal = await queue(store)
    reading = asyncio.ensure_future(journal.read())
    group = journal.append(b"a")
    await journal.close()
    await group.stored()
    with pytest.raises(StoreFailed, match="the queue is closed"):
        journal.append(b"b")

    assert await reading == []
    assert [each.payload for each in await read(await queue(store))] == [b"a"]
    await store.close()


class Refusing(Database):
    """A database that cannot be written to while that is wanted."""

    is_refusing = False

    def commit(self, changes: Changes) -> None:
        if Refusing.is_refusing:
            raise sqlite3.OperationalError("disk I/O error")
        super().commit(changes)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> type[Refusing]:
    monkeypatch.setattr(folder, "Database", Refusing)
    monkeypatch.setattr(Refusing, "is_refusing", False)
    return Refusing


@virtual
async def test_a_disk_that_fails_is_waited_for_and_not_for_long(
    tmp_path: Path, disk: type[Refusing]
) -> None:
    store = await opened(tmp_path)
    clock = Clock(asyncio.get_running_loop())
    journal = await filled(store, numbered(10))
    await read(journal)
    journal.let_go([0, 5])
    disk.is_refusing = True
    began = clock.monotonic()
    await journal.close()
    assert clock.monotonic() - began == pytest.approx(LEAVE_SECONDS)
    with pytest.raises(StoreFailed):
        await queue(store)

    disk.is_refusing = False
    await clock.sleep(2)
    again = await queue(store)
    assert [each.number for each in await read(again)] == [1, 2, 3, 4, 6, 7, 8, 9]
    await store.close()


@virtual
async def test_what_cannot_be_given_back_comes_whole(tmp_path: Path, disk: type[Refusing]) -> None:
    store = await opened(tmp_path)
    journal = await filled(store, numbered(10))
    await read(journal)
    journal.let_go([0, 5])
    disk.is_refusing = True
    await journal.close()
    await store.close()
    disk.is_refusing = False

    store = await opened(tmp_path)
    again = await queue(store)
    assert [each.number for each in await read(again)] == [*range(10)]
    await store.close()


async def test_a_disk_that_does_not_answer_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(tmp_path)
    journal = await filled(store, numbered(10))
    await read(journal)
    journal.let_go([0])
    answers = Event()
    commit = Database.commit

    def late(database: Database, changes: Changes) -> None:
        answers.wait()
        commit(database, changes)

    monkeypatch.setattr(Database, "commit", late)
    monkeypatch.setattr(writer, "LEAVE_SECONDS", 0.1)
    await journal.close()

    answers.set()
    again = await queue(store)
    assert [each.number for each in await read(again)] == [*range(1, 10)]
    await store.close()


@virtual
async def test_a_queue_of_a_closed_store_can_be_closed(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    journal = await filled(store, numbered(10))
    await read(journal)
    await store.close()
    await journal.close()
    await journal.close()

    store = await opened(tmp_path)
    assert (await queue(store)).entries == 10
    await store.close()


@virtual
async def test_the_numbers_of_what_had_left_are_not_used_again(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    journal = await filled(store, numbered(5), numbered(10))
    await read(journal)
    journal.let_go([*range(5), *range(10, 15)])
    await journal.close()
    await store.close()

    again = await queue(store := await opened(tmp_path))

    assert ([each.number for each in await read(again)], again.next_number) == ([*range(5, 10)], 15)
    await store.close()


@virtual
async def test_a_queue_goes_on_after_a_kill_where_a_commit_both_wrote_and_let_go(
    tmp_path: Path,
) -> None:
    store = await opened(tmp_path)
    journal = await filled(store, numbered(3))
    journal.let_go([each.number for each in await read(journal)])
    await journal.append(b"3").stored()
    kill(store)

    again = await queue(store := await opened(tmp_path))

    assert ([each.number for each in await read(again)], again.next_number) == ([3], 4)
    await store.close()
