"""An entry that ends the process: those around it come through, and it alone is set aside."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store.alone import ALONE_SECONDS
from headrace.compiler.store.journal import Journal, StoredEntry
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storedrows import SET_ASIDE_FROM
from headrace.compiler.store.storeformat import is_right, unpacked
from headrace.compiler.store.suspects import FEW, TOGETHER
from tests.compiler.store.killed import kill
from tests.virtual import virtual

Order = Literal["first", "last", "any"]
"""When the deadly one of what is under way is worked on."""


class Deadly:
    """A folder, and processes that end where they come to one of some entries."""

    def __init__(self, folder: Path, deadly: set[bytes], order: Order = "any") -> None:
        self.folder, self.deadly, self.order = folder, deadly, order
        self.choice = random.Random(7)
        self.done: list[bytes] = []
        """What was let go of, in all lives."""
        self.lives = 0
        self.most_deaths: dict[bytes, int] = {}

    async def open(self) -> tuple[Store, Journal]:
        clock = Clock(asyncio.get_running_loop())
        store = await Store.open(
            clock, self.folder, sync="process", keep_free_bytes=0, reserve_bytes=0
        )
        return store, await Journal.open(store, "p", "http", "journal", 2**40)

    async def fill(self, *commits: list[bytes]) -> None:
        """Put entries down, those of each list as one row."""
        store, journal = await self.open()
        for payloads in commits:
            for payload in payloads:
                group = journal.append(payload)
            await group.stored()
        await store.close()

    async def live(self, most: int = 1_024) -> bool:
        """Work on all there is; return whether it came to the end."""
        self.lives += 1
        store, journal = await self.open()
        journal.stop()
        while entries := await journal.read(most):
            for entry in self.in_order(entries):
                self.most_deaths[entry.payload] = entry.deaths
                if entry.deaths >= SET_ASIDE_FROM:
                    journal.set_aside(entry.number)
                elif entry.payload in self.deadly:
                    kill(store)
                    return False
                else:
                    journal.let_go([entry.number])
                    self.done.append(entry.payload)
        assert (journal.entries, journal.bytes) == (0, 0)
        await store.close()
        return True

    async def live_until_all_is_done(self, most: int = 1_024) -> None:
        while not await self.live(most):
            pass

    def in_order(self, entries: list[StoredEntry]) -> list[StoredEntry]:
        deadly = [each for each in entries if each.payload in self.deadly]
        others = [each for each in entries if each.payload not in self.deadly]
        match self.order:
            case "first":
                return deadly + others
            case "last":
                return others + deadly
        return self.choice.sample(entries, len(entries))

    def aside(self) -> list[bytes]:
        """Return what is set aside for having ended the process."""
        found: list[bytes] = []
        with closing(sqlite3.connect(self.folder / "store.db")) as database:
            rows = database.execute(
                "SELECT n, queue, first, count, at, crc, body FROM aside WHERE why = 'process'"
            )
            for n, queue, first, count, at, crc, body in rows:
                assert is_right(n, queue, first, count, at, crc, body)
                found += unpacked(count, body)
        return found


def named(first: int, count: int, size: int = 0) -> list[bytes]:
    return [b"%d:" % which + bytes(size) for which in range(first, first + count)]


@pytest.mark.parametrize("order", ["first", "last", "any"])
@pytest.mark.parametrize("place", [0, 50, 99])
@virtual
async def test_of_a_row_the_deadly_one_alone_is_set_aside(
    tmp_path: Path, place: int, order: Order
) -> None:
    entries = named(0, 100)
    deadly = Deadly(tmp_path, {entries[place]}, order)
    await deadly.fill(entries)
    await deadly.live_until_all_is_done()

    assert deadly.lives == 5  # twice all together, then once more as one of many, then alone
    assert deadly.aside() == [entries[place]]
    assert set(deadly.done) == set(entries) - deadly.deadly
    innocent = {each for each in entries if each not in deadly.deadly}
    assert max(deadly.most_deaths[each] for each in innocent) <= 2


@pytest.mark.parametrize(("count", "lives"), [(FEW, 4), (FEW + 1, 5)])
@virtual
async def test_of_a_few_one_process_less_ends_until_the_deadly_one_is_known(
    tmp_path: Path, count: int, lives: int
) -> None:
    entries = named(0, count)
    deadly = Deadly(tmp_path, {entries[3]})
    await deadly.fill(entries)
    await deadly.live_until_all_is_done()

    assert (deadly.lives, deadly.aside()) == (lives, [entries[3]])


@pytest.mark.parametrize("most", [1, 7, 1_024])
@virtual
async def test_of_many_those_of_one_hundred_are_tried_alone(tmp_path: Path, most: int) -> None:
    entries = named(0, 3 * TOGETHER)
    deadly = Deadly(tmp_path, {entries[TOGETHER + 7]})
    await deadly.fill(entries)
    for _ in range(3):
        assert not await deadly.live(most)
    alone, sizes = list[bytes](), list[int]()
    store, journal = await deadly.open()
    journal.stop()
    while found := await journal.read():
        sizes.append(len(found))
        if len(found) == 1 and found[0].payload in deadly.deadly:
            kill(store)
            break
        if len(found) == 1:
            alone.append(found[0].payload)
        journal.let_go([each.number for each in found])
    assert sizes[-1] == 1
    assert set(alone) <= set(entries[TOGETHER : TOGETHER + 7])
    await deadly.live_until_all_is_done()

    assert (deadly.lives, deadly.aside()) == (4, [*deadly.deadly])


@virtual
async def test_what_was_done_alone_is_not_done_again(tmp_path: Path) -> None:
    entries = named(0, 100)
    deadly = Deadly(tmp_path, {entries[50]}, "first")
    await deadly.fill(entries)
    await deadly.live_until_all_is_done()

    assert deadly.lives == 5
    assert deadly.done == entries[:50] + entries[51:]  # once each


@pytest.mark.parametrize("most", [1, 7, 1_024])
@pytest.mark.parametrize(
    "commits",
    [
        [named(start, 10) for start in range(0, 100, 10)],
        [named(start, 30, 10_000) for start in range(0, 210, 30)],
        [named(start, 1, 300_000) for start in range(0, 12)],
        [named(0, 600), named(600, 1), named(601, 600)],
    ],
    ids=["rows", "pages", "large", "long rows"],
)
@virtual
async def test_of_several_rows_and_pages_as_well(
    tmp_path: Path, commits: list[list[bytes]], most: int
) -> None:
    entries = [each for row in commits for each in row]
    deadly = Deadly(tmp_path, {commits[len(commits) // 2][0]})
    await deadly.fill(*commits)
    await deadly.live_until_all_is_done(most)

    assert deadly.lives <= 5
    assert deadly.aside() == [*deadly.deadly]
    assert set(deadly.done) == set(entries) - deadly.deadly


@virtual
async def test_each_of_several_is_set_aside(tmp_path: Path) -> None:
    entries = named(0, 300)
    deadly = Deadly(tmp_path, {entries[3], entries[4], entries[250]})
    await deadly.fill(entries[:100], entries[100:200], entries[200:])
    await deadly.live_until_all_is_done()

    assert sorted(deadly.aside()) == sorted(deadly.deadly)
    assert set(deadly.done) == set(entries) - deadly.deadly
    # Twice all together, then twice as some of a hundred, and each once alone; the last life ends well.
    assert deadly.lives <= 8


@virtual
async def test_what_comes_while_it_is_alone_is_innocent(tmp_path: Path) -> None:
    deadly = Deadly(tmp_path, {b"deadly"})
    await deadly.fill([b"a", b"deadly", b"b"])
    later: list[bytes] = []
    for which in range(4):
        store, journal = await deadly.open()
        found = await journal.read()
        later.append(b"later %d" % which)
        await journal.append(later[-1]).stored()
        while found[-1].payload == b"a":
            journal.let_go([found[0].number])
            found = await journal.read()
        if found[0].deaths >= SET_ASIDE_FROM:
            journal.set_aside(found[0].number)
            await store.close()
        else:
            kill(store)
    await deadly.live_until_all_is_done()

    assert deadly.aside() == [b"deadly"]
    assert set(deadly.done) >= {*later, b"b"}


@virtual
async def test_one_that_came_with_others_is_not_set_aside(tmp_path: Path) -> None:
    deadly = Deadly(tmp_path, set())
    await deadly.fill([b"a", b"b"], [b"c"])
    store, journal = await deadly.open()
    first, _, third = await journal.read()
    with pytest.raises(ValueError, match="entry 0 shares a row with others"):
        journal.set_aside(first.number)
    journal.set_aside(third.number)
    assert journal.entries == 2
    await store.close()

    assert deadly.aside() == [b"c"]
    store, journal = await deadly.open()
    assert [each.payload for each in await journal.read()] == [b"a", b"b"]
    await store.close()


@virtual
async def test_a_row_of_many_with_more_deaths_than_it_can_have_is_tried_one_at_a_time(
    tmp_path: Path,
) -> None:
    entries = named(0, FEW)
    deadly = Deadly(tmp_path, set())
    await deadly.fill(entries)
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE entries SET deaths = 77")  # a flipped bit: it has no checksum
    assert await deadly.live()

    assert (deadly.done, deadly.aside()) == (entries, [])


@virtual
async def test_one_with_fewer_deaths_than_it_can_have_is_set_aside_all_the_same(
    tmp_path: Path,
) -> None:
    deadly = Deadly(tmp_path, {b"deadly"})
    await deadly.fill([b"deadly"])
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE entries SET deaths = -50")
    await deadly.live_until_all_is_done()

    assert (deadly.lives, deadly.aside()) == (2, [b"deadly"])


async def work(store: Store, target: str, done: list[bytes], most_deaths: dict[str, int]) -> None:
    """Work on a queue, each entry for a second; the store is killed where one is deadly."""
    clock = Clock(asyncio.get_running_loop())
    journal = await Journal.open(store, "p", target, "journal", 2**40)
    journal.stop()
    while entries := await journal.read():
        for entry in entries:
            most_deaths[target] = max(most_deaths.get(target, 0), entry.deaths)
            if entry.deaths >= SET_ASIDE_FROM:
                journal.set_aside(entry.number)
                continue
            await clock.sleep(1)
            if entry.payload == b"deadly":
                kill(store)
                raise Killed
            journal.let_go([entry.number])
            done.append(entry.payload)


class Killed(Exception):
    pass


@virtual
async def test_those_of_other_queues_come_through_as_well(tmp_path: Path) -> None:
    targets = ("one", "two", "three")
    deadly, done, most_deaths = Deadly(tmp_path, set()), list[bytes](), dict[str, int]()
    store, _ = await deadly.open()
    for target in targets:
        journal = await Journal.open(store, "p", target, "journal", 2**40)
        for payload in [b"a", b"b", b"deadly" if target == "two" else b"c", b"d", b"e"]:
            group = journal.append(target.encode() + payload if payload != b"deadly" else payload)
    await group.stored()
    await store.close()

    lives = 0
    while True:
        lives += 1
        store, _ = await deadly.open()
        workers = [
            asyncio.ensure_future(work(store, target, done, most_deaths)) for target in targets
        ]
        ended, others = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        for each in others:
            each.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        if not any(isinstance(each.exception(), Killed) for each in ended):
            break
    await store.close()

    assert lives == 4
    assert most_deaths == {"one": 2, "two": 3, "three": 2}
    assert deadly.aside() == [b"deadly"]
    assert len(set(done)) == 14


@virtual
async def test_one_that_takes_long_does_not_hold_up_other_queues_for_ever(tmp_path: Path) -> None:
    deadly = Deadly(tmp_path, set())
    await deadly.fill([b"a"])
    for _ in range(2):
        store, journal = await deadly.open()
        other = await Journal.open(store, "p", "other", "journal", 2**40)
        if not other.entries:
            for _ in range(FEW):
                group = other.append(b"b")
            await group.stored()
        await journal.read()
        await other.read()
        kill(store)

    store, journal = await deadly.open()
    other = await Journal.open(store, "p", "other", "journal", 2**40)
    clock = Clock(asyncio.get_running_loop())
    [held] = await journal.read()
    began = clock.monotonic()
    for _ in range(FEW):
        [entry] = await other.read()
        assert entry.deaths == 2
        other.let_go([entry.number])
    assert clock.monotonic() - began == pytest.approx(ALONE_SECONDS)
    journal.let_go([held.number])
    await store.close()


async def suspected(deadly: Deadly, **counts: int) -> tuple[Store, list[Journal]]:
    """Have the process end twice while all of some queues is under way."""
    for life in range(3):
        store, _ = await deadly.open()
        queues = [await Journal.open(store, "p", name, "journal", 2**40) for name in counts]
        for queue, count in zip(queues, counts.values(), strict=True):
            if not life:
                for which in range(count):
                    group = queue.append(b"%d" % which)
                await group.stored()
            if life < 2:
                assert len(await queue.read()) == count
        if life < 2:
            kill(store)
    return store, queues


@virtual
async def test_nothing_of_another_queue_is_alone_beside_some_that_go_on(tmp_path: Path) -> None:
    deadly = Deadly(tmp_path, set())
    store, [many, one] = await suspected(deadly, many=TOGETHER, one=1)
    some = await many.read(TOGETHER // 2)
    waiting = asyncio.ensure_future(one.read())
    for each in some:
        await store.clock.sleep(2 * ALONE_SECONDS / TOGETHER)
        assert not waiting.done()
        many.let_go([each.number])
    rest = asyncio.ensure_future(many.read())
    [alone] = await waiting
    assert not rest.done()
    one.let_go([alone.number])
    assert len(await rest) == TOGETHER // 2
    await store.close()


@virtual
async def test_those_that_go_on_together_have_others_wait(tmp_path: Path) -> None:
    deadly = Deadly(tmp_path, set())
    store, [many, one] = await suspected(deadly, many=TOGETHER, one=1)
    await many.read(TOGETHER // 2)
    waiting = asyncio.ensure_future(one.read())
    await store.clock.sleep(ALONE_SECONDS - 1)
    assert len(await many.read()) == TOGETHER // 2
    await store.clock.sleep(ALONE_SECONDS - 1)
    assert not waiting.done()
    await store.clock.sleep(2)
    assert waiting.done()
    await store.close()


@virtual
async def test_of_several_queues_that_wait_each_has_its_turn(tmp_path: Path) -> None:
    deadly = Deadly(tmp_path, set())
    store, queues = await suspected(deadly, a=1, b=1, c=1, d=1)
    began, times = store.clock.monotonic(), list[float]()

    async def hold(queue: Journal) -> None:
        await queue.read()  # it is not let go of
        times.append(store.clock.monotonic() - began)

    await asyncio.gather(*map(hold, queues))
    expected = [ALONE_SECONDS * place for place in range(4)]
    assert times == pytest.approx(expected, abs=0.1)
    await store.close()
