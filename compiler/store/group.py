"""What is committed as a whole, and whoever waits for that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headrace.compiler.store.storedrows import NewRow
from headrace.compiler.store.storeerrors import StoreFailed

MOST_ENTRIES = 4_096
MOST_BYTES = 2**20
"""Of one group: entries, and bytes of them."""


class Group:
    """What comes together until it is committed."""

    def __init__(self) -> None:
        self.rows: list[NewRow] = []
        self.open: dict[int, NewRow] = {}
        """The row that a queue goes on with, by its id."""
        self.tell: list[Callable[[], None]] = []
        """Called in order when it is committed, or is not: see `cause`."""
        self.entries = self.bytes = 0
        self.is_full = False
        """Whether nothing more goes into it."""
        self.cause: StoreFailed | None = None
        self._ended = asyncio.Event()

    async def stored(self) -> None:
        """Wait until it is committed.

        Raises:
            StoreFailed: it is not, and will not be.
        """
        await self._ended.wait()
        if self.cause is not None:
            raise self.cause

    async def ended(self) -> None:
        """Wait until it is committed, or is not."""
        await self._ended.wait()

    def add(self, size: int) -> None:
        """Count an entry of so many bytes."""
        self.entries += 1
        self.bytes += size
        self.is_full = self.entries >= MOST_ENTRIES or self.bytes >= MOST_BYTES

    def end(self, cause: StoreFailed | None = None) -> None:
        """Tell all who wait."""
        self.cause = cause
        for tell in self.tell:
            tell()
        self._ended.set()
