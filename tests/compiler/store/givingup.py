"""Puts entries down in a store and turns them into letters, and those into entries, until it is killed.

    python -m tests.compiler.store.givingup FOLDER power|process FIRST

Each entry has a running number in it, which begins with FIRST. It writes a line when one is confirmed
(`stored 17`). Whatever is let go of goes in the commit of what comes in its place.
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
from headrace.compiler.store.journal import Journal
from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.openstore import Store
from tests.compiler.store.letters import PLAIN, ROOM

LISTED_LETTERS = 20
TARGETS = "http", "again"
"""Whoever puts something down has a queue of its own: entries that share a row go with its last."""


def say(text: str) -> None:
    """Write a line at once."""
    os.write(1, text.encode() + b"\n")


async def put_down(journal: Journal, which: int) -> None:
    """Put down one entry after another, each when the one before is stored, so each has its row."""
    while True:
        await journal.append(b"%d" % which).stored()
        say(f"stored {which}")
        which += 1


async def give_up(journal: Journal, records: Records) -> None:
    """Turn each entry into a letter."""
    while True:
        for entry in await journal.read(random.choice([1, 5, 20])):
            group = records.append(PLAIN, entry.payload, ROOM)
            journal.let_go([entry.number], group)
        await group.stored()


async def replay(journal: Journal, records: Records) -> None:
    """Turn some letters into entries again, and say of others that they were tried."""
    while True:
        for one in (await records.page(PLAIN.pipeline, limit=LISTED_LETTERS)).letters:
            whole = await records.letter(one.id)
            assert whole is not None
            assert whole.body is not None
            if random.random() < 0.5:
                await records.update(one.id, one.letter.tries + 1, 1.0, maybe_written=False)
            else:
                group = journal.append(whole.body)
                records.let_go([one.id], group)
                await group.stored()


async def produce(folder: Path, sync: Sync, first: int) -> None:
    """Do all of it until killed."""
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, folder, sync=sync, keep_free_bytes=0, tell=say)
    journal, again = [await Journal.open(store, "p", each, "journal", ROOM) for each in TARGETS]
    records = Records(store)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(put_down(journal, first))
        tasks.create_task(give_up(journal, records))
        tasks.create_task(give_up(again, records))
        tasks.create_task(replay(again, records))


if __name__ == "__main__":
    asyncio.run(produce(Path(sys.argv[1]), cast(Sync, sys.argv[2]), int(sys.argv[3])))
