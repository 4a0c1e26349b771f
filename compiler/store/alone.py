"""What may end the process is handed out alone, of all queues of a store, or of many some of one queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from headrace.compiler.clock import Clock

ALONE_SECONDS = 5.0
"""How long what may end the process in one queue waits for that of another, counted from when the last of
that was handed out; and for how long some that go together may be handed out, counted from the first."""


class Alone:
    """The rows that are under way and may end the process, of one queue."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queues: dict[int, int] = {}
        self._began = self._last = 0.0
        """When the first of them was handed out, and when the last was. Units: seconds of the clock."""
        self._ended = asyncio.Event()
        """Set when there is one no more."""

    async def begin(self, rows: Iterable[int], queue: int) -> None:
        """Have rows of a queue be it. Those that are it are waited for, but not for long."""
        while self._queues:
            left = self._last + ALONE_SECONDS - self._clock.monotonic()
            if left <= 1e-6:
                self._queues.clear()  # what has not ended it by now will hardly do so
                break
            self._ended.clear()
            with suppress(TimeoutError):
                async with self._clock.timeout(left):
                    await self._ended.wait()
        self._queues.update(dict.fromkeys(rows, queue))
        self._began = self._last = self._clock.monotonic()

    def goes_on(self, row: int) -> bool:
        """Return whether a row may be handed out now that began with others: they are still the ones.

        Not after `ALONE_SECONDS`: those of other queues have waited, and may be the ones by now.
        """
        now = self._clock.monotonic()
        if row not in self._queues or now >= self._began + ALONE_SECONDS:
            return False
        self._last = now
        return True

    def end(self, row: int) -> None:
        """Have others be handed out that may end the process, where this is the last that may."""
        if self._queues.pop(row, None) is not None and not self._queues:
            self._ended.set()

    def leave(self, queue: int) -> None:
        """Have no row of a queue be it."""
        for row in [row for row, of in self._queues.items() if of == queue]:
            self.end(row)
