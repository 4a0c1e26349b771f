"""What a store does on a small disk that is full. Each function has a process and a disk to itself.

python -m tests.compiler.store.fulldisk FUNCTION FOLDER
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.store.journal import Journal, StoredEntry
from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.room import RESERVE_BYTES
from headrace.compiler.store.storeerrors import StoreFull
from headrace.compiler.store.suspects import FEW, TOGETHER
from tests.compiler.remembering import contents, declared, stored
from tests.compiler.store.killed import kill
from tests.compiler.store.letters import PLAIN

SIZE = 20_000
KEPT_FREE = 16 * 2**20


class Disk:
    """A store on a disk, and something else that takes its room."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock(asyncio.get_running_loop())
        self.folder, self.ballast = folder / "store", folder / "ballast"
        self.told: list[str] = []
        self.stored = 0
        """Entries that were confirmed."""

    async def open(self, keep_free_bytes: int = 0) -> None:
        self.store = await Store.open(
            self.clock, self.folder, keep_free_bytes=keep_free_bytes, tell=self.told.append
        )
        self.journal = await Journal.open(self.store, "p", "http", "journal", 2**40)

    async def append(self) -> None:
        content = b"%d:" % self.stored
        await self.journal.append(content + bytes(SIZE)).stored()
        self.stored += 1

    async def fill(self) -> None:
        """Put entries down until none is taken."""
        with suppress(StoreFull):
            while True:
                await self.append()
        assert self.store.condition.state == "full", self.store.condition.state

    async def fill_up(self) -> None:
        """Put entries down, and take all room, until there is none in the log either."""
        await self.fill()
        self.take_all_room()
        await self.clock.sleep(3)
        while self.store.condition.state == "open":
            self.take_all_room()
            await self.fill()
            await self.clock.sleep(3)
        del self.told[:-1]

    def take_all_room(self) -> None:
        with suppress(OSError), self.ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    async def read(self, count: int) -> list[StoredEntry]:
        found: list[StoredEntry] = []
        while len(found) < count:
            found += await self.journal.read(count - len(found))
        return found

    async def is_refused(self) -> bool:
        try:
            await self.append()
        except StoreFull:
            return True
        return False


def check(entries: list[StoredEntry], first: int) -> None:
    """Check that entries are those from one on."""
    for which, entry in enumerate(entries, first):
        assert entry.payload == b"%d:" % which + bytes(SIZE), (which, entry.payload[:10])


