"""What can still be read of a database whose pages are damaged.

SQLite reads a table up to a page that makes no sense. So entries and letters are read from
the first on and from the last back; what lies between two such pages stays in the file that was kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from re import fullmatch
from typing import Any

from headrace.compiler.store import historytable
from headrace.compiler.store.database import Database
from headrace.compiler.store.lettertables import recount
from headrace.compiler.store.storeconnection import StoreConnection

MOST_QUEUES = 2**48
"""A number above that is damaged."""
_COLUMNS = ", ".join("?" * 9)
"""Of entries, and of what is set aside."""
_REMEMBER = (
    "INSERT OR IGNORE INTO remembered VALUES (CAST(? AS INTEGER), CAST(? AS TEXT), CAST(? AS TEXT))"
)
_ADOPT_BUCKETS = (
    "INSERT INTO queues SELECT DISTINCT bucket, '', 'unknown', 'bucket', 0, 0 FROM remembered"
    " WHERE bucket NOT IN (SELECT id FROM queues)"
)
"""A place of their own for keys of which the bucket is not known any more: they are left over."""


def salvage(damaged: Path, file: Path) -> int:
    """Write what can be read of a damaged database into one that is new; return how much that is.

    Units: rows of entries, letters, rows of history, and keys of buckets.

    Raises:
        sqlite3.Error: the new one cannot be written.
    """
    Database(file, "power", lambda: 0, is_again=True).close()
    count = 0
    opened = sqlite3.connect(damaged, isolation_level=None, factory=StoreConnection)
    with closing(opened) as source:
        source.text_factory = bytes
        # Else one table that the schema has wrong costs all of them.
        source.execute("PRAGMA writable_schema = ON")
        with closing(sqlite3.connect(file, isolation_level=None)) as target:
            target.execute("BEGIN")
            for id, *texts, next, ended in _all(source, "queues"):
                with suppress(sqlite3.IntegrityError, AttributeError):
                    key = [_text(each) for each in texts]
                    row = (id, *key, next, ended)
                    target.execute("INSERT INTO queues VALUES (?, ?, ?, ?, ?, ?)", row)
            for [last] in _read(source, "SELECT seq FROM sqlite_sequence WHERE name = 'queues'"):
                _number_queues_from(target, last)
            for clean, alive, id in _read(source, "SELECT clean, alive, id FROM store"):
                known = alive if isinstance(alive, int) else 0
                target.execute("UPDATE store SET clean = ?, alive = ?", (clean == 1, known))
                if isinstance(id, bytes) and fullmatch(rb"[0-9a-f]{32}", id):
                    target.execute("UPDATE store SET id = ?", (id.decode(),))
            for *columns, why in _all(source, "aside"):
                with suppress(sqlite3.IntegrityError, AttributeError):
                    aside = (*columns, _text(why))
                    target.execute(f"INSERT INTO aside VALUES ({_COLUMNS})", aside)
            for entry in _both_ways(source, "entries"):
                count += _put(target, "entries", entry)
            for letter in _both_ways(source, "letters"):
                if letter[0] < MOST_QUEUES:
                    columns = [_text(each) if isinstance(each, bytes) else each for each in letter]
                    count += _put(target, "letters", columns)
            recount(target)
            for body in _both_ways(source, "bodies"):
                if target.execute("SELECT 1 FROM letters WHERE id = ?", body[:1]).fetchone():
                    _put(target, "bodies", body)
            count += _salvage_remembered(source, target)
            for [last] in _read(source, "SELECT seq FROM sqlite_sequence WHERE name = 'letters'"):
                _number_letters_from(target, last)
            count += historytable.copy(source, target)
            target.execute("COMMIT")
    return count


def _salvage_remembered(source: sqlite3.Connection, target: sqlite3.Connection) -> int:
    """Put what buckets remember into the new one; what is damaged shows when it is read."""
    count, before = 0, None
    for order in ("", "1 DESC, 2 DESC"):
        for bucket, key, value in _all(source, "remembered", order):
            if order and (bucket, key) == before:
                break
            if not order:
                before = bucket, key
            if isinstance(key, bytes) and isinstance(value, bytes):
                count += target.execute(_REMEMBER, (bucket, key, value)).rowcount
    target.execute(_ADOPT_BUCKETS)
    return count


def _number_queues_from(target: sqlite3.Connection, last: object) -> None:
    """Have new queues numbered from behind one on, also where that one is no more."""
    if isinstance(last, int) and last < MOST_QUEUES:
        first = "INSERT INTO queues VALUES (?, '', '', '', 0, 0)"
        with suppress(sqlite3.IntegrityError):  # it is there
            target.execute(first, (last,))
            target.execute("DELETE FROM queues WHERE id = ?", (last,))


def _number_letters_from(target: sqlite3.Connection, last: object) -> None:
    """Have new letters numbered from behind one on, also where that one is no more."""
    if isinstance(last, int) and last < MOST_QUEUES:
        numbered = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'letters'"
        if not target.execute(numbered, (last,)).rowcount:
            target.execute("INSERT INTO sqlite_sequence VALUES ('letters', ?)", (last,))


def _both_ways(source: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table from the first on and from the last back, each once."""
    before = 0
    for order, is_behind in (("1", False), ("1 DESC", True)):
        for row in _all(source, table, order):
            if row[0] <= before:
                break
            if not is_behind:
                before = row[0]
            yield row


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _put(target: sqlite3.Connection, table: str, row: Sequence[Any]) -> bool:
    """Insert a row; one with what no column has is damaged, and left out."""
    try:
        target.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    except sqlite3.IntegrityError:
        return False
    return True


def _all(source: sqlite3.Connection, table: str, order: str = "") -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table until it comes upon damage.

    ``order``: columns by their number, from 1 on. They are read under names of our own: what they are
    called may be damaged as well.
    """
    for [width] in _read(source, f"SELECT count(*) FROM pragma_table_info('{table}')"):
        names = ", ".join(f"c{column}" for column in range(width))
        rows = f"SELECT * FROM {table}" + (f" ORDER BY {order}" if order else "")
        yield from _read(source, f"WITH found({names}) AS ({rows}) SELECT * FROM found")


def _read(source: sqlite3.Connection, query: str) -> Iterator[tuple[Any, ...]]:
    """Yield what a query gives until it comes upon damage."""
    with suppress(sqlite3.DatabaseError):
        yield from source.execute(query)
