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

TellStored = Callable[[int, HeadraceError | None], None]
"""Is told that something is stored, of how many messages, or why it is not."""


class CommitWaiters:
    """Those who wait for one commit."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.waiting: list[tuple[TellStored, int]] = []
        """Those who are told, and of how many messages. Added to while `is_awaited`, else by `add`."""
        self.is_awaited = False
        self._timer: asyncio.TimerHandle | None = None
        self.is_late = False
        """Whether those who waited were told that it takes too long."""
        self._has_ended = False
        self._cause: HeadraceError | None = None
        self.arrivals = self.bytes = 0
        """How many arrivals are committed with it, and how many bytes they count as."""

    def add(self, tell: TellStored, count: int) -> None:
        """Have somebody told of so many messages when it has ended, or takes too long; at once, if so."""
        if self._has_ended:
            tell(count, self._cause)
            return
        if self._timer is None:
            self._timer = self._clock.call_later(STORED_SECONDS, self._late)
            self.is_awaited = True
        self.waiting.append((tell, count))

    def end(self, cause: HeadraceError | None) -> None:
        """Tell all of them that it is committed, or why it is not."""
        self._has_ended, self._cause = True, cause
        self.is_awaited = False
        if self._timer is not None:
            self._timer.cancel()
        waiting, self.waiting = self.waiting, []
        for tell, count in waiting:
            tell(count, cause)

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
        waiters = self._waiters
        if waiters.is_awaited:
            waiters.waiting.append((tell, self.count))
        else:
            waiters.add(tell, self.count)

    def __await__(self) -> Generator[Any, None, int]:
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def tell(_: int, cause: HeadraceError | None) -> None:
            if outcome.done():  # who waited has left
                return
            if cause is None:
                outcome.set_result(None)
            else:
                outcome.set_exception(cause)

        self.then(tell)
        yield from outcome
        return self.count
