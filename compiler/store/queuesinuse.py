"""Which queues of a store somebody has, and which number comes next in each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.compiler.store.database import Database
from headrace.compiler.store.storedrows import NewRow, StoredQueue


@dataclass(slots=True)
class _InUse:
    key: tuple[int, str, str, str]
    next: int
    users: int


class QueuesInUse:
    """The queues that somebody has."""

    def __init__(self) -> None:
        self._in_use: dict[int, _InUse] = {}

    def __contains__(self, queue: int) -> bool:
        """Return whether somebody has a queue."""
        return queue in self._in_use

    def use(self, found: StoredQueue) -> StoredQueue:
        """Have one more user of a queue that was read; return it with the number that comes next."""
        used = self._in_use.setdefault(found.id, _InUse(found[:4], found.next, 0))
        used.users += 1
        used.next = max(used.next, found.next)
        id, pipeline, target, kind = found[:4]
        return StoredQueue(id, pipeline, target, kind, used.next, *found[5:])

    def leave(self, queue: int) -> None:
        """Have one user of a queue less."""
        used = self._in_use[queue]
        used.users -= 1
        if not used.users:
            del self._in_use[queue]

    def committed(self, rows: Iterable[NewRow]) -> None:
        """Take note that rows are there."""
        for row in rows:
            if used := self._in_use.get(row.queue):
                used.next = row.first + len(row.payloads)

    def restore(self, database: Database) -> None:
        """Have them in a database that was made anew."""
        database.restore((*used.key, used.next) for used in self._in_use.values())
