"""The database of a store, as the one thread knows it that writes and reads it.

Everything here may wait for the disk, and raises what `sqlite3` does. SQLite alone decides what is whole
after a kill; that what is read is what was written is told by a checksum a row, for SQLite has none.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar

from headrace.compiler.store import buckettables, committing, lettertables
from headrace.compiler.store.committing import deaths_of
from headrace.compiler.store.disk import is_full
from headrace.compiler.store.letterrows import LetterFigures
from headrace.compiler.store.storeconnection import StoreConnection
from headrace.compiler.store.storedrows import (
    ALONE_FROM,
    ENDED_TOGETHER,
    TAKEN_TOGETHER,
    Changes,
    DamagedRow,
    RowBeginning,
    StoredPage,
    StoredQueue,
    StoredRow,
)
from headrace.compiler.store.storeerrors import StoreRefused
from headrace.compiler.store.storeformat import (
    BUCKETS,
    FORMAT,
    LETTERS,
    SCHEMA,
    STORE,
    WIDTH,
    is_right,
    unpacked,
)

T = TypeVar("T")

Sync = Literal["power", "process"]
"""What is outlasted: a loss of power as well, or the end of the process alone."""

OLDEST_SQLITE = (3, 38, 0)
LOG_PAGES = 4_000
PAGE_BYTES = 4_096
ROWS_OF_A_PAGE = 256
DISCARDED_ROWS = 1_000
DISCARDED_BYTES = 16 * 2**20
"""Of what is deleted in one transaction: commits wait for it."""
BLAMED_SECONDS = 10
"""What was handed out so long before the process was last known to be alive may have ended it."""

# Before anything that reads the file: only so there is none that is mapped, which ends the process where it
# is cut short, and for which a full disk has no room.
_ALONE = "PRAGMA locking_mode = EXCLUSIVE"
_NEW = (
    f"PRAGMA page_size = {PAGE_BYTES}",
    "PRAGMA auto_vacuum = INCREMENTAL",  # before the first table; writes, whatever it was
)
_SETTINGS_TO_READ = (
    "PRAGMA mmap_size = 0",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)
_SETTINGS = (
    "PRAGMA journal_mode = WAL",
    f"PRAGMA wal_autocheckpoint = {LOG_PAGES}",
    f"PRAGMA journal_size_limit = {LOG_PAGES * PAGE_BYTES}",
    "PRAGMA secure_delete = OFF",
    *_SETTINGS_TO_READ,
)
_SYNC = {"power": "FULL", "process": "NORMAL"}
_PAGE = (
    "SELECT n, first, count, deaths, at, crc, body FROM entries"
    f" WHERE queue = ? AND first > ? AND first < ? ORDER BY first LIMIT {ROWS_OF_A_PAGE}"
)
_DIED = (
    f"UPDATE entries SET taken = -taken, deaths = max(deaths, {TAKEN_TOGETHER}) + coalesce("
    f"(SELECT NOT clean AND entries.taken >= alive - {BLAMED_SECONDS} FROM store), 0) WHERE taken > 0"
)
_ALONE_IN_ROWS = (
    "SELECT n, first, at, length(body) FROM entries"
    " WHERE queue = ? AND count = 1 AND typeof(body) = 'blob' ORDER BY first"
)
_SIZES = f"SELECT rowid, coalesce(length(body), 0) FROM {{}} WHERE queue = ? LIMIT {DISCARDED_ROWS}"
# A queue of its own for entries of which the queue is damaged, or others would be given them.
_ADOPT = """
    WITH RECURSIVE used(id) AS (
        SELECT min(queue) FROM entries
        UNION ALL SELECT (SELECT min(queue) FROM entries WHERE queue > id) FROM used WHERE id NOTNULL
    )
    INSERT INTO queues SELECT id, '', 'unknown', id, 0, NULL FROM used
    WHERE id NOTNULL AND id NOT IN (SELECT id FROM queues)
