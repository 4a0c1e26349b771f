"""What is committed as a whole, and whoever waits for that."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from headrace.compiler.store.letterrows import DroppedLetters, LetterRest, NewLetter
from headrace.compiler.store.storedrows import EndedRow, NewRow
from headrace.compiler.store.storeerrors import StoreFailed

log = logging.getLogger("headrace.store")

MOST_ENTRIES = 4_096
MOST_BYTES = 2**20
"""Of one group: entries, and bytes of them."""


class LetsGo(Protocol):
    """A queue that lets go of entries when something else is committed."""

    def rows_without(self, numbers: Iterable[int]) -> Iterator[EndedRow]:
        """Yield the rows of which nothing is left but these entries."""

    def let_go(self, numbers: Iterable[int]) -> None:
        """Forget entries."""


class Group:
    """What comes together until it is committed."""

    def __init__(self) -> None:
        self.rows: list[NewRow] = []
        self.letters: list[NewLetter] = []
        self.rests: list[LetterRest] = []
        self.dropped: list[DroppedLetters] = []
        """What went to make room for letters, once it is committed; whoever tells it takes it out."""
        self.letters_along: list[int] = []
        """The letters that go with it, and only if it is committed."""
        self._along: dict[LetsGo, list[int]] = {}
        self.open: dict[int, NewRow] = {}
        """The row that a queue goes on with, by its id."""
        self.tell: list[Callable[[], None]] = []
        """Called in order when it is committed, or is not: see `cause`."""
        self.entries = self.bytes = 0
        self.is_full = False
        """Whether nothing more goes into it: it has much, or is being committed, or has ended."""
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

    def add(self, size: int, entries: int = 1) -> None:
        """Count so many bytes, of one entry or more."""
        self.entries += entries
        self.bytes += size
        if self.entries >= MOST_ENTRIES or self.bytes >= MOST_BYTES:
            self.is_full = True

    def let_go(self, queue: LetsGo, numbers: Iterable[int]) -> None:
        """Have entries of a queue go in the same commit, and only if it is committed."""
        if queue not in self._along:
            going = self._along[queue] = []
            self.tell.append(lambda: self._has_gone(queue, going))
        self._along[queue] += numbers

    def _has_gone(self, queue: LetsGo, numbers: list[int]) -> None:
        if self.cause is None:
            queue.let_go(numbers)

    def rows_along(self) -> Iterator[EndedRow]:
        """Yield the rows that go with it."""
        for queue, numbers in self._along.items():
            yield from queue.rows_without(numbers)

    def end(self, cause: StoreFailed | None = None) -> None:
        """Tell all who wait."""
        self.is_full = True
        self.cause = cause
        # Whoever is told knows this group: with all that is in it, it would be left to the collector.
        telling, self.tell, self.rows = self.tell, [], []
        for tell in telling:
            try:
                tell()
            except Exception:  # a reader's fault must not become that of others
                log.exception("what waited for the disk broke")
        self._ended.set()
