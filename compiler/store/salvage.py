"""What can still be read of a database whose pages are damaged.

SQLite reads a table up to a page that makes no sense. So entries are read from the first on and from the
last back; what lies between two such pages stays in the file that was kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from headrace.compiler.store.database import Database

_COLUMNS = ", ".join("?" * 9)
"""Of entries, and of what is set aside."""


def salvage(damaged: Path, file: Path) -> int:
    """Write what can be read of a damaged database into one that is new; return how many rows of entries.

    Raises:
        sqlite3.Error: the new one cannot be written.
    """
    Database(file, "power", is_again=True).close()
    count = 0
    with closing(sqlite3.connect(damaged, isolation_level=None)) as source:
        source.text_factory = bytes
        with closing(sqlite3.connect(file, isolation_level=None)) as target:
            target.execute("BEGIN")
            for queue in _read(source, "SELECT id, pipeline, target, kind, next FROM queues"):
                with suppress(sqlite3.IntegrityError, UnicodeDecodeError):
                    texts = [each.decode(errors="replace") for each in queue[1:4]]
                    row = (queue[0], *texts, queue[4])
                    target.execute("INSERT INTO queues VALUES (?, ?, ?, ?, ?)", row)
            for [clean] in _read(source, "SELECT clean FROM store"):
                target.execute("UPDATE store SET clean = ?", (clean == 1,))
            for *columns, why in _read(source, "SELECT * FROM aside"):
                with suppress(sqlite3.IntegrityError, AttributeError):
                    aside = (*columns, why.decode(errors="replace"))
                    target.execute(f"INSERT INTO aside VALUES ({_COLUMNS})", aside)
            last = 0
            for entry in _read(source, "SELECT * FROM entries ORDER BY n"):
                if entry[0] <= last:
                    break
                last = entry[0]
                count += _put(target, entry)
            for entry in _read(source, "SELECT * FROM entries ORDER BY n DESC"):
                if entry[0] <= last:
                    break
                count += _put(target, entry)
            target.execute("COMMIT")
    return count


def _put(target: sqlite3.Connection, entry: tuple[Any, ...]) -> bool:
    """Insert a row; one with what no column has is damaged, and left out."""
    try:
        target.execute(f"INSERT INTO entries VALUES ({_COLUMNS})", entry)
    except sqlite3.IntegrityError:
        return False
    return True


def _read(source: sqlite3.Connection, query: str) -> Iterator[tuple[Any, ...]]:
    """Yield what a query gives until it comes upon damage."""
    with suppress(sqlite3.DatabaseError):
        yield from source.execute(query)
