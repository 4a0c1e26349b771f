"""A shelf on the disk: entries are read by their numbers, in any order and as often as wanted.

It is a queue of the store as a `Journal` is, each entry a row of its own. Nothing is handed out, so nothing
of it is suspected where the process ends without a word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Self

from headrace.compiler.edges import QueueFill
from headrace.compiler.store.group import Group
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storedrows import ROW_BYTES, NewRow, StoredQueue
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull
from headrace.compiler.store.storeformat import WIDTH


class ShelvedEntry(NamedTuple):
    """What is told of an entry without reading all of it."""

    number: int
    beginning: bytes
    """Its first bytes."""
    size: int
    """How many bytes it has."""


class _ShelfRow(NamedTuple):
    """The row of an entry."""

    n: int
    size: int
    """What it takes on the disk, roughly."""
    at: float


class Shelf:
    """One queue of a store. Made by `Shelf.open`; what is there is known once it is `listed`."""

    def __init__(self, store: Store, queue: StoredQueue, max_bytes: int) -> None:
        self._store, self._queue, self.max_bytes = store, queue.id, max_bytes
        self.bytes = queue.bytes + ROW_BYTES * queue.rows
        """What it takes on the disk, roughly."""
        self.entries = queue.entries
        """How many entries are not let go of."""
        self._next = queue.next
        self._oldest = queue.oldest
        self._rows: dict[int, _ShelfRow] = {}
        """By number: what is known to be there."""
        self._storing = 0
        self._is_closed = False
        self._stored = asyncio.Event()

    @classmethod
    async def open(
        cls, store: Store, pipeline: str, target: str, kind: str, max_bytes: int
    ) -> Self:
        """Return the shelf of a pipeline and target, with what is on it."""
        return cls(store, await store.queues.open(pipeline, target, kind), max_bytes)

    def fill(self) -> QueueFill:
        """Return how full it is."""
        return QueueFill("bytes", self.bytes, self.max_bytes)

    def oldest(self) -> float | None:
        """Return when the first was put down that is there; None: there is none. Seconds since 1970."""
        if not self.entries:
            return None
        return min((row.at for row in self._rows.values()), default=self._oldest)

    def has_room_for(self, size: int) -> bool:
        """Return whether so many bytes more may be kept."""
        return self.bytes + size + WIDTH + ROW_BYTES <= self.max_bytes

    async def listed(self, most: int) -> list[ShelvedEntry]:
        """Return what is there, in the order in which it was put down, each with its first bytes.

        Raises:
            StoreFailed: it cannot be read.
        """
        found: list[ShelvedEntry] = []
        for n, number, at, size, beginning in await self._store.rows.beginnings(self._queue, most):
            if number not in self._rows:
                self._rows[number] = _ShelfRow(n, size + WIDTH + ROW_BYTES, at)
                found.append(ShelvedEntry(number, beginning, size))
        return found

    async def read(self, number: int) -> bytes | None:
        """Return an entry; None: it is damaged, and no longer there.

        Raises:
            StoreFailed: the store is closed.
        """
        page = await self._store.rows.page(self._queue, number - 1, number + 1, 1)
        for row in page.rows:
            return row.payloads[0]
        self._forget(number)
        return None

    def put(self, entry: bytes, tell: Callable[[int, StoreFailed | None], None]) -> None:
        """Put an entry down; ``tell`` is called with its number when it is stored, or why it is not.

        Raises:
            StoreFull: there is no room, here or on the disk.
            StoreFailed: the disk takes nothing now.
        """
        if self._is_closed:
            raise StoreFailed("the queue is closed")
        if not self.has_room_for(len(entry)):
            raise StoreFull(f"{self.bytes:,} of {self.max_bytes:,} bytes are in use (max_bytes)")
        number = self._next
        group, row = self._store.rows.append(self._queue, number, entry, is_taken=False)
        group.open.pop(self._queue, None)  # the next one has a row of its own as well
        self._next += 1
        size = len(entry) + WIDTH + ROW_BYTES
        self.bytes += size
        self.entries += 1
        self._storing += 1
        group.tell.append(lambda: self._ended(group, row, size, tell))

    def _ended(
        self,
        group: Group,
        row: NewRow,
        size: int,
        tell: Callable[[int, StoreFailed | None], None],
    ) -> None:
        self._storing -= 1
        self._stored.set()
        if group.cause is None:
            self._rows[row.first] = _ShelfRow(row.n, size, row.at)
        else:
            self.bytes -= size
            self.entries -= 1
        tell(row.first, group.cause)

    def let_go(self, number: int) -> None:
        """Keep an entry no longer; not after it was closed: it comes again then."""
        if not self._is_closed and (row := self._forget(number)) is not None:
            self._store.rows.let_go(row.n, self._queue, self._next)

    def _forget(self, number: int) -> _ShelfRow | None:
        row = self._rows.pop(number, None)
        if row is not None:
            self.bytes -= row.size
            self.entries -= 1
        return row

    def stop(self) -> None:
        """Nothing is handed out that would have to be stopped."""

    async def close(self) -> None:
        """Leave it to others."""
        await self._leave(lambda: None)

    async def end(self) -> None:
        """Leave it to nobody: who opens its like gets a new one. What was not let go of stays."""
        await self._leave(lambda: self._store.queues.end(self._queue))

    async def _leave(self, say: Callable[[], None]) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            async with self._store.leaving():
                try:
                    while self._storing:
                        self._stored.clear()
                        await self._stored.wait()
                finally:
                    say()
                await self._store.written()
        finally:
            self._store.queues.leave(self._queue)
