"""Whether a store that nobody has opened holds anything, without a lock and without writing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from headrace.compiler.store.database import log_of
from headrace.compiler.store.folder import DATABASE
from headrace.compiler.store.storeconnection import StoreConnection

_TABLES = ("entries", "aside", "letters", "remembered")


def holds_something(folder: Path) -> bool:
    """Return whether something is in the store of a folder, which may be somebody else's.

    What a process that was killed, or still runs, has in its log is not looked into: it may be something.
    """
    file = folder / DATABASE
    if not file.exists():
        return False
    try:
        if log_of(file).exists() and log_of(file).stat().st_size:
            return True
        # Immutable: no lock is taken, and no file is made beside it.
        name = f"{file.as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(name, uri=True, factory=StoreConnection)) as database:
            return any(_has_rows(database, table) for table in _TABLES)
    except (sqlite3.Error, OSError):
        return True  # whoever opens it tells what is wrong with it


def _has_rows(database: sqlite3.Connection, table: str) -> bool:
    named = database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    if named is None:
        return False
    return database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None