async def nothing_is_taken_until_there_is_room(folder: Path) -> None:
    disk = Disk(folder)
    await disk.open()
    await disk.fill_up()
    first = disk.stored
    assert first > 500, first
    assert await disk.is_refused()
    assert disk.store.condition.state == "full"

    entries = await disk.read(first)  # reading goes on
    check(entries, 0)
    disk.journal.let_go([each.number for each in entries[: first // 2]])
    await disk.clock.sleep(3)
    disk.take_all_room()  # also what was given back
    await disk.clock.sleep(3)
    [queue] = await disk.store.queues.listed()
    assert queue.entries < first * 3 / 4, queue  # letting go does as well
    assert await disk.is_refused()

    disk.ballast.unlink()
    await disk.clock.sleep(3)
    assert disk.store.condition.state == "open", disk.store.condition.why
    assert (folder / "store" / "reserve").stat().st_size == RESERVE_BYTES
    for _ in range(50):
        await disk.append()
    kill(disk.store)
    await disk.open()
    check(await disk.read(disk.journal.entries), disk.stored - disk.journal.entries)
    assert disk.journal.entries >= disk.stored - first // 2
    await disk.store.close()
    said = [text.partition(":")[0] for text in disk.told]
    assert said[::2] == ["the store takes nothing"] * (len(said) // 2), disk.told
    assert said[1::2] == ["the store takes entries again"] * (len(said) // 2), disk.told
    assert len(said) in (2, 4), disk.told


async def a_part_of_the_disk_is_kept_free(folder: Path) -> None:
    disk = Disk(folder)
    await disk.open(KEPT_FREE)
    await disk.fill()
    free = disk.store.free_bytes()
    assert 0.9 * KEPT_FREE < free < 1.1 * KEPT_FREE, free
    assert "kept free (keep_free_bytes" in disk.told[0], disk.told

    entries = await disk.read(disk.stored)
    check(entries, 0)
    disk.journal.let_go([each.number for each in entries])
    await disk.clock.sleep(3)
    assert disk.store.condition.state == "open", disk.store.condition.why
    await disk.append()
    await disk.store.close()


async def a_store_opens_on_a_full_disk(folder: Path) -> None:
    disk = Disk(folder)
    await disk.open()
    for _ in range(200):
        await disk.append()
    kill(disk.store)
    disk.take_all_room()
    await disk.open()
    disk.take_all_room()
    assert await disk.is_refused()
    entries = await disk.read(200)
    check(entries, 0)
    disk.journal.let_go([each.number for each in entries])
    await disk.clock.sleep(3)
    assert (await disk.store.queues.listed())[0].entries == 0

    disk.ballast.unlink()
    await disk.clock.sleep(3)
    await disk.append()
    await disk.store.close()


async def a_store_without_a_reserve_opens_on_a_full_disk(folder: Path) -> None:
    disk = Disk(folder)
    await disk.open()
    for _ in range(200):
        await disk.append()
    kill(disk.store)
    (disk.folder / "reserve").unlink()
    disk.take_all_room()
    await disk.open()
    assert await disk.is_refused()
    check(await disk.read(200), 0)

    disk.ballast.unlink()
    await disk.clock.sleep(3)
    await disk.append()
    await disk.store.close()


async def what_may_have_ended_the_process_is_handed_out_alone_on_a_full_disk(folder: Path) -> None:
    disk = Disk(folder)
    await disk.open()
    for _ in range(TOGETHER):
        disk.journal.append(b"%d:" % disk.stored + bytes(SIZE))
        disk.stored += 1
    await disk.append()
    for _ in range(2):
        await disk.read(TOGETHER + 1)
        kill(disk.store)
        await disk.open()
    disk.take_all_room()
    assert await disk.is_refused()

    sizes = []
    while (first := sum(sizes)) <= TOGETHER:
        entries = await disk.journal.read()
        assert {each.deaths for each in entries} == {2}
        check(entries, first)
        sizes.append(len(entries))
        if first + len(entries) > TOGETHER:
            disk.journal.set_aside(first)
            disk.journal.let_go(range(first + 1, TOGETHER + 1))
        else:
            disk.journal.let_go(range(first, first + len(entries)))
    assert len(sizes) < FEW, sizes
    await disk.clock.sleep(3)
    assert (await disk.store.queues.listed())[0].entries == 0
    kill(disk.store)
    await disk.open()
    assert disk.journal.entries == 0
    await disk.store.close()


async def what_is_let_go_of_in_part_is_given_back_on_a_full_disk(folder: Path) -> None:
    disk = Disk(folder)
    await disk.open()
    for _ in range(500):
        disk.journal.append(b"%d:" % disk.stored + bytes(SIZE))
        disk.stored += 1
    await disk.append()
    entries = await disk.read(501)
    disk.take_all_room()
    assert await disk.is_refused()
    disk.journal.let_go([each.number for each in entries if each.number % 3])
    await disk.journal.close()

    disk.journal = await Journal.open(disk.store, "p", "http", "journal", 2**40)
    assert disk.journal.entries == 167, disk.journal.entries
    assert [each.number for each in await disk.read(167)] == [*range(0, 501, 3)]
    await disk.store.close()


async def what_is_remembered_is_written_when_there_is_room(folder: Path) -> None:
    disk = Disk(folder)
    await disk.open()
    full = await declared(disk.store, disk.clock)
    full.merge({"a": {"n": 1}})
    await stored(full)
    await disk.fill_up()
    done: list[str] = []

    full.merge({"a": {"n": 2}, "b": {"n": 3}})
    full.when_stored(lambda: done.append("stored"))
    await disk.clock.sleep(5)
    assert (disk.store.condition.state, done) == ("full", [])
    again = await declared(
        disk.store, disk.clock, name="new"
    )  # the disk may have no room for its place
    again.merge({"c": {"n": 4}})
    assert contents(full) == [("a", {"n": 2}), ("b", {"n": 3})]

    disk.ballast.unlink()
    disk.journal.let_go([each.number for each in await disk.journal.read(100)])
    await disk.clock.sleep(5)
    assert done == ["stored"]
    await stored(again)
    kill(disk.store)
    await disk.open()
    assert contents(await declared(disk.store, disk.clock)) == [("a", {"n": 2}), ("b", {"n": 3})]
    assert contents(await declared(disk.store, disk.clock, name="new")) == [("c", {"n": 4})]
    await disk.store.close()


async def letters_are_refused_and_deleted_on_a_full_disk(folder: Path) -> None:
    disk = Disk(folder)
    await disk.open()
    records = Records(disk.store)
    stored = 0
    with suppress(StoreFull):
        while True:
            await records.append(PLAIN, bytes(SIZE), 2**40).stored()
            stored += 1
    assert stored > 500, stored
    while disk.store.condition.state == "open":
        disk.take_all_room()
        with suppress(StoreFull):
            while True:
                await records.append(PLAIN, bytes(SIZE), 2**40).stored()
                stored += 1
        await disk.clock.sleep(3)
    disk.take_all_room()
    assert disk.store.condition.state == "full", disk.store.condition.why
    assert records.amounts(PLAIN.pipeline)[PLAIN.stage].letters == stored

    await records.update(1, 2, 3.0, maybe_written=True)
    whole = await records.letter(1)
    assert whole is not None
    assert whole.found is not None
    assert whole.found.letter.tries == 2
    assert len((await records.page(PLAIN.pipeline)).letters) == 200
    assert (await records.delete(PLAIN.pipeline, [1, 2])).letters == 2
    deleted = await records.delete_all(PLAIN.pipeline)
    assert deleted.letters == stored - 2, deleted

    disk.ballast.unlink()
    await disk.clock.sleep(3)
    assert disk.store.condition.state == "open", disk.store.condition.why
    await records.append(PLAIN, bytes(SIZE), 2**40).stored()
    kill(disk.store)
    await disk.open()
    assert [each.id for each in (await Records(disk.store).page(PLAIN.pipeline)).letters] == [
        disk.store.last_letter
    ]
    await disk.store.close()


async def history_goes_on_in_memory_and_is_written_when_there_is_room(folder: Path) -> None:
    from headrace.compiler.runtime.monitoring.durablehistory import DurableHistory
    from headrace.compiler.runtime.monitoring.pipelinehistory import History
    from tests.compiler.runtime.counting import Counting, rows

    disk = Disk(folder)
    await disk.open()
    history = History(disk.clock)
    durable = DurableHistory(disk.clock, history, disk.store)
    await durable.load()
    one = Counting(history).begin()
    durable.begin()
    one.count(1)
    await disk.fill_up()
    refused = disk.store.condition.failures
    one.count(2)
    await disk.clock.sleep(100)
    assert sum(row[1] for row in rows(history)) == 3
    assert disk.store.condition.state == "full", disk.store.condition.why

    disk.ballast.unlink()
    await disk.clock.sleep(40)
    assert disk.store.condition.state == "open", disk.store.condition.why
    assert refused
    history.close()
    kill(disk.store)
    await disk.open()
    history = History(disk.clock)
    await DurableHistory(disk.clock, history, disk.store).load()
    assert sum(row[1] for row in rows(history)) == 3
    await disk.store.close()


if __name__ == "__main__":
    run_virtual(partial(globals()[sys.argv[1]], Path(sys.argv[2])))
