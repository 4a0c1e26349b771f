"""A folder with a store in it, whose log is full of commits, for whoever damages copies of it."""

from __future__ import annotations

import asyncio
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from headrace.compiler.clock import Clock
from headrace.compiler.store.database import log_of
from headrace.compiler.store.folder import DATABASE
from headrace.compiler.store.journal import Journal, StoredEntry
from headrace.compiler.store.openstore import Store
from tests.compiler.store.killed import kill
from tests.virtual import virtual

COMMITS = 100
COUNTS = (1, 1, 5, 20)
LARGE = 270 * 1024


def payload(which: int) -> bytes:
    """Return an entry, which tells its number; some are large enough for a row of their own."""
    size = which * 2_654_435_761 % 200 if which % 500 != 100 else LARGE
    return b"%d:" % which + (b"%d" % which) * (size // len(str(which)))


@dataclass
class Filled:
    """A store that was killed."""

    folder: Path
    ends: list[tuple[int, int]]
    """Bytes of the log after each commit, and entries until then."""
    entries: int

    @property
    def file(self) -> Path:
        """The database."""
        return self.folder / DATABASE

    def copy(self, folder: Path) -> Filled:
        """Return another, in place of what is in a folder."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder)
        return Filled(folder, self.ends, self.entries)

    def least(self, size: int) -> int:
        """Return how many entries were committed when the log had so many bytes."""
        return max((entries for end, entries in self.ends if end <= size), default=0)


@dataclass
class Found:
    """What is in a store, as it says."""

    entries: list[StoredEntry]
    told: list[str]
    left_over: int
    """Entries of queues that nobody asked for."""
    damaged: int
    """How much of it was damaged, as is counted."""

    def is_right(self) -> bool:
        """Return whether each of them is what was put down."""
        return all(each.payload == payload(each.number) for each in self.entries)

    def is_in_order(self) -> bool:
        """Return whether none is there twice, or before one that came earlier."""
        numbers = [each.number for each in self.entries]
        return numbers == sorted(set(numbers))


async def opened(folder: Path, told: list[str]) -> Store:
    """Open a store where there may be little room."""
    clock = Clock(asyncio.get_running_loop())
    return await Store.open(
        clock, folder, sync="process", keep_free_bytes=0, reserve_bytes=0, tell=told.append
    )


@virtual
async def fill(folder: Path, filled: list[Filled]) -> None:
    """Fill a store, a third of which is in the database itself, and kill it."""
    choice = random.Random(3)
    told: list[str] = []
    store = await opened(folder, told)
    journal = await Journal.open(store, "p", "http", "journal", 2**40)
    ends, entries = [], 0
    for commit in range(COMMITS):
        for _ in range(choice.choice(COUNTS)):
            group = journal.append(payload(entries))
            entries += 1
        await group.stored()
        if commit == COMMITS // 3:
            store.database.checkpoint()
        if commit >= COMMITS // 3:
            ends.append((log_of(folder / DATABASE).stat().st_size, entries))
    kill(store)
    assert told == []
    filled.append(Filled(folder, ends, entries))


@virtual
async def look(folder: Path, found: list[Found]) -> None:
    """Open a store and read all that is in it."""
    told: list[str] = []
    store = await opened(folder, told)
    journal = await Journal.open(store, "p", "http", "journal", 2**40)
    journal.stop()
    entries: list[StoredEntry] = []
    while page := await journal.read():
        entries += page
        journal.let_go([each.number for each in page])
    assert (journal.entries, journal.bytes) == (0, 0)
    left_over = sum(each.entries for each in await store.queues.listed() if each.pipeline != "p")
    damaged = store.condition.damaged
    await store.close()
    found.append(Found(entries, told, left_over, damaged))
