"""What may end the process is handed out alone, of all queues of a store, or of many some of one queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from headrace.compiler.clock import Clock

ALONE_SECONDS = 5.0
"""How long what may end the process in one queue waits for that of another."""


class Alone:
    """The rows that are under way and may end the process, mostly of one queue."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queues: dict[int, int] = {}
        self._ended = asyncio.Event()
        """Set when there is one no more."""

    async def begin(self, rows: Iterable[int], queue: int) -> None:
        """Have rows of a queue be it. Those that are it are waited for, but not for long."""
        try:
            async with self._clock.timeout(ALONE_SECONDS):
                while self._queues:
                    self._ended.clear()
                    await self._ended.wait()
        except TimeoutError:
            self._queues.clear()  # what has not ended it by now will hardly do so
        self._queues.update(dict.fromkeys(rows, queue))

    def end(self, row: int) -> None:
        """Have others be handed out that may end the process, where this is the last that may."""
        if self._queues.pop(row, None) is not None and not self._queues:
            self._ended.set()

    def leave(self, queue: int) -> None:
        """Have no row of a queue be it."""
        for row in [row for row, of in self._queues.items() if of == queue]:
            self.end(row)
