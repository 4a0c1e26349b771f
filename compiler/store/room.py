"""Room on the disk: what has to stay free, and a reserve for the time when nothing is.

A full disk lets SQLite neither delete nor empty its log. So a file as large as its log may grow is kept,
and given up then: what is not needed any more can go, and makes room. Nothing new is taken until the
reserve is there again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from headrace.compiler.store.database import LOG_PAGES, PAGE_BYTES
from headrace.compiler.store.disk import is_full, refuse_link
from headrace.compiler.store.storeerrors import StoreFull

T = TypeVar("T")

RESERVE_BYTES = LOG_PAGES * PAGE_BYTES + 4 * 2**20
KEEP_FREE_BYTES = 256 * 2**20
_OPEN_RESERVE = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class Room:
    """The room for the database of one folder."""

    def __init__(
        self, folder: Path, keep_free_bytes: int, reserve_bytes: int = RESERVE_BYTES
    ) -> None:
        self._folder, self._keep_free = folder, keep_free_bytes
        self._reserve, self._reserve_bytes = folder / "reserve", reserve_bytes
        self.has_reserve = False

    def free_bytes(self) -> int:
        """Return how many bytes are free for us.

        Raises:
            OSError: the folder is gone.
        """
        found = os.statvfs(self._folder)
        return found.f_bavail * found.f_frsize

    def ask(self, size: int) -> None:
        """Ask for so many bytes.

        Raises:
            StoreFull: less would be free than has to be.
            OSError: the folder is gone.
        """
        free = self.free_bytes()
        kept = self._keep_free + (0 if self.has_reserve else self._reserve_bytes)
        if free - size < kept:
            reserve = "" if self.has_reserve else ", and the reserve"
            raise StoreFull(
                f"the disk has {free:,} bytes free, and {kept:,} are kept free (keep_free_bytes{reserve})"
            )

    def take_reserve(self) -> None:
        """Take the reserve, where that leaves as much free as has to be.

        Raises:
            OSError: the folder is gone, or the reserve is a link.
        """
        refuse_link(self._reserve)
        here = self._reserve.stat().st_blocks * 512 if self._reserve.exists() else 0
        self.has_reserve = here >= self._reserve_bytes
        if self.has_reserve or self.free_bytes() + here - self._reserve_bytes < self._keep_free:
            return
        descriptor = os.open(self._reserve, _OPEN_RESERVE, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self._reserve_bytes)
        except OSError:
            self.give_up_reserve()
        else:
            self.has_reserve = True
        finally:
            os.close(descriptor)

    def give_up_reserve(self) -> None:
        """Give the reserve up: nothing can be written otherwise."""
        self.has_reserve = False
        with suppress(OSError):
            self._reserve.unlink()


def on_the_reserve(room: Room | None, work: Callable[[], T]) -> T:
    """Do what makes room, or needs little, also on a full disk: the reserve is given up for it."""
    try:
        return work()
    except Exception as cause:
        if room is None or not is_full(cause):
            raise
        room.give_up_reserve()
        return work()
