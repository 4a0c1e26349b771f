"""What was under way when the process ended without a word, and what may have ended it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from headrace.compiler.clock import Clock
from headrace.compiler.store.journal import Journal, StoredEntry
from headrace.compiler.store.writer import Store
from tests.compiler.store.killed import kill
from tests.virtual import virtual


async def opened(path: Path) -> tuple[Store, Journal]:
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, path, sync="process", keep_free_bytes=0, reserve_bytes=0)
    return store, await Journal.open(store, "p", "http", "journal", 2**40)


async def filled(path: Path, *commits: list[bytes]) -> None:
    """Put entries down, those of each list in one commit, without having them read."""
    store, journal = await opened(path)
    for payloads in commits:
        for payload in payloads:
            group = journal.append(payload)
        await group.stored()
    await store.close()


async def read(journal: Journal, count: int) -> list[StoredEntry]:
    found: list[StoredEntry] = []
    while len(found) < count:
        found += await journal.read(count - len(found))
    return found


async def die(path: Path, times: int) -> None:
    """Have the process end so often while the first entry is under way."""
    for _ in range(times):
        store, journal = await opened(path)
        await journal.read(1)
        kill(store)


@virtual
async def test_a_kill_is_counted_and_a_close_is_not(tmp_path: Path) -> None:
    await filled(tmp_path, [b"a"])
    deaths = []
    for _ in range(3):
        store, journal = await opened(tmp_path)
        deaths += [each.deaths for each in await read(journal, 1)]
        await store.close()
        store, journal = await opened(tmp_path)
        await read(journal, 1)
        kill(store)
        store, journal = await opened(tmp_path)
        kill(store)  # nothing was under way

    assert deaths == [0, 1, 2]


@virtual
async def test_what_is_handed_on_as_it_comes_is_under_way(tmp_path: Path) -> None:
    store, journal = await opened(tmp_path)
    await journal.append(b"a").stored()
    await read(journal, 1)
    kill(store)

    store, journal = await opened(tmp_path)
    assert [each.deaths for each in await read(journal, 1)] == [1]
    await store.close()


@virtual
async def test_what_was_not_read_was_not_under_way(tmp_path: Path) -> None:
    large = bytes(2**20)
    await filled(tmp_path, [b"a"], [large], [large], [b"z"])
    await die(tmp_path, 1)

    store, journal = await opened(tmp_path)
    first = await read(journal, 1)
    journal.let_go([first[0].number])
    assert [each.deaths for each in first + await read(journal, 3)] == [1, 1, 0, 0]
    await store.close()


@virtual
async def test_what_may_have_ended_the_process_is_handed_out_alone(tmp_path: Path) -> None:
    await filled(tmp_path, [b"a", b"b"], [bytes(2**20)], [b"c", b"d"])
    await die(tmp_path, 2)

    store, journal = await opened(tmp_path)
    [first] = await journal.read()
    assert (first.payload, first.deaths) == (b"a", 2)
    waiting = asyncio.ensure_future(journal.read())
    await Clock(asyncio.get_running_loop()).sleep(60)
    assert not waiting.done()
    await journal.append(b"e").stored()
    assert not waiting.done()

    journal.let_go([first.number])
    [second] = await waiting
    assert (second.payload, second.deaths) == (b"b", 2)
    journal.let_go([second.number])
    [third] = await journal.read()
    assert (len(third.payload), third.deaths) == (2**20, 2)
    journal.let_go([third.number])
    assert [each.payload for each in await read(journal, 3)] == [b"c", b"d", b"e"]
    await store.close()


@virtual
async def test_what_is_behind_others_waits_for_them(tmp_path: Path) -> None:
    await filled(tmp_path, [b"a"], [bytes(2**20)])
    await die(tmp_path, 1)  # both: a page goes beyond what is asked for
    store, journal = await opened(tmp_path)
    deaths = {0: 1, 1: 2}
    with_deaths(store, deaths)
    [first] = await journal.read()
    assert first.deaths == 1
    waiting = asyncio.ensure_future(journal.read())
    await Clock(asyncio.get_running_loop()).sleep(60)
    assert not waiting.done()

    journal.let_go([first.number])
    [second] = await waiting
    assert second.deaths == 2
    await store.close()


def with_deaths(store: Store, deaths: dict[int, int]) -> None:
    """Have rows have ended the process so often, by the number of their first entry."""
    for first, count in deaths.items():
        store._database._run.execute(
            "UPDATE entries SET deaths = ? WHERE first = ?", (count, first)
        )


@virtual
async def test_nobody_waits_at_the_end_until_what_is_alone_is_let_go_of(tmp_path: Path) -> None:
    await filled(tmp_path, [b"a"], [b"b"])
    await die(tmp_path, 2)
    store, journal = await opened(tmp_path)
    [alone] = await read(journal, 1)
    waiting = asyncio.ensure_future(journal.read())
    await store._clock.sleep(1)
    assert not waiting.done()
    journal.stop(at_once=True)

    assert await waiting == []
    assert await journal.read() == []
    journal.let_go([alone.number])
    await journal.close()
    assert journal.entries == 1
    await store.close()
