"""Shelves of a store in memory: entries by their numbers, as often as wanted, until they are let go of."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store.inpieces import MOST_JOINED
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.shelf import Shelf
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull
from tests.compiler.store.killed import kill
from tests.virtual import virtual

LARGE = random.Random(1).randbytes(2 * MOST_JOINED + 1)
NAME = ("p", "s3 lake", "parts")


async def opened(folder: Path | None = None) -> Store:
    return await Store.open(Clock(asyncio.get_running_loop()), folder, reserve_bytes=0)


async def put(shelf: Shelf, *entries: bytes) -> list[int]:
    """Put entries down; return their numbers when they are stored."""
    told: asyncio.Queue[tuple[int, StoreFailed | None]] = asyncio.Queue()
    for each in entries:
        shelf.put(each, lambda number, cause: told.put_nowait((number, cause)))
    ended = [await told.get() for _ in entries]
    assert [cause for _, cause in ended] == [None] * len(entries)
    return [number for number, _ in ended]


@virtual
async def test_an_entry_is_read_by_its_number_as_often_as_wanted() -> None:
    shelf = await Shelf.open(await opened(), *NAME, 2**30)

    numbers = await put(shelf, b"one", LARGE, b"three")

    assert numbers == [0, 1, 2]
    assert [await shelf.read(number) for number in (2, 1, 0, 1)] == [b"three", LARGE, b"one", LARGE]
    assert shelf.entries == 3


@virtual
async def test_what_is_not_let_go_of_is_listed_by_its_beginning() -> None:
    store = await opened()
    shelf = await Shelf.open(store, *NAME, 2**30)
    one, large, three = await put(shelf, b"one", LARGE, b"three")
    shelf.let_go(one)
    used = shelf.bytes
    await shelf.close()

    again = await Shelf.open(store, *NAME, 2**30)

    assert (again.entries, again.bytes) == (2, used)
    assert await again.listed(4) == [(large, LARGE[:4], len(LARGE)), (three, b"thre", 5)]
    assert await again.read(three) == b"three"
    for number in (large, three):
        again.let_go(number)
    assert (again.entries, again.bytes, again.oldest()) == (0, 0, None)
    assert await put(again, b"four") == [3]  # numbers never begin anew


@virtual
async def test_a_full_shelf_takes_nothing_until_something_goes() -> None:
    shelf = await Shelf.open(await opened(), *NAME, 200)
    [one] = await put(shelf, b"x" * 100)

    assert not shelf.has_room_for(100)
    with pytest.raises(StoreFull):
        shelf.put(b"x" * 100, lambda *_: None)
    shelf.let_go(one)
    await put(shelf, b"x" * 100)


@virtual
async def test_a_shelf_that_is_left_waits_for_what_is_being_stored() -> None:
    store = await opened()
    shelf = await Shelf.open(store, *NAME, 2**30)
    told: list[int] = []

    shelf.put(b"one", lambda number, _: told.append(number))
    await shelf.close()

    assert told == [0]
    with pytest.raises(StoreFailed):
        shelf.put(b"two", lambda *_: None)
    assert (await Shelf.open(store, *NAME, 2**30)).entries == 1


async def test_what_is_put_down_outlasts_a_process_that_is_killed(tmp_path: Path) -> None:
    store = await opened(tmp_path / "store")
    shelf = await Shelf.open(store, *NAME, 2**30)
    [one, _] = await put(shelf, b"one", LARGE)
    await shelf.read(one)  # which suspects nobody
    del shelf
    kill(store)

    again = await opened(tmp_path / "store")
    shelf = await Shelf.open(again, *NAME, 2**30)

    assert [each.number for each in await shelf.listed(1)] == [0, 1]
    assert await shelf.read(1) == LARGE
    await again.close()


async def test_a_damaged_entry_is_read_as_nothing_and_counted(tmp_path: Path) -> None:
    store = await opened(tmp_path / "store")
    shelf = await Shelf.open(store, *NAME, 2**30)
    one, two = await put(shelf, b"one", b"two")
    await store.read(lambda run: run.execute("UPDATE entries SET crc = 0 WHERE first = 0"))

    assert await shelf.read(one) is None
    assert await shelf.read(two) == b"two"
    assert (shelf.entries, store.condition.damaged) == (1, 1)
    await store.close()
