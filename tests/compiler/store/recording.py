"""Records a store of the format of today, which is opened for ever.

    python -m tests.compiler.store.recording FILE

It was killed: one queue is under way, of one all is let go of, a row of another is damaged, and one is
ended. Of the letters the last one is gone, and one was tried again. Of a bucket one key is gone.
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
from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.letterrows import Letter
from headrace.compiler.store.openstore import Store
from tests.compiler.remembering import declared, stored
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

LETTERS = {
    Letter(
        pipeline="größe",
        stage="output",
        component=1,
        input_index=None,
        target="postgres db/readings",
        failure="invalid",
        message="'temp' is no number",
        detail='invalid input syntax for type double precision: "heiß"',
        first_seen=1_767_225_600.25,
        last_seen=1_767_225_630.5,
        tries=2,
        maybe_written=True,
        received_at=1_767_225_599.125,
        config="0123abcd",
        messages=2,
    ): b'[{"temp": "hei\xc3\x9f"}, {"temp": null}]',
    Letter(
        pipeline="press-line",
        stage="input",
        component=None,
        input_index=0,
        target=None,
        failure="invalid",
        message="no JSON",
        detail=None,
        first_seen=1_767_225_601.0,
        last_seen=1_767_225_601.0,
        tries=1,
        maybe_written=False,
        received_at=None,
        config=None,
        messages=1,
    ): LARGE,
}
"""The letters that are in it, with their bodies."""
REMEMBERED = {"m2": {"temp": 21.5}, "größe\0": {"mode": "läuft", "since": None}, "": {"n": 1}}
"""What is in a bucket, by key, in the order it was written."""


async def read(journal: Journal, count: int) -> list[StoredEntry]:
    found: list[StoredEntry] = []
    while len(found) < count:
        found += await journal.read(count - len(found))
    return found


async def record(folder: Path) -> None:
    """Leave a store in a folder."""
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, folder, keep_free_bytes=0, reserve_bytes=0)
    store.database._run.execute("UPDATE store SET id = ?", (ID,))
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
            store.database._run.execute("UPDATE entries SET taken = 0 WHERE queue = 2")
    journal = await Journal.open(store, *EMPTY, 2**30)
    for _ in range(5):
        await journal.append(b"gone").stored()
    journal.let_go([each.number for each in await read(journal, 5)])
    journal = await Journal.open(store, *DAMAGED, 2**30)
    await journal.append(b"as it was").stored()
    store.database._run.execute("UPDATE entries SET crc = crc + 1 WHERE queue = 4")
    again = await Journal.open(store, *DAMAGED, 2**30)
    again.stop()
    await again.read()
    journal = await Journal.open(store, *ENDED, 2**30)
    await journal.append(b"left").stored()
    await journal.end()
    records = Records(store)
    for letter, body in LETTERS.items():
        await records.append(letter._replace(tries=1), body, 2**30).stored()
    tried, _ = LETTERS
    await records.update(1, tried.tries, tried.last_seen, maybe_written=tried.maybe_written)
    await records.append(tried, b"gone", 2**30).stored()
    await records.delete(tried.pipeline, [3])
    bucket = await declared(store, clock, max_keys=len(REMEMBERED))
    for key, values in {"gone": {"n": 0}, **REMEMBERED}.items():
        bucket.merge({key: values})
    await stored(bucket)
    await clock.sleep(1)
    store.database.checkpoint()
    kill(store)


def recorded() -> bytes:
    """Return the file of such a store."""
    with tempfile.TemporaryDirectory() as folder:
        run_virtual(partial(record, Path(folder)))
        return Path(folder, "store.db").read_bytes()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(lzma.compress(recorded(), preset=9))
