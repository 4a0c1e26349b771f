"""What SQLite says of a disk, in words, and what kind of trouble it is."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from headrace.compiler.store.storeerrors import StoreFailed, StoreFull

_OTHER_TABLES = re.compile(r"no such (table|column|index): |table \S+ has ")
"""What SQLite says where tables are others than ours: all that it is asked for is in those."""


def is_full(cause: Exception) -> bool:
    """Return whether there was no room."""
    return _name(cause) == "SQLITE_FULL"


def is_damage(cause: BaseException) -> bool:
    """Return whether the file is not what was written, or no database at all.

    Where what it says of its tables is damaged, SQLite takes that for what somebody has written.
    """
    if _name(cause) == "SQLITE_ERROR":
        return _OTHER_TABLES.match(str(cause)) is not None
    return _name(cause).startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def failed(cause: Exception) -> StoreFailed:
    """Return what is told of something that went wrong."""
    if isinstance(cause, StoreFailed):
        return cause
    if is_full(cause):
        return StoreFull("the disk is full")
    name = _name(cause)
    return StoreFailed(f"it cannot be written: {cause}" + (f" ({name})" if name else ""))


def refuse_link(file: Path) -> None:
    """Refuse a file of a store that is a symbolic link: what it leads to is not ours.

    Raises:
        OSError: it is one.
    """
    if file.is_symlink():
        raise OSError(f"'{file.name}' in it is a symbolic link")


def _name(cause: BaseException) -> str:
    return getattr(cause, "sqlite_errorname", "") if isinstance(cause, sqlite3.Error) else ""
