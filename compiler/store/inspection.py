"""The store of a folder that no server has, looked at from outside: nothing of it is changed.

It is locked meanwhile, as by a server.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import TypeVar

from headrace.compiler.store.database import Database, log_of
from headrace.compiler.store.folder import DATABASE, StoreFolder
from headrace.compiler.store.lostcommits import commits_in
from headrace.compiler.store.storeerrors import StoreRefused

T = TypeVar("T")

_INDEX = Struct("=16xI")
"""The head of the index of a log: how many frames of it are taken. Source:
https://www.sqlite.org/walformat.html#the_wal_index_header"""


class NoStore(StoreRefused):
    """There is no store in a folder."""


class Inspection:
    """A store that is looked at, until `close`."""

    def __init__(self, folder: Path) -> None:
        """Take the store of a folder.

        Raises:
            NoStore: there is none.
            StoreRefused: another process has it, or it is of a newer version.
            sqlite3.Error: it is so damaged that it cannot be opened.
        """
        file = folder / DATABASE
        if not file.is_file():
            raise NoStore(f"there is no store in '{folder}'")
        self._folder = StoreFolder(folder, lambda: 0)
        self.file, self._log = file, log_of(file)
        self._index = file.with_name(f"{file.name}-shm")
        self._made = [each for each in (self._log, self._index) if not each.exists()]
        """What SQLite makes that nobody needs."""
        try:
            committed = commits_in(self._log)
            self._database = Database(file, "process", lambda: 0, is_only_read=True)
        except BaseException:
            self._leave()
            raise
        frames = self._frames() if committed else 0
        self.lost_commits = sum(number >= frames for number in committed)
        """Commits that its log has and SQLite does not take: it is damaged before them."""

    @property
    def database(self) -> Database:
        """The database, in which nothing can be written."""
        return self._database

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read something of it."""
        return self._database.read(work)

    def set_apart(self) -> list[Path]:
        """Return the databases that were damaged when a server opened them, and were kept."""
        found = self.file.parent.glob(f"{DATABASE}.damaged-*")
        return sorted(each for each in found if not each.name.endswith("-wal"))

    def close(self) -> None:
        """Let others have it."""
        self._database.close()
        self._leave()

    def _frames(self) -> int:
        """Return how many frames of the log are taken."""
        with self._index.open("rb") as file:
            frames: int
            [frames] = _INDEX.unpack(file.read(_INDEX.size))
            return frames

    def _leave(self) -> None:
        for each in self._made:
            with suppress(FileNotFoundError):
                each.unlink()
        self._folder.close()