"""
_RESTORE = (
    "INSERT INTO queues VALUES (?, ?, ?, ?, ?, NULL)"
    " ON CONFLICT (id) DO UPDATE SET next = max(next, excluded.next)"
)
_QUEUES = (
    # Cast, for a column that is damaged may have anything.
    "SELECT id, pipeline, target, kind,"
    " max(CAST(next AS INTEGER), coalesce(CAST(max(first + count) AS INTEGER), 0)),"
    " count(n), CAST(total(CASE WHEN count BETWEEN 1 AND length(body) / 4 THEN count ELSE n NOTNULL END)"
    " AS INTEGER), CAST(total(length(body)) AS INTEGER), min(at), ended,"
    " (SELECT CAST(total(CASE WHEN count BETWEEN 1 AND length(body) / 4 THEN count ELSE 1 END) AS INTEGER)"
    " FROM aside WHERE queue = queues.id),"
    " (SELECT CAST(total(length(body)) AS INTEGER) FROM aside WHERE queue = queues.id)"
    " FROM queues LEFT JOIN entries ON queue = id {} GROUP BY id"
)
_DISCARD_ENDED = (
    "DELETE FROM queues WHERE id = ? AND ended NOTNULL"
    " AND NOT EXISTS (SELECT 1 FROM entries WHERE queue = queues.id)"
    " AND NOT EXISTS (SELECT 1 FROM remembered WHERE bucket = queues.id)"
)
"""Of a queue, or a bucket, of which nothing is set aside any more."""
_ONE = "WHERE (pipeline, target, kind) = (?, ?, ?) AND ended IS NULL"
_HAS_ENTRIES = f"SELECT 1 FROM queues JOIN entries ON queue = id {_ONE} LIMIT 1"


class Database:
    """An open database."""

    def __init__(
        self,
        file: Path | None,
        sync: Sync,
        now: Callable[[], float],
        *,
        is_again: bool = False,
        is_only_read: bool = False,
        connection: sqlite3.Connection | None = None,
    ) -> None:
        """Open the database of a file, or one in memory; make what is not there.

        ``now`` returns the time. Units: seconds since 1970.
        ``is_again``: what is under way is under way in this very process, which has not ended.
        ``is_only_read``: nothing is made, and nothing of the file and its log is changed.
        ``connection``: one in memory that outlives this.

        Raises:
            StoreRefused: it is of a newer version.
            sqlite3.Error: it cannot be opened, or is none.
        """
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise StoreRefused(
                f"SQLite is {sqlite3.sqlite_version}: expected "
                f"{'.'.join(map(str, OLDEST_SQLITE))} or newer"
            )
        self.file, self._now = file, now
        only_read = (
            "" if file is None or not is_only_read else f"{file.absolute().as_uri()}?mode=ro"
        )
        self._alive = 0
        """The second of which was said last that the process had not ended."""
        self._is_ours = connection is None
        self._run: sqlite3.Connection = connection or sqlite3.connect(
            only_read or file or ":memory:",
            uri=bool(only_read),
            timeout=0,
            isolation_level=None,
            check_same_thread=False,  # one after the other
            factory=StoreConnection,
        )
        self._run.text_factory = _text
        try:
            if is_only_read:
                self._settle_to_read()
            else:
                self._settle(sync, is_again)
            self._opened = self._inodes()
        except BaseException:
            self.close()
            raise

    def _settle(self, sync: Sync, is_again: bool) -> None:
        execute = self._run.execute
        execute(_ALONE)
        version = self._version()
        for setting in (*(_NEW if version == 0 else ()), *_SETTINGS):
            execute(setting)
        execute(f"PRAGMA synchronous = {_SYNC[sync]}")
        if version == 0:
            with self._transaction():
                for statement in SCHEMA:
                    execute(statement)
                execute(f"PRAGMA user_version = {FORMAT}")
        if not lettertables.are_there(self._run):
            with self._transaction():
                for statement in LETTERS:
                    execute(statement)
        if not buckettables.are_there(self._run):
            with self._transaction():
                for statement in BUCKETS:
                    execute(statement)
        [last] = execute("SELECT coalesce(max(n), 0) FROM entries").fetchone()
        self.next_row = int(last) + 1
        """The number of the next row, which is higher than that of any there is."""
        self.next_letter = lettertables.next_id(self._run)
        """The number of the next letter, which is higher than that of any there was."""
        self.letters = LetterFigures(lettertables.amounts(self._run))
        """How much there was of letters; whoever changes them says what there is then."""
        self.frames = sys.maxsize
        """How many frames of the log it took."""
        with _unless_full():
            # Asked before anything is written.
            self.frames = execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
        with _unless_full(), self._transaction():
            execute(STORE)  # one that is damaged may have lost it
            execute(_ADOPT)
            if not is_again:
                execute(_DIED)
            self.touch()
        self.id: str = (execute("SELECT id FROM store").fetchone() or ("",))[0]
        """What tells it from all other stores."""

    def _settle_to_read(self) -> None:
        for setting in _SETTINGS_TO_READ:
            self._run.execute(setting)
        self._version()

    def _version(self) -> int:
        """Return the version of what is there.

        Raises:
            StoreRefused: it is newer than this headrace.
        """
        version: int
        [version] = self._run.execute("PRAGMA user_version").fetchone()
        if version > FORMAT:
            raise StoreRefused(
                f"the store is of version {version}, and this headrace knows versions up to {FORMAT}"
            )
        return version

    def queues(self) -> list[StoredQueue]:
        """Return all queues."""
        return [StoredQueue(*row) for row in self._run.execute(_QUEUES.format("")).fetchall()]

    def has_entries(self, key: tuple[str, str, str]) -> bool:
        """Return whether something is in a queue that goes on, by its pipeline, target and kind."""
        return self._run.execute(_HAS_ENTRIES, key).fetchone() is not None

    def queue(self, pipeline: str, target: str, kind: str) -> StoredQueue:
        """Return one queue that goes on, which is made if it is not there."""
        key = (pipeline, target, kind)
        if not (found := self._run.execute(_QUEUES.format(_ONE), key).fetchall()):
            self._run.execute(
                "INSERT INTO queues (pipeline, target, kind, next) VALUES (?, ?, ?, 0)", key
            )
            found = self._run.execute(_QUEUES.format(_ONE), key).fetchall()
        return StoredQueue(*found[0])

    def restore(self, queues: Iterable[tuple[int, str, str, str, int]]) -> None:
        """Have queues be there under their numbers, also in a file that was made anew."""
        with self._transaction():
            self._run.executemany(_RESTORE, queues)

    def discard(self, queue: int) -> bool:
        """Forget some of what is in a queue or was set aside, else the queue; return whether more is."""
        with self._transaction():
            if self._some_are_deleted("entries", queue) or self._some_are_deleted("aside", queue):
                return True
            if buckettables.discard(self._run, queue):
                return True
            self._run.execute("DELETE FROM queues WHERE id = ?", (queue,))
        return False

    def discard_aside(self, queue: int) -> bool:
        """Forget some of what of a queue was set aside; return whether more is."""
        with self._transaction():
            if self._some_are_deleted("aside", queue):
                return True
            self._run.execute(_DISCARD_ENDED, (queue,))
        return False

    def _some_are_deleted(self, table: str, queue: int) -> bool:
        """Delete some rows of a queue; return whether there were any."""
        rows = self._some_rows(table, queue)
        delete = f"DELETE FROM {table} WHERE rowid = ?"
        self._run.executemany(delete, ((row,) for row in rows))
        return bool(rows)

    def _some_rows(self, table: str, queue: int) -> list[int]:
        """Return rows of a queue that can be deleted at once."""
        rows, size = list[int](), 0
        found = self._run.execute(_SIZES.format(table), (queue,)).fetchall()
        for row, length in found:
            rows.append(row)
            size += length
            if size >= DISCARDED_BYTES:
                break
        return rows

    def commit(self, changes: Changes) -> None:
        """Write all of it, or nothing."""
        with self._transaction():
            committing.write(self._run, changes)
            if not changes.is_empty:
                self.mark_alive()

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read something of letters or buckets."""
        return work(self._run)

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Write something of letters or buckets, or nothing."""
        with self._transaction():
            result = work(self._run)
            self.mark_alive()
        return result

    def page(self, queue: int, after: int, before: int, most_bytes: int) -> StoredPage:
        """Return some rows of a queue between two entries; at least one, if there is one."""
        rows: list[StoredRow] = []
        damaged: list[DamagedRow] = []
        seen = size = 0
        last = after
        cursor = self._run.execute(_PAGE, (queue, after, before))
        try:
            for n, first, count, deaths, at, crc, body in cursor:
                seen += 1
                read_to = last
                last = first if isinstance(first, int) and after < first < before else last
                if is_right(n, queue, first, count, at, crc, body):
                    ends = deaths_of(count, deaths)
                    payloads = [*unpacked(count, body)]
                    row = StoredRow(n, first, ends, at, payloads, deaths == ENDED_TOGETHER)
                    if row.has_to_be_split:
                        if seen == 1:
                            return StoredPage([row], [], last, is_last=False)
                        return StoredPage(rows, damaged, read_to, is_last=False)
                    rows.append(row)
                    size += len(body)
                else:
                    damaged.append(DamagedRow(n, last, _entries(count, body), _size(body)))
                if size >= most_bytes:
                    return StoredPage(rows, damaged, last, is_last=False)
        finally:
            cursor.close()  # one that stays open has the log grow
        return StoredPage(rows, damaged, last, is_last=seen < ROWS_OF_A_PAGE)

    def beginnings(self, queue: int, most: int) -> list[RowBeginning]:
        """Return the rows of a queue that have one entry each, with its first bytes, ``most`` of them.

        No checksum is looked at: that takes the whole of it.
        """
        found: list[RowBeginning] = []
        for n, first, at, size in self._run.execute(_ALONE_IN_ROWS, (queue,)).fetchall():
            if isinstance(first, int) and isinstance(at, float) and size >= WIDTH:
                with self._run.blobopen("entries", "body", n, readonly=True) as blob:
                    blob.seek(WIDTH)
                    beginning = blob.read(min(most, size - WIDTH))
                found.append(RowBeginning(n, first, at, size - WIDTH, beginning))
        return found

    def mark(self, page: StoredPage, queue: int, next: int, now: float) -> None:
        """Mark the rows of a page as taken, and set aside those that are damaged.

        What may have ended the process is marked when it is handed out. Of its queue ``next`` comes next:
        no row may be left that tells.
        """
        taken = [row.n for row in page.rows if row.deaths < ALONE_FROM]
        if not (taken or page.damaged):
            return
        with self._transaction():
            for row in page.damaged:
                committing.set_aside(self._run, row.n, now, "damaged")
            if page.damaged:
                committing.delete(self._run, [row.n for row in page.damaged])
                committing.go_on_at(self._run, {queue: next})
            committing.take(self._run, taken, now)
            self.mark_alive()

    def touch(self) -> None:
        """Write something, to see whether that can be done."""
        self._run.execute("UPDATE store SET clean = 0, alive = ?", (int(self._now()),))

    def mark_alive(self) -> None:
        """Say that the process has not ended until now, once a second.

        Where that is undone it is a second late, which nobody goes by: see `BLAMED_SECONDS`.
        """
        if (now := int(self._now())) != self._alive:
            self._alive = now
            self._run.execute("UPDATE store SET alive = ?1 WHERE alive IS NOT ?1", (now,))

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

    def is_there(self) -> bool:
        """Return whether its file and log are still those that are there under their names."""
        pairs = zip(self._opened, self._inodes(), strict=True)
        return all(opened in (None, found) for opened, found in pairs)

    def has_file(self) -> bool:
        """Return whether its file is, whatever became of the log."""
        return self._inodes()[:1] == self._opened[:1]

    def copy_to(self, file: Path) -> None:
        """Write all of it into a file that is not there yet."""
        self._run.execute("VACUUM INTO ?", (str(file),))

    def mark_clean(self) -> None:
        """Say that nothing of it is under way any more."""
        self._run.execute("UPDATE store SET clean = 1")

    def close(self) -> None:
        """Close it."""
        if self._is_ours:
            self._run.close()

    def _inodes(self) -> list[tuple[int, int] | None]:
        """Return what tells the files from others that are put in their place."""
        if self.file is None:
            return []
        return [_inode(self.file), _inode(log_of(self.file))]

    def _transaction(self) -> _Transaction:
        return _Transaction(self._run)


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


@contextmanager
def _unless_full() -> Iterator[None]:
    """Do something that a full disk may do without: what is there is read all the same."""
    try:
        yield
    except sqlite3.Error as cause:
        if not is_full(cause):
            raise


def log_of(file: Path) -> Path:
    """Return the write-ahead log of a database."""
    return file.with_name(f"{file.name}-wal")


def _inode(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _entries(count: object, body: object) -> int:
    """Return how many entries a damaged row had, as far as that can be."""
    return count if isinstance(count, int) and 0 < count <= _size(body) // WIDTH else 1


def _size(body: object) -> int:
    return len(body) if isinstance(body, bytes | str) else 0


def _text(value: bytes) -> str:
    """Return a text as it can be read, also where it is damaged."""
    return value.decode(errors="replace")
