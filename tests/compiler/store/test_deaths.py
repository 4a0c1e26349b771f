"""What was under way when the process ended without a word, and what may have ended it."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store.database import BLAMED_SECONDS, Database
from headrace.compiler.store.journal import SURVIVED_SECONDS, Journal, StoredEntry
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.suspects import TOGETHER
from headrace.compiler.store.writer import LOOK_SECONDS
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
    await store.clock.sleep(SURVIVED_SECONDS - 1)
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
    await store.clock.sleep(SURVIVED_SECONDS - 1)
    assert not waiting.done()

    journal.let_go([first.number])
    [second] = await waiting
    assert second.deaths == 2
    await store.close()


def with_deaths(store: Store, deaths: dict[int, int]) -> None:
    """Have rows have ended the process so often, by the number of their first entry."""
    for first, count in deaths.items():
        store.database._run.execute("UPDATE entries SET deaths = ? WHERE first = ?", (count, first))


@virtual
async def test_nobody_waits_at_the_end_until_what_is_alone_is_let_go_of(tmp_path: Path) -> None:
    await filled(tmp_path, [b"a"], [b"b"])
    await die(tmp_path, 2)
    store, journal = await opened(tmp_path)
    [alone] = await read(journal, 1)
    waiting = asyncio.ensure_future(journal.read())
    await store.clock.sleep(1)
    assert not waiting.done()
    journal.stop(at_once=True)

    assert await waiting == []
    assert await journal.read() == []
    journal.let_go([alone.number])
    await journal.close()
    assert journal.entries == 1
    await store.close()


async def deaths(path: Path) -> list[int]:
    """Return how often what is there ended the process, in order."""
    store, journal = await opened(path)
    found = [each.deaths for each in await read(journal, journal.entries)]
    await store.close()
    return found


@virtual
async def test_what_was_handed_out_long_before_the_end_has_not_ended_it(tmp_path: Path) -> None:
    await filled(tmp_path, [b"a"])
    for _ in range(3):
        store, journal = await opened(tmp_path)
        await read(journal, 1)
        await store.clock.sleep(BLAMED_SECONDS + LOOK_SECONDS + 1)
        kill(store)
    assert await deaths(tmp_path) == [0]

    store, journal = await opened(tmp_path)
    await read(journal, 1)
    await store.clock.sleep(BLAMED_SECONDS + 1)
    await journal.append(b"b").stored()  # a commit tells as well that it is alive
    await read(journal, 1)
    kill(store)
    assert await deaths(tmp_path) == [0, 1]


@virtual
async def test_where_the_clock_was_set_back_it_is_counted(tmp_path: Path) -> None:
    await filled(tmp_path, [b"a"])
    store, journal = await opened(tmp_path)
    await read(journal, 1)
    store.database._run.execute("UPDATE entries SET taken = taken + 3600")
    await store.clock.sleep(60)
    kill(store)

    assert await deaths(tmp_path) == [1]


async def gone(journal: Journal) -> None:
    journal.let_go([0])


@virtual
async def test_that_it_is_alive_is_written_only_while_something_is_under_way(
    tmp_path: Path,
) -> None:
    await filled(tmp_path, [b"a"])
    store, journal = await opened(tmp_path)
    run = store.database._run
    writes = []
    for work in [lambda: read(journal, 1), lambda: gone(journal)]:
        before = run.total_changes
        await store.clock.sleep(10 * LOOK_SECONDS)
        writes.append(run.total_changes - before)
        await work()
        await store.clock.sleep(1)
    before = run.total_changes
    await store.clock.sleep(10 * LOOK_SECONDS)
    writes.append(run.total_changes - before)
    await store.close()

    assert writes == [0, 10, 0]


@virtual
async def test_that_it_cannot_be_written_while_nothing_comes_does_not_fail_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(tmp_path, [b"a"])
    store, journal = await opened(tmp_path)
    await read(journal, 1)

    tries = []

    def fail(_: Database) -> None:
        tries.append(1)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(Database, "mark_alive", fail)
    await store.clock.sleep(3 * LOOK_SECONDS + 1)
    assert (len(tries), store.condition.state, store.condition.failures) == (3, "open", 0)
    await store.close()


@virtual
async def test_what_is_alone_and_ends_nothing_for_a_while_is_innocent(tmp_path: Path) -> None:
    await filled(tmp_path, [b"a", b"b"], [b"c"])
    await die(tmp_path, 2)
    store, journal = await opened(tmp_path)
    began = store.clock.monotonic()
    found = await read(journal, 3)  # none is let go of
    assert [each.deaths for each in found] == [2, 2, 2]
    assert store.clock.monotonic() - began == pytest.approx(2 * SURVIVED_SECONDS)
    await store.clock.sleep(SURVIVED_SECONDS + 1)
    kill(store)

    store, journal = await opened(tmp_path)
    found = await journal.read()
    assert [each.deaths for each in found] == [0, 0, 0]
    await store.close()


@virtual
async def test_what_may_end_the_process_does_not_wait_for_ever_for_what_is_out(
    tmp_path: Path,
) -> None:
    await filled(tmp_path, [b"a"], [b"b"], [b"c"])
    store, journal = await opened(tmp_path)
    with_deaths(store, {0: 1, 1: 2, 2: 2})
    [first] = await journal.read()
    began = store.clock.monotonic()
    [second] = await journal.read()
    assert store.clock.monotonic() - began == pytest.approx(SURVIVED_SECONDS)
    kill(store)
    assert (first.deaths, second.deaths) == (1, 2)

    store, _ = await opened(tmp_path)
    rows = store.database._run.execute("SELECT deaths FROM entries ORDER BY first").fetchall()
    assert rows == [(0,), (3,), (2,)]
    await store.close()


@virtual
async def test_what_is_let_go_of_in_any_order_is_counted_right(tmp_path: Path) -> None:
    await filled(tmp_path, [b"a"], [b"b"], [b"c"])
    await die(tmp_path, 2)
    store, journal = await opened(tmp_path)
    [first] = await journal.read()
    [second] = await journal.read()
    journal.let_go([first.number])
    waiting = asyncio.ensure_future(journal.read())
    await store.clock.sleep(1)
    assert not waiting.done()
    journal.let_go([second.number])
    [third] = await waiting
    journal.let_go([third.number])
    assert (journal.entries, journal.bytes) == (0, 0)
    await store.close()


async def suspected(path: Path, count: int) -> list[bytes]:
    """Put entries down, and have the process end twice while all of them are under way."""
    payloads = [b"%d" % which for which in range(count)]
    await filled(path, payloads)
    for _ in range(2):
        store, journal = await opened(path)
        await read(journal, count)
        kill(store)
    return payloads


@pytest.mark.parametrize("most", [1, 30, 1_024])
@virtual
async def test_of_many_that_stay_under_way_some_go_together(tmp_path: Path, most: int) -> None:
    payloads = await suspected(tmp_path, 10 * TOGETHER)
    store, journal = await opened(tmp_path)
    began, found, times = store.clock.monotonic(), list[StoredEntry](), list[float]()
    while len(found) < len(payloads):
        found += await journal.read(most)  # none is let go of
        times += [store.clock.monotonic() - began] * (len(found) - len(times))

    assert [each.payload for each in found] == payloads
    # Pages have other ends than every hundred.
    assert 9 * SURVIVED_SECONDS - 1 < times[-1] < 16 * SURVIVED_SECONDS
    assert max(times.count(each) for each in set(times)) == TOGETHER
    await store.clock.sleep(SURVIVED_SECONDS + 1)
    await store.close()
    assert await deaths(tmp_path) == [0] * len(payloads)


@virtual
async def test_those_that_ended_the_process_together_go_alone_the_next_time(tmp_path: Path) -> None:
    await suspected(tmp_path, TOGETHER)
    store, journal = await opened(tmp_path)
    assert len(await journal.read()) == TOGETHER
    kill(store)

    store, journal = await opened(tmp_path)
    [first] = await journal.read()
    assert first.deaths == 2
    journal.let_go([first.number])
    [second] = await journal.read()
    kill(store)

    store, journal = await opened(tmp_path)
    [again] = await journal.read()
    assert (again.number, again.deaths) == (second.number, 3)
    await store.close()


@virtual
async def test_those_of_them_that_were_tried_are_innocent_and_no_others(tmp_path: Path) -> None:
    await suspected(tmp_path, TOGETHER)
    store, journal = await opened(tmp_path)
    numbers = [each.number for each in await journal.read()]
    journal.have_survived(numbers[: TOGETHER // 2])
    journal.let_go(numbers[:1])
    await store.clock.sleep(1)
    kill(store)

    store, journal = await opened(tmp_path)
    tried = await journal.read()
    assert [each.number for each in tried] == numbers[1 : TOGETHER // 2]
    assert {each.deaths for each in tried} == {0}
    journal.let_go([each.number for each in tried])
    [alone] = await journal.read()
    assert (alone.number, alone.deaths) == (numbers[TOGETHER // 2], 2)
    waiting = asyncio.ensure_future(journal.read())
    await store.clock.sleep(1)
    assert not waiting.done()
    journal.have_survived([alone.number])
    assert [each.number for each in await waiting] == [alone.number + 1]
    await store.close()


@virtual
async def test_a_close_leaves_those_that_were_out_together_as_they_were(tmp_path: Path) -> None:
    await suspected(tmp_path, TOGETHER)
    for _ in range(3):
        store, journal = await opened(tmp_path)
        found = await journal.read()
        assert (len(found), {each.deaths for each in found}) == (TOGETHER, {2})
        await journal.close()
        await store.close()


@virtual
async def test_what_was_out_together_waits_until_all_of_it_is_gone(tmp_path: Path) -> None:
    await suspected(tmp_path, TOGETHER + 1)
    store, journal = await opened(tmp_path)
    some = await journal.read(60)
    others = await journal.read()
    assert (len(some), len(others)) == (60, TOGETHER - 60)
    journal.let_go([each.number for each in some])
    waiting = asyncio.ensure_future(journal.read())
    await store.clock.sleep(SURVIVED_SECONDS - 1)
    assert not waiting.done()
    journal.let_go([each.number for each in others])
    [last] = await waiting
    journal.let_go([last.number])
    assert (journal.entries, journal.bytes) == (0, 0)
    await store.close()


@virtual
async def test_one_of_those_together_that_is_handed_out_late_is_counted(tmp_path: Path) -> None:
    payloads = await suspected(tmp_path, TOGETHER)
    for seen in (2, 2, 3):
        store, journal = await opened(tmp_path)
        [entry] = await journal.read(1)
        while entry.payload != payloads[50]:
            await store.clock.sleep(1.1)  # none is let go of
            [entry] = await journal.read(1)
        assert entry.deaths == seen
        kill(store)


@virtual
async def test_a_read_that_waits_for_another_queue_ends_when_its_own_is_closed(
    tmp_path: Path,
) -> None:
    store, journal = await opened(tmp_path)
    other = await Journal.open(store, "p", "other", "journal", 2**40)
    journal.append(b"a")
    await other.append(b"b").stored()
    for _ in range(2):
        await journal.read()
        await other.read()
        kill(store)
        store, journal = await opened(tmp_path)
        other = await Journal.open(store, "p", "other", "journal", 2**40)
    [held] = await journal.read()
    reading = asyncio.ensure_future(other.read())
    await store.clock.sleep(1)
    await other.close()
    journal.let_go([held.number])
    await store.clock.sleep(1)
    assert reading.done()
    assert reading.result() == []
    kill(store)

    store, _ = await opened(tmp_path)
    other = await Journal.open(store, "p", "other", "journal", 2**40)
    assert [each.deaths for each in await other.read()] == [2]  # nobody had it
    await store.close()


@virtual
async def test_what_is_given_back_at_once_is_as_suspect_as_before(tmp_path: Path) -> None:
    await filled(tmp_path, [b"a"])
    await die(tmp_path, 2)
    store, journal = await opened(tmp_path)
    await journal.read()
    await journal.close()
    await store.clock.sleep(2 * SURVIVED_SECONDS)
    await store.close()

    assert await deaths(tmp_path) == [2]
