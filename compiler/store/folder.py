"""The folder of a store: its lock, its database, and what is made of one that is damaged or removed."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from headrace.compiler.store.database import Database, Sync, log_of
from headrace.compiler.store.disk import is_damage, refuse_link
from headrace.compiler.store.lostcommits import commits_in, said_of
from headrace.compiler.store.salvage import salvage
from headrace.compiler.store.storeerrors import StoreRefused

DATABASE = "store.db"
LOCK = "lock"
_OPEN_LOCK = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class StoreFolder:
    """A folder that one process has to itself until `close`.

    The lock is on a file of its own: whoever closes the database in this process, in whatever way, gives up
    the locks that SQLite has on it.
    """

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        """Make it, if it is not there, and lock it; ``now`` returns the time, in seconds since 1970.

        Raises:
            StoreRefused: another process has it, or it cannot be written to.
        """
        self.path, self.file, self._now = path, path / DATABASE, now
        self._copy = path / f"{DATABASE}.copy"
        self._lock = self._locked()

    def open(self, sync: Sync, tell: Callable[[str], None], *, is_again: bool = False) -> Database:
        """Open the database; ``tell`` is told what was lost of it, and by what.

        ``is_again``: this process had it open already.

        Raises:
            StoreRefused: it is of a newer version, or cannot be written to.
        """
        committed = commits_in(log_of(self.file))
        try:
            database = self._open(sync, is_again)
        except sqlite3.Error as cause:
            if not is_damage(cause):
                raise self._refused(cause) from cause
            self._begin_anew(tell, str(cause))
            return self._open(sync, is_again)
        lost = sum(number >= database.frames for number in committed)
        if lost > is_again:  # of what this process could not write one may be there in part
            tell(f"the log of '{self.file}': {said_of(lost)}")
        return database

    def reopen(
        self, before: Database, sync: Sync, tell: Callable[[str], None], *, is_damaged: bool
    ) -> Database:
        """Close the database and open it anew; what was removed is made again from the one that is open.

        Raises:
            StoreRefused: as `open`; the folder is somebody else's by now.
        """
        is_copied = not before.has_file() and self._copied(before)
        with suppress(sqlite3.Error):
            before.close()  # before there is another: it removes the log of that name
        if is_copied:
            if self.file.exists():
                self._keep_aside()
            # What is in it is in the copy, of which it would overwrite pages; SQLite leaves it there if
            # the file is not.
            log_of(self.file).unlink(missing_ok=True)
            self._copy.replace(self.file)
        if is_damaged:
            self._begin_anew(tell, "it cannot be read")
        return self.open(sync, tell, is_again=True)

    def close(self) -> None:
        """Let others have it."""
        os.close(self._lock)

    def _locked(self) -> int:
        """Return the lock, which is ours."""
        try:
            if not self.path.parent.exists():  # its mode is not given to those above it
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
            refuse_link(self.path / LOCK)
            lock = os.open(self.path / LOCK, _OPEN_LOCK, 0o600)
        except OSError as cause:
            raise self._refused(cause) from cause
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            os.close(lock)
            if not isinstance(cause, BlockingIOError):
                raise self._refused(cause) from cause
            raise StoreRefused(f"the store '{self.path}' is in use by another process") from cause
        return lock

    def _lock_again(self) -> None:
        """Lock what is there under the name of our lock, if it is not ours."""
        with suppress(OSError):
            if os.path.samestat(os.fstat(self._lock), os.stat(self.path / LOCK)):
                return
        lock = self._locked()
        os.close(self._lock)
        self._lock = lock

    def _copied(self, database: Database) -> bool:
        """Write all of an open database that has no file any more into a copy, if that can be done."""
        self._lock_again()
        self._copy.unlink(missing_ok=True)
        try:
            database.copy_to(self._copy)
            _synced(self._copy)
        except (sqlite3.Error, OSError):
            return False
        return True

    def _open(self, sync: Sync, is_again: bool) -> Database:
        self._make()
        return Database(self.file, sync, self._now, is_again=is_again)

    def _make(self) -> None:
        """Make the file, for nobody else to read."""
        try:
            os.close(os.open(self.file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        except OSError as cause:
            raise self._refused(cause) from cause

    def _begin_anew(self, tell: Callable[[str], None], why: str) -> None:
        """Keep what is no database, or a damaged one, under another name; go on with what can be read."""
        self._copy.unlink(missing_ok=True)
        try:
            count = salvage(self.file, self._copy)
        except sqlite3.Error as cause:
            raise self._refused(cause) from cause
        aside = self._keep_aside()
        self._copy.replace(self.file)
        tell(
            f"'{self.file}' is damaged ({why}): it is kept as '{aside}', and of its rows"
            f" {count:,} could be read"
        )

    def _keep_aside(self) -> Path:
        """Give what is no database, and its log, other names; return that of the file."""
        number = 1
        while (aside := self.file.with_name(f"{DATABASE}.damaged-{number}")).exists():
            number += 1
        try:
            os.link(self.file, aside)  # a kill leaves one of that name at any time
        except OSError:
            self.file.rename(aside)
        with suppress(FileNotFoundError):
            log_of(self.file).rename(log_of(aside))
        return aside

    def _refused(self, cause: Exception) -> StoreRefused:
        if isinstance(cause, OSError):
            said = (cause.strerror or str(cause)).lower()
            return StoreRefused(f"the store '{self.path}' cannot be written: {said}")
        return StoreRefused(f"the store '{self.path}' cannot be opened: {cause}")


def _synced(file: Path) -> None:
    descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o600)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
