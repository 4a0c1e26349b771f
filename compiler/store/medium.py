"""What a store is kept on: a folder that a thread works on, or a disk in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from headrace.compiler.clock import Clock
from headrace.compiler.store.database import Database, Sync
from headrace.compiler.store.folder import StoreFolder
from headrace.compiler.store.memorydisk import MemoryDisk, MemoryRoom
from headrace.compiler.store.onethread import OneThread
from headrace.compiler.store.room import Room
from headrace.compiler.store.storeerrors import StoreRefused

T = TypeVar("T")
_Tell = Callable[[str], None]


class Medium(Protocol):
    """What a store is kept on."""

    database: Database
    """There from `open` on."""
    room: Room
    gives_back: bool
    """Whether free pages can be given back."""

    def open(self, tell: _Tell, say_alive: Callable[[], object]) -> None:
        """Open the database, in `run`; ``tell`` is told what was lost of it.

        ``say_alive``: called as the process is killed in virtual time.

        Raises:
            StoreRefused: it cannot be opened; nothing was touched.
        """

    def reopen(self, tell: _Tell, *, is_damaged: bool) -> bool:
        """Open the database anew, in `run`; return whether that is another one.

        Raises:
            StoreRefused: as `open`.
        """

    async def run(self, work: Callable[[], T]) -> T:
        """Return what ``work`` does, after all that was asked for before.

        Raises:
            StoreFailed: it has ended.
        """

    def end(self, *, is_idle: bool) -> None:
        """Do nothing more on it; unless something may still be written, others may have it."""


class DiskMedium:
    """A folder, which this process has to itself, and a thread that works on it."""

    gives_back = True

    def __init__(
        self, clock: Clock, path: Path, sync: Sync, keep_free_bytes: int, reserve_bytes: int
    ) -> None:
        """Take the folder.

        Raises:
            StoreRefused: another process has it, or it cannot be written to.
        """
        self._clock, self._sync = clock, sync
        self._folder = StoreFolder(path, clock.seconds)
        self._thread = OneThread("headrace-store")
        self.room = Room(path, keep_free_bytes, reserve_bytes)
        self.database: Database

    def open(self, tell: _Tell, say_alive: Callable[[], object]) -> None:
        """Open the database, and take the reserve."""
        self.database = self._folder.open(self._sync, tell)
        try:
            self.room.take_reserve()
        except OSError as cause:
            self.database.close()
            path = self._folder.path
            raise StoreRefused(f"the store '{path}' cannot be opened: {cause}") from cause

    def reopen(self, tell: _Tell, *, is_damaged: bool) -> bool:
        """Open the database anew, of what can be read of it if it ``is_damaged``."""
        before = self.database
        self.database = self._folder.reopen(before, self._sync, tell, is_damaged=is_damaged)
        return True

    async def run(self, work: Callable[[], T]) -> T:
        """Return what ``work`` does on the thread: it may wait for the disk."""
        with self._clock.outside():
            return await self._thread.do(work)

    def end(self, *, is_idle: bool) -> None:
        """End the thread when it has done what it does; unless that may take long, give up the folder."""
        self._thread.stop()
        if is_idle:
            self._folder.close()


class MemoryMedium:
    """A disk in memory: what is done on it is done at once, also in virtual time."""

    gives_back = False

    def __init__(self, clock: Clock, disk: MemoryDisk, sync: Sync) -> None:
        self._clock, self._sync = clock, sync
        self._mounted = disk.mount()
        self.room: Room = MemoryRoom(disk)
        self.database: Database

    def open(self, tell: _Tell, say_alive: Callable[[], object]) -> None:
        """Open the database."""
        connection = self._mounted.connection
        self.database = Database(None, self._sync, self._clock.seconds, connection=connection)
        self._mounted.say_alive = say_alive

    def reopen(self, tell: _Tell, *, is_damaged: bool) -> bool:
        """Leave it as it is: there is nothing else to open."""
        return False

    async def run(self, work: Callable[[], T]) -> T:
        """Return what ``work`` does."""
        return await self._mounted.do(work)

    def end(self, *, is_idle: bool) -> None:
        """Do nothing more on it."""
        self._mounted.close()
