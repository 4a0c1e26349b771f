"""Work on bodies in threads: one body after the other, and only so many wait.

A body that is made for it takes seconds to read. Two at a time would take twice as long each, and the
event loop would have a third of the interpreter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from headrace.compiler.errors import HeadraceError

P = ParamSpec("P")
T = TypeVar("T")

MOST_WAITING = 100
"""How many wait: what was sent is kept meanwhile, and who comes later gets no answer in time."""
MOST_LOGINS = 1000
"""How many logins wait: their bodies are small, and a thousand of them take a second."""


class TooManyBodies(HeadraceError):
    """So many bodies wait already that one more would not be read in time."""

    def __init__(self, waiting: int) -> None:
        super().__init__(f"{waiting} bodies wait to be read already: try again later")


class ThreadQueue:
    """Does work in a thread, one piece after the other, in the order in which they come.

    ``most_waiting`` may wait for their turn.
    """

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._most_waiting = most_waiting
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def take(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what ``work`` returns when it is its turn.

        Who is cancelled waits no longer, and is forgotten; work that has begun is done to its end
        before it is anybody else's turn.

        Raises:
            TooManyBodies: so many wait already.
        """
        if self._waiting >= self._most_waiting:
            raise TooManyBodies(self._waiting)
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        working = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
        working.add_done_callback(self._next)
        return await asyncio.shield(working)

    def _next(self, done: asyncio.Task[T]) -> None:
        self._turn.release()
        if not done.cancelled():
            done.exception()  # somebody has it, or nobody waits for it any more
