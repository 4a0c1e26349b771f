"""The folder of a store: its lock, its database, and what is made of one that is damaged."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from headrace.compiler.store.database import Database, Sync
from headrace.compiler.store.errors import StoreRefused
from headrace.compiler.store.lostcommits import commits_in

DATABASE = "store.db"
LOCK = "lock"


class StoreFolder:
    """A folder that one process has to itself until `close`.

    The lock is on a file of its own: whoever closes the database in this process, in whatever way, gives up
    the locks that SQLite has on it.
    """

    def __init__(self, path: Path) -> None:
        """Make it, if it is not there, and lock it.

        Raises:
            StoreRefused: another process has it, or it cannot be written to.
        """
        self.path, self.file = path, path / DATABASE
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as cause:
            raise StoreRefused(f"the store '{path}' cannot be written: {_said(cause)}") from cause
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            os.close(self._lock)
            raise StoreRefused(f"the store '{path}' is in use by another process") from cause

    def open(
        self, sync: Sync, damaged: Callable[[str], None], *, is_again: bool = False
    ) -> Database:
        """Open the database; ``damaged`` is told what was lost of it, and by what.

        ``is_again``: this process had it open already.

        Raises:
            StoreRefused: it is of a newer version, or cannot be written to.
        """
        committed = commits_in(self.file.with_name(f"{DATABASE}-wal"))
        try:
            database = self._open(sync, is_again)
        except sqlite3.DatabaseError as cause:
            if isinstance(cause, sqlite3.OperationalError):
                said = f"the store '{self.path}' cannot be opened: {cause}"
                raise StoreRefused(said) from cause
            aside = self._move_aside()
            damaged(f"'{self.file}' is no database ({cause}): it is kept as '{aside}'")
            return self._open(sync, is_again)
        if lost := sum(number >= database.frames for number in committed):
            damaged(f"the log of '{self.file}' is damaged: {lost:,} of its commits are lost")
        return database

    def is_there(self, database: Database) -> bool:
        """Return whether the file of a database is still the one that is there under its name."""
        try:
            return os.stat(self.file).st_ino == database.inode
        except OSError:
            return False

    def close(self) -> None:
        """Let others have it."""
        os.close(self._lock)

    def _open(self, sync: Sync, is_again: bool) -> Database:
        self._make()
        return Database(self.file, sync, is_again=is_again)

    def _make(self) -> None:
        """Make the file, for nobody else to read."""
        try:
            os.close(os.open(self.file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        except OSError as cause:
            raise StoreRefused(
                f"the store '{self.path}' cannot be written: {_said(cause)}"
            ) from cause

    def _move_aside(self) -> Path:
        """Rename what is no database, with its log; return what it is called."""
        number = 1
        while (aside := self.file.with_name(f"{DATABASE}.damaged-{number}")).exists():
            number += 1
        self.file.rename(aside)
        log = self.file.with_name(f"{DATABASE}-wal")
        if log.exists():
            log.rename(aside.with_name(f"{aside.name}-wal"))
        return aside


def _said(cause: OSError) -> str:
    return (cause.strerror or str(cause)).lower()
