"""Puts entries down in a store, reads them and lets go of them, until it is killed; says what it does.

    python -m tests.compiler.store.producing FOLDER power|process FIRST

Each entry has a running number in it, which begins with FIRST. It writes a line when entries are confirmed
(`stored 17`: all up to that one), and one before it lets go of some (`going 3 5 4`).
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path
from typing import cast

from headrace.compiler.clock import Clock
from headrace.compiler.store.database import Sync
from headrace.compiler.store.journal import Journal, StoredEntry
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storedrows import ALONE_FROM

COUNTS = (1, 1, 5, 50, 400)
LARGE = 300 * 1024
HELD = 2_000
"""Entries that are held, at most."""


def payload(which: int) -> bytes:
    """Return an entry, which tells its number; some are large enough for a row of their own."""
    size = which * 2_654_435_761 % 600 if which % 3_000 else LARGE
    return b"%d:" % which + (b"%d" % which) * (size // len(str(which)))


def number(content: bytes) -> int:
    """Return the running number in an entry."""
    return int(content.partition(b":")[0])


def say(text: str) -> None:
    """Write a line at once."""
    os.write(1, text.encode() + b"\n")


async def put_down(journal: Journal, which: int) -> None:
    """Put down one lot after another, each when the one before is stored."""
    while True:
        for _ in range(random.choice(COUNTS)):
            which += 1
            group = journal.append(payload(which))
        await group.stored()
        say(f"stored {which}")


def let_go(journal: Journal, entries: list[StoredEntry]) -> None:
    """Say what is let go of, and do it."""
    if entries:
        say("going " + " ".join(str(number(each.payload)) for each in entries))
        journal.let_go([each.number for each in entries])


async def read(journal: Journal) -> None:
    """Read, and let go of half of what is held when it is much, in any order."""
    held: list[StoredEntry] = []
    while True:
        reading = asyncio.ensure_future(journal.read())
        if not (await asyncio.wait([reading], timeout=0.05))[0]:
            let_go(journal, held)  # what may have ended the process waits until it is alone
            held = []
        found = await reading
        assert len(found) == 1 or len({each.deaths >= ALONE_FROM for each in found}) == 1
        held += found
        random.shuffle(held)
        if found[0].deaths >= ALONE_FROM or len(held) > HELD:
            count = len(held) // 2 or 1
            let_go(journal, held[:count])
            held = held[count:]


async def produce(folder: Path, sync: Sync, first: int) -> None:
    """Do all of it until killed."""
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, folder, sync=sync, keep_free_bytes=0, tell=say)
    journal = await Journal.open(store, "p", "http", "journal", 2**40)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(put_down(journal, first - 1))
        tasks.create_task(read(journal))


if __name__ == "__main__":
    asyncio.run(produce(Path(sys.argv[1]), cast(Sync, sys.argv[2]), int(sys.argv[3])))
