"""Answers that are the same for everybody who asks at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedWork(Generic[T]):
    """Works an answer out once for all who ask meanwhile, one after the other and never two at a time.

    Who asks while one is worked out gets the next: it is about what there was after the question. So two
    are under way at most, however many ask. It goes on when those who asked have left.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[T] | None = None

    async def ask(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return what ``work`` gives, the one of whoever asked first, or raise what it does."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._work(work))
            self._next.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._next)

    async def _work(self, work: Callable[[], Awaitable[T]]) -> T:
        async with self._turn:
            self._next = None
            return await work()
