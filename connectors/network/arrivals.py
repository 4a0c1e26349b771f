"""What a client has pushed and nobody has read yet, and the sources that read such."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from headrace.compiler.edges import QueueFill, Source

T = TypeVar("T")


class Arrivals(Generic[T]):
    """A bounded list between a client's callback and `Source.read`.

    ``most`` is how many may wait; what to do when they are that many is for whoever puts them in.
    """

    __slots__ = ("_arrived", "_cause", "_items", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: list[T] = []
        self._arrived = asyncio.Event()
        self._cause: Exception | None = None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, arrival: T) -> bool:
        """Add one; False when there is no room and it was not taken."""
        if len(self._items) >= self._most:
            return False
        self._items.append(arrival)
        self.wake()
        return True

    def put_newest(self, arrivals: Sequence[T]) -> int:
        """Add some, for which the oldest make room; return how many of those are lost.

        None is added when it is broken off: it would be of a connection that is over.
        """
        if self._cause is not None:
            return 0
        self._items += arrivals
        excess = max(len(self._items) - self._most, 0)
        del self._items[:excess]
        self.wake()
        return excess

    def break_off(self, cause: Exception) -> None:
        """Have `take` raise, when all that is here has been taken; the first cause counts."""
        self._cause = self._cause or cause
        self.wake()

    def fill(self) -> QueueFill:
        """Return how many messages are here."""
        return QueueFill("messages", len(self._items), self._most)

    def wake(self) -> None:
        """Have a waiting `take` return, with nothing if there is nothing."""
        self._arrived.set()

    async def take(self, most: int | None = None) -> list[T]:
        """Return everything that is here, or so many of it, as soon as something is."""
        if not self._items and self._cause is None:
            self._arrived.clear()
            await self._arrived.wait()
        taken = self._items[:most]
        del self._items[:most]
        if not taken and self._cause is not None:
            raise self._cause
        return taken


class PushedSource(Source):
    """Reads what a client pushes and its server does not send again: a stop has it read out."""

    connects: ClassVar[bool] = True

    def __init__(self, max_batch: int) -> None:
        self.max_batch = max(max_batch, 1)
        self._is_stopping = False
        self._arrivals: Arrivals[Any] | None = None
        """What has arrived over the connection that there is."""

    def queue(self) -> QueueFill | None:
        """Return how full it is, while it is connected."""
        return None if self._arrivals is None else self._arrivals.fill()

    def stop(self) -> bool:
        """Take no more; what has arrived is read out, because it does not come again."""
        self._is_stopping = True
        if self._arrivals is None:
            return False
        self._arrivals.wake()
        return True

    def close(self) -> list[int]:
        """Return what has arrived and nobody will read, in batches."""
        waiting = 0 if self._arrivals is None else len(self._arrivals)
        full, rest = divmod(waiting, self.max_batch)
        return [self.max_batch] * full + [rest] * (rest > 0)
