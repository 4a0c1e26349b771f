"""A disk in memory: what stores in memory keep their database on, one store after the other.

It outlives them as a disk outlives a process. A process that is killed gets nothing onto it from then on,
and never hears what became of its last commit.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from headrace.compiler.store.room import Room
from headrace.compiler.store.storeerrors import StoreFull

T = TypeVar("T")


class IsKilledAt(Protocol):
    """Is asked twice of each commit that changes something; returns whether the process is killed there."""

    def __call__(self, *, is_committed: bool) -> bool:
        """Take whether it is made, and nobody has heard of it, or only about to be."""


class _KilledAtCommit(BaseException):
    """The process is killed in the middle of what it does: no part of it goes on."""


class MemoryDisk:
    """The disk. Whoever kills a process says so (`kill`), or has it killed at a commit (`is_killed_at`)."""

    def __init__(self) -> None:
        self.full = 0
        """For how many reasons it is: unless there is none, nothing new is taken."""
        self.is_killed_at: IsKilledAt | None = None
        self.on_kill: Callable[[], object] | None = None
        """Called as soon as the process is killed at a commit."""
        self._connection: sqlite3.Connection | None = None
        self._mounted: MountedDisk | None = None

    @property
    def is_used(self) -> bool:
        """Whether a store has ever been on it."""
        return self._connection is not None

    def mount(self) -> MountedDisk:
        """Return it as a new process has it."""
        if self._connection is None:
            self._connection = sqlite3.connect(
                ":memory:",
                timeout=0,
                isolation_level=None,
                check_same_thread=False,  # one after the other
                factory=_watched(self),
            )
        mounted = self._mounted = MountedDisk(self, self._connection)
        return mounted

    def kill(self) -> None:
        """Have the process that has it end here: what is not committed is not there."""
        mounted, self._mounted = self._mounted, None
        if mounted is not None:
            mounted.is_gone = True
            mounted.say_alive()

    def ask(self, *, is_committed: bool) -> None:
        """Have the process killed here, if it is to be.

        Raises:
            BaseException: it is.
        """
        if self.is_killed_at is not None and self.is_killed_at(is_committed=is_committed):
            raise _KilledAtCommit

    def killed_at_commit(self) -> None:
        """Take note that the process was killed in the middle of what it did."""
        self.kill()
        if self.on_kill is not None:
            self.on_kill()


class MemoryRoom(Room):
    """The room on a disk in memory."""

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk = disk

    def free_bytes(self) -> int:
        """Say that nobody knows.

        Raises:
            OSError: always.
        """
        raise OSError("a disk in memory has no room that could be told")

    def ask(self, size: int) -> None:
        """Ask for so many bytes.

        Raises:
            StoreFull: it is full.
        """
        if self._disk.full:
            raise StoreFull("the disk is full")

    def take_reserve(self) -> None:
        """Nothing is kept for the time when it is full."""

    def give_up_reserve(self) -> None:
        """There is none."""


class MountedDisk:
    """The disk as one process has it."""

    def __init__(self, disk: MemoryDisk, connection: sqlite3.Connection) -> None:
        self._disk, self.connection = disk, connection
        self.is_gone = False
        """Whether the process is killed."""
        self.say_alive: Callable[[], object] = _nothing
        """Has written, as the process is killed, that it was alive until then."""
        self._is_closed = False

    async def do(self, work: Callable[[], T]) -> T:
        """Return what ``work`` does, at once. Whoever asks is cancelled where the process is killed.

        Raises:
            sqlite3.ProgrammingError: it is closed.
        """
        if self._is_closed:
            raise sqlite3.ProgrammingError("the database is closed")
        if not self.is_gone:
            try:
                return work()
            except _KilledAtCommit:
                self._disk.killed_at_commit()
        raise asyncio.CancelledError

    def close(self) -> None:
        """Do nothing more on it."""
        self._is_closed = True


def _watched(disk: MemoryDisk) -> type[sqlite3.Connection]:
    """Return the kind of connection that asks at each commit that changes something."""

    class WatchedConnection(sqlite3.Connection):
        _changes = 0

        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql.startswith("BEGIN"):
                self._changes = self.total_changes
            if sql != "COMMIT" or self.total_changes == self._changes:
                return super().execute(sql, *parameters)
            disk.ask(is_committed=False)
            done = super().execute(sql)
            disk.ask(is_committed=True)
            return done

    return WatchedConnection


def _nothing() -> None:
    """Nothing is under way that could have ended the process."""
