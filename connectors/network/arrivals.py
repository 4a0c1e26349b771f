"""What a client has pushed and nobody has read yet."""

from __future__ import annotations

import asyncio

from headrace.compiler.edges import Arrival


class Arrivals:
    """A bounded list between a client's callback and `Source.read`.

    ``most`` is how many may wait; what to do when they are that many is for whoever puts them in.
    """

    __slots__ = ("_arrived", "_cause", "_items", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: list[Arrival] = []
        self._arrived = asyncio.Event()
        self._cause: Exception | None = None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, arrival: Arrival) -> bool:
        """Add one; False when there is no room and it was not taken."""
        if len(self._items) >= self._most:
            return False
        self._items.append(arrival)
        self.wake()
        return True

    def break_off(self, cause: Exception) -> None:
        """Have `take` raise, when all that is here has been taken."""
        self._cause = cause
        self.wake()

    def wake(self) -> None:
        """Have a waiting `take` return, with nothing if there is nothing."""
        self._arrived.set()

    async def take(self) -> list[Arrival]:
        """Return everything that is here, as soon as something is."""
        if not self._items and self._cause is None:
            self._arrived.clear()
            await self._arrived.wait()
        taken, self._items = self._items, []
        if not taken and self._cause is not None:
            raise self._cause
        return taken
