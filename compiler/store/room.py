"""Room on the disk: what has to stay free, and a reserve for the time when nothing is.

A full disk lets SQLite neither delete nor empty its log. So a file as large as its log may grow is kept,
and given up then: what is not needed any more can go, and makes room.
"""

from __future__ import annotations

import os
from pathlib import Path

from headrace.compiler.store.database import LOG_PAGES, PAGE_BYTES
from headrace.compiler.store.errors import StoreFull

RESERVE_BYTES = LOG_PAGES * PAGE_BYTES + 4 * 2**20
KEEP_FREE_BYTES = 256 * 2**20


class Room:
    """The room for the database of one folder."""

    def __init__(
        self, folder: Path, keep_free_bytes: int, reserve_bytes: int = RESERVE_BYTES
    ) -> None:
        self._folder, self._keep_free = folder, keep_free_bytes
        self._reserve, self._reserve_bytes = folder / "reserve", reserve_bytes
        self._is_given_up = True

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
        """
        free = self.free_bytes()
        if free - size < self._keep_free:
            raise StoreFull(
                f"the disk has {free:,} bytes free, and {self._keep_free:,} are kept free"
                " (keep_free_bytes)"
            )

    def take_reserve(self) -> None:
        """Take the reserve, where that leaves as much free as has to be."""
        if not self._is_given_up or self.free_bytes() - self._reserve_bytes < self._keep_free:
            return
        descriptor = os.open(self._reserve, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self._reserve_bytes)
        except OSError:
            os.unlink(self._reserve)
        else:
            self._is_given_up = False
        finally:
            os.close(descriptor)

    def give_up_reserve(self) -> None:
        """Give the reserve up: nothing can be written otherwise."""
        self._is_given_up = True
        self._reserve.unlink(missing_ok=True)
