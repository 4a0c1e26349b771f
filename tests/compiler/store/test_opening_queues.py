"""Queues that are opened while others are discarded, or for somebody who does not wait for them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storeerrors import StoreInUse
from tests.virtual import virtual


async def opened(path: Path) -> tuple[Store, Journal]:
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, path, sync="process", keep_free_bytes=0, reserve_bytes=0)
    return store, await Journal.open(store, "p", "http", "journal", 2**40)


@pytest.mark.parametrize("turns", range(5))
@virtual
async def test_one_that_is_being_opened_is_not_discarded(tmp_path: Path, turns: int) -> None:
    store, journal = await opened(tmp_path)
    await journal.append(b"a").stored()
    await journal.close()
    [left] = await store.queues.listed()

    opening = asyncio.ensure_future(store.queues.open("p", "http", "journal"))
    for _ in range(turns):
        await asyncio.sleep(0)
    with suppress(StoreInUse):
        await store.queues.discard(left.id)
    found = await opening
    assert [each.id for each in await store.queues.listed()] == [found.id]
    assert found.entries == (1 if found.id == left.id else 0)
    await store.close()


@virtual
async def test_what_is_written_with_one_that_nobody_waits_for_is_written(tmp_path: Path) -> None:
    store, journal = await opened(tmp_path)
    await journal.append(b"a").stored()
    [entry] = await journal.read()
    journal.let_go([entry.number])
    written = asyncio.Event()
    store.changes.then.append(written.set)
    opening = asyncio.ensure_future(store.queues.open("p", "other", "journal"))
    for _ in range(2):  # until it is on the thread
        await asyncio.sleep(0)
    assert store.changes.is_empty
    opening.cancel()
    await written.wait()
    with pytest.raises(asyncio.CancelledError):
        await opening

    ours, other = await store.queues.listed()
    assert ours.entries == 0
    await store.queues.discard(other.id)  # nobody has it
    assert [each.id for each in await store.queues.listed()] == [ours.id]
    await store.close()
