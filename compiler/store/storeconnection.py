"""The connection to a database of which SQLite may say what is no UTF-8."""

from __future__ import annotations

import sqlite3
from typing import Any


class StoreConnection(sqlite3.Connection):
    """A connection that raises `sqlite3.DatabaseError` also where names in the database are no UTF-8.

    SQLite tells a name as it is, also one that is damaged, and Python raises `UnicodeDecodeError` for it.
    """

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Execute a statement."""
        try:
            return super().execute(sql, *parameters)
        except UnicodeDecodeError as cause:
            raise _damaged(cause) from cause

    def executemany(self, sql: str, parameters: Any) -> sqlite3.Cursor:
        """Execute a statement once for each of some parameters."""
        try:
            return super().executemany(sql, parameters)
        except UnicodeDecodeError as cause:
            raise _damaged(cause) from cause

    def executescript(self, script: str) -> sqlite3.Cursor:
        """Execute statements."""
        try:
            return super().executescript(script)
        except UnicodeDecodeError as cause:
            raise _damaged(cause) from cause

    def blobopen(self, *place: Any, **options: Any) -> sqlite3.Blob:
        """Open one value."""
        try:
            return super().blobopen(*place, **options)
        except UnicodeDecodeError as cause:
            raise _damaged(cause) from cause


def _damaged(cause: UnicodeDecodeError) -> sqlite3.DatabaseError:
    """Return what is raised in place of what could not be decoded."""
    error = sqlite3.DatabaseError(f"not UTF-8: {cause.object.decode(errors='replace')}")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_CORRUPT, "SQLITE_CORRUPT"
    return error
