"""The gate before the graph: single changes pass, and wait while all of it changes at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class ChangeLock:
    """Open, unless somebody has it closed. One at a time does; the next one waits."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._open = asyncio.Event()
        self._open.set()
        self._leaving = 0
        self._left = asyncio.Event()

    async def passed(self) -> None:
        """Wait until it is open. What comes next without waiting is done before it closes."""
        while not self._open.is_set():
            await self._open.wait()

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Have nobody close the gate before this is over: something is still ending."""
        self._leaving += 1
        try:
            yield
        finally:
            self._leaving -= 1
            self._left.set()

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Have nobody pass; begins when nothing is ending any more."""
        async with self._turn:
            self._open.clear()
            try:
                while self._leaving:
                    self._left.clear()
                    await self._left.wait()
                yield
            finally:
                self._open.set()
