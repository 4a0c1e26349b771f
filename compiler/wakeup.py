"""Waiting for somebody else's word, one at a time: a reader for what is put, a pump for room."""

from __future__ import annotations

import asyncio


class WakeUp:
    """One waits, whoever has something for it wakes it. What is said while nobody waits is not kept."""

    __slots__ = ("waiter",)

    def __init__(self) -> None:
        self.waiter: asyncio.Future[None] | None = None
        """Whoever waits, until it is woken."""

    def wake(self) -> None:
        """Have the one who waits go on; nothing where nobody does."""
        if self.waiter is not None:
            if not self.waiter.done():  # it may have been cancelled
                self.waiter.set_result(None)
            self.waiter = None

    async def wait(self) -> None:
        """Wait until somebody wakes."""
        self.waiter = asyncio.get_running_loop().create_future()
        await self.waiter
