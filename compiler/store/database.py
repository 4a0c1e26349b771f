"""The database of a store, as the one thread knows it that writes and reads it.

Everything here may wait for the disk, and raises what `sqlite3` does. SQLite alone decides what is whole
after a kill; that what is read is what was written is told by a checksum a row, for SQLite has none.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from headrace.compiler.store.errors import StoreRefused
from headrace.compiler.store.format import FORMAT, SCHEMA, WIDTH, checksum, lengths, unpacked

Sync = Literal["power", "process"]
"""What is outlasted: a loss of power as well, or the end of the process alone."""

OLDEST_SQLITE = (3, 38, 0)
LOG_PAGES = 4_000
PAGE_BYTES = 4_096
MOST_JOINED = 256 * 1024
"""Bytes of a payload above which it has a row of its own, and is written in pieces of as many."""
ROWS_AT_ONCE = 64
"""Rows of one statement: each statement may have to wait for the interpreter."""

_SETTINGS = (
    f"PRAGMA page_size = {PAGE_BYTES}",
    "PRAGMA auto_vacuum = INCREMENTAL",  # before the first table
    "PRAGMA locking_mode = EXCLUSIVE",  # before WAL: then there is no file that is mapped
    "PRAGMA journal_mode = WAL",
    f"PRAGMA wal_autocheckpoint = {LOG_PAGES}",
    f"PRAGMA journal_size_limit = {LOG_PAGES * PAGE_BYTES}",
    "PRAGMA secure_delete = OFF",
    "PRAGMA mmap_size = 0",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)
_SYNC = {"power": "FULL", "process": "NORMAL"}
_VALUES = "(?, ?, ?, ?, ?, 0, ?, ?, ?)"
_INSERT = "INSERT INTO entries VALUES "
_INSERT_LARGE = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, 0, ?, ?, zeroblob(?))"
_DELETE = "DELETE FROM entries WHERE n IN (SELECT value FROM json_each(?))"
_NEXT = (
    "UPDATE queues SET next = max(next, given.value) FROM json_each(?) AS given"
    " WHERE queues.id = CAST(given.key AS INTEGER)"
)
_PAGE = (
    "SELECT n, first, count, deaths, at, crc, body FROM entries"
    " WHERE queue = ? AND first > ? ORDER BY first LIMIT 256"
)
_TAKE = "UPDATE entries SET taken = 1 WHERE n IN (SELECT value FROM json_each(?)) AND NOT taken"
_DIED = "UPDATE entries SET deaths = deaths + (SELECT NOT clean FROM store), taken = 0 WHERE taken"
_RESTORE = "INSERT OR IGNORE INTO queues (id, pipeline, target, kind, next) VALUES (?, ?, ?, ?, 0)"
_MOVE = "INSERT INTO damaged SELECT n, queue, first, count, crc, body, ? FROM entries WHERE n = ?"
_QUEUES = (
    "SELECT id, pipeline, target, kind, max(next, coalesce(max(first + count), 0)),"
    " count(n), coalesce(sum(count), 0), coalesce(sum(length(body)), 0), min(at)"
    " FROM queues LEFT JOIN entries ON queue = id GROUP BY id"
)


@dataclass(slots=True)
class NewRow:
    """What one queue gets in one commit."""

    n: int
    queue: int
    first: int
    at: float
    payloads: list[bytes]
    is_taken: bool
    """Whether it is handed on as soon as it is there."""


@dataclass(slots=True)
class Changes:
    """What goes into one commit."""

    rows: list[NewRow] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    """The rows of which nothing is needed any more."""
    nexts: dict[int, int] = field(default_factory=dict)
    """The number of the entry that comes next, of each queue that rows go from."""


class StoredRow(NamedTuple):
    """A row as it was read."""

    n: int
    first: int
    deaths: int
    """How often the process ended without a word while it was under way."""
    at: float
    payloads: list[bytes]


class StoredQueue(NamedTuple):
    """A queue with how much of it is there."""

    id: int
    pipeline: str
    target: str
    kind: str
    next: int
    rows: int
    entries: int
    bytes: int
    oldest: float | None
    """When the first of it was written. Units: seconds since 1970."""


class Database:
    """An open database."""

    def __init__(self, file: Path | None, sync: Sync, *, is_again: bool = False) -> None:
        """Open the database of a file, or one in memory; make what is not there.

        ``is_again``: what is under way is under way in this very process, which has not ended.

        Raises:
            StoreRefused: it is of a newer version.
            sqlite3.Error: it cannot be opened, or is none.
        """
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise StoreRefused(
                f"SQLite is {sqlite3.sqlite_version}: expected "
                f"{'.'.join(map(str, OLDEST_SQLITE))} or newer"
            )
        self._run: sqlite3.Connection = sqlite3.connect(
            ":memory:" if file is None else file, timeout=0, isolation_level=None
        )
        try:
            self._settle(sync, is_again)
            self.inode = None if file is None else file.stat().st_ino
        except BaseException:
            self._run.close()
            raise

    def _settle(self, sync: Sync, is_again: bool) -> None:
        execute = self._run.execute
        for setting in _SETTINGS:
            execute(setting)
        execute(f"PRAGMA synchronous = {_SYNC[sync]}")
        [version] = execute("PRAGMA user_version").fetchone()
        if version > FORMAT:
            raise StoreRefused(
                f"the store is of version {version}, and this headrace knows versions up to {FORMAT}"
            )
        if version == 0:
            execute("BEGIN IMMEDIATE")
            for statement in SCHEMA:
                execute(statement)
            execute(f"PRAGMA user_version = {FORMAT}")
            execute("COMMIT")
        # How many frames of the log it took: asked before anything is written.
        self.frames: int = execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
        with self._transaction():
            if not is_again:
                execute(_DIED)
            execute("UPDATE store SET clean = 0")

    def next_row(self) -> int:
        """Return the number of the next row, which is higher than that of any there is."""
        [last] = self._run.execute("SELECT coalesce(max(n), 0) FROM entries").fetchone()
        return int(last) + 1

    def queues(self) -> list[StoredQueue]:
        """Return all queues."""
        return [StoredQueue(*row) for row in self._run.execute(_QUEUES).fetchall()]

    def queue(self, pipeline: str, target: str, kind: str) -> StoredQueue:
        """Return one queue, which is made if it is not there."""
        key = (pipeline, target, kind)
        self._run.execute(
            "INSERT INTO queues (pipeline, target, kind, next) VALUES (?, ?, ?, 0)"
            " ON CONFLICT DO NOTHING",
            key,
        )
        return next(each for each in self.queues() if each[1:4] == key)

    def restore(self, id: int, pipeline: str, target: str, kind: str) -> None:
        """Have a queue be there under its number, also in a file that was made anew."""
        self._run.execute(_RESTORE, (id, pipeline, target, kind))

    def discard(self, queue: int) -> None:
        """Forget a queue and all that is in it."""
        with self._transaction():
            self._run.execute("DELETE FROM entries WHERE queue = ?", (queue,))
            self._run.execute("DELETE FROM queues WHERE id = ?", (queue,))

    def commit(self, changes: Changes) -> None:
        """Write all of it, or nothing."""
        with self._transaction():
            small: list[NewRow] = []
            for row in changes.rows:
                if len(row.payloads) == 1 and len(row.payloads[0]) > MOST_JOINED:
                    self._insert_large(row)
                else:
                    small.append(row)
            for start in range(0, len(small), ROWS_AT_ONCE):
                self._insert(small[start : start + ROWS_AT_ONCE])
            if changes.gone:
                self._run.execute(_DELETE, (json.dumps(changes.gone),))
            if changes.nexts:
                self._run.execute(_NEXT, (json.dumps(changes.nexts),))

    def page(self, queue: int, after: int, most_bytes: int, now: float) -> Page:
        """Return some rows of a queue behind an entry, marked as taken; at least one, if there is one."""
        rows: list[StoredRow] = []
        damaged: list[tuple[int, int, int, int]] = []
        size, last = 0, after
        cursor = self._run.execute(_PAGE, (queue, after))
        for n, first, count, deaths, at, crc, body in cursor:
            last = first + count - 1
            if not _is_whole(count, body) or checksum(n, queue, first, count, body) != crc:
                damaged.append((n, first, count, len(body)))
                continue
            rows.append(StoredRow(n, first, deaths, at, [*unpacked(count, body)]))
            size += len(body)
            if size >= most_bytes:
                break
        cursor.close()  # one that stays open has the log grow
        with self._transaction():
            for n, *_ in damaged:
                self._run.execute(_MOVE, (now, n))
            if damaged:
                self._run.execute(_DELETE, (json.dumps([n for n, *_ in damaged]),))
            self._run.execute(_TAKE, (json.dumps([row.n for row in rows]),))
        return Page(rows, last, [each[1:] for each in damaged])

    def touch(self) -> None:
        """Write something, to see whether that can be done."""
        self._run.execute("UPDATE store SET clean = 0")

    def checkpoint(self) -> None:
        """Have all that is in the log in the database, and the log empty."""
        self._run.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def give_back(self, pages: int) -> None:
        """Give so many pages that are free back to the file system."""
        # By `execute` it would be one: each row that is stepped over frees one.
        self._run.executescript(f"PRAGMA incremental_vacuum({pages})")

    def free_pages(self) -> int:
        """Return how many pages of the file hold nothing."""
        [count] = self._run.execute("PRAGMA freelist_count").fetchone()
        return int(count)

    def close(self, *, is_clean: bool = True) -> None:
        """Close it; nothing of it is under way any more, unless it is closed for other reasons."""
        try:
            if is_clean:
                self._run.execute("UPDATE store SET clean = 1")
        finally:
            self._run.close()

    def _insert(self, rows: Sequence[NewRow]) -> None:
        """Insert rows with one statement."""
        values: list[object] = []
        for row in rows:
            count = len(row.payloads)
            body = b"".join((lengths(row.payloads), *row.payloads))
            crc = checksum(row.n, row.queue, row.first, count, body)
            values += (row.n, row.queue, row.first, count, row.is_taken, row.at, crc, body)
        self._run.execute(_INSERT + ", ".join([_VALUES] * len(rows)), values)

    def _insert_large(self, row: NewRow) -> None:
        """Insert a row of one large payload, in pieces: joined, 16 MiB hold up everybody for 12 ms."""
        [payload] = row.payloads
        before = lengths(row.payloads)
        crc = checksum(row.n, row.queue, row.first, 1, before, payload)
        size = len(before) + len(payload)
        key = (row.n, row.queue, row.first, 1, row.is_taken, row.at, crc, size)
        self._run.execute(_INSERT_LARGE, key)
        view = memoryview(payload)
        with self._run.blobopen("entries", "body", row.n) as blob:
            blob.write(before)
            for start in range(0, len(payload), MOST_JOINED):
                blob.write(view[start : start + MOST_JOINED])

    def _transaction(self) -> _Transaction:
        return _Transaction(self._run)


class Page(NamedTuple):
    """Some rows of a queue."""

    rows: list[StoredRow]
    last: int
    """The last entry that was looked at: the next page begins behind it."""
    damaged: list[tuple[int, int, int]]
    """What was moved aside, as it was not whole: of each row the first entry, how many, and bytes."""


class _Transaction:
    """All that is done inside, or nothing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, cause: object, trace: object) -> None:
        if kind is None:
            try:
                self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # a full disk has ended it already
            self._connection.execute("ROLLBACK")


def _is_whole(count: int, body: bytes) -> bool:
    """Return whether the lengths of so many payloads are those of the body."""
    return len(body) >= WIDTH * count


def total(rows: Iterable[NewRow]) -> int:
    """Return how many bytes of payloads rows have."""
    return sum(len(payload) for row in rows for payload in row.payloads)
