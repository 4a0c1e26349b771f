"""Records a store of the format of today, which is opened for ever.

    python -m tests.compiler.store.recording FILE

It was killed: one queue is under way, of one all is let go of, a row of another is damaged, and one is
ended.
"""

from __future__ import annotations

import asyncio
import lzma
import sys
import tempfile
from functools import partial
from pathlib import Path

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.store.journal import Journal, StoredEntry
from headrace.compiler.store.writer import Store
from tests.compiler.store.killed import kill

ID = "0123456789abcdef" * 2
LARGE = bytes(range(256)) * 1_200
CONTENT = {
    ("press-line", "http", "journal"): [b'{"temp": 21.5}', b"", b'"\xc3\xbc"', LARGE, b"[1, 2]"],
    ("größe", "kafka plant/readings 2", "queue"): [b"one", b"two"],
}
"""What is in it, by pipeline, target and kind; the first two of each are one row."""
EMPTY = ("press-line", "postgres db/readings", "queue")
"""A queue of which five entries were let go of."""
DAMAGED = ("press-line", "redis r/alarms", "queue")
ENDED = ("milling", "http", "journal")
"""A queue that was ended, with one entry left."""


async def read(journal: Journal, count: int) -> list[StoredEntry]:
    found: list[StoredEntry] = []
    while len(found) < count:
        found += await journal.read(count - len(found))
    return found


async def record(folder: Path) -> None:
    """Leave a store in a folder."""
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, folder, keep_free_bytes=0, reserve_bytes=0)
    store._database._run.execute("UPDATE store SET id = ?", (ID,))
    for which, (key, payloads) in enumerate(CONTENT.items()):
        journal = await Journal.open(store, *key, 2**30)
        for payload in payloads[:2]:
            group = journal.append(payload)
        for payload in payloads[2:]:
            await group.stored()
            group = journal.append(payload)
        await group.stored()
        await clock.sleep(0.25)
        if which == 0:
            await read(journal, len(payloads))  # these are under way
        else:
            store._database._run.execute("UPDATE entries SET taken = 0 WHERE queue = 2")
    journal = await Journal.open(store, *EMPTY, 2**30)
    for _ in range(5):
        await journal.append(b"gone").stored()
    journal.let_go([each.number for each in await read(journal, 5)])
    journal = await Journal.open(store, *DAMAGED, 2**30)
    await journal.append(b"as it was").stored()
    store._database._run.execute("UPDATE entries SET crc = crc + 1 WHERE queue = 4")
    again = await Journal.open(store, *DAMAGED, 2**30)
    again.stop()
    await again.read()
    journal = await Journal.open(store, *ENDED, 2**30)
    await journal.append(b"left").stored()
    await journal.end()
    await clock.sleep(1)
    store._database.checkpoint()
    kill(store)


def recorded() -> bytes:
    """Return the file of such a store."""
    with tempfile.TemporaryDirectory() as folder:
        run_virtual(partial(record, Path(folder)))
        return Path(folder, "store.db").read_bytes()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(lzma.compress(recorded(), preset=9))
