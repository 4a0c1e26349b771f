"""What is being stored, and whoever waits to be told that it is.

All that is committed together is told of together, and has one timer: nothing is made for each of them but
what it waits with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.errors import HeadraceError
from headrace.compiler.runtime.wayin import NoRoom

STORED_SECONDS = 5.0
"""How long a commit may take until whoever waits for it is told that it does. It may come all the same."""

TellStored = Callable[[HeadraceError | None], None]
"""Is told that something is stored, or why it is not."""


class CommitWaiters:
    """Those who wait for one commit."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[TellStored] = []
        self._timer: asyncio.TimerHandle | None = None
        self.is_late = False
        """Whether those who waited were told that it takes too long."""
        self._has_ended = False
        self._cause: HeadraceError | None = None
        self.arrivals = self.bytes = 0
        """How many arrivals are committed with it, and how many bytes they count as."""

    def add(self, tell: TellStored) -> None:
        """Have somebody told when it has ended, or takes too long; at once, if that is known."""
        if self._has_ended:
            tell(self._cause)
            return
        if self._timer is None:
            self._timer = self._clock.call_later(STORED_SECONDS, self._late)
        self._waiting.append(tell)

    def end(self, cause: HeadraceError | None) -> None:
        """Tell all of them that it is committed, or why it is not."""
        self._has_ended, self._cause = True, cause
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._waiting = self._waiting, []
        for tell in waiting:
            tell(cause)

    def _late(self) -> None:
        self.is_late = True
        self.end(NoRoom(f"it was not stored within {STORED_SECONDS:g} s, and may be yet"))


class BeingStored:
    """One arrival that is being stored; awaited, it returns how many messages it has.

    Raises what it was not stored for.
    """

    __slots__ = ("_waiters", "count")

    def __init__(self, count: int, waiters: CommitWaiters) -> None:
        self.count, self._waiters = count, waiters

    def then(self, tell: TellStored) -> None:
        """Have somebody told, once."""
        self._waiters.add(tell)

    def __await__(self) -> Generator[Any, None, int]:
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def tell(cause: HeadraceError | None) -> None:
            if outcome.done():  # who waited has left
                return
            if cause is None:
                outcome.set_result(None)
            else:
                outcome.set_exception(cause)

        self.then(tell)
        yield from outcome
        return self.count
