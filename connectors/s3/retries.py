"""Parts that are tried again, beside the uploads of the others: each when its own pause is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.errors import Unreachable
from headrace.compiler.runtime.backoff import Backoff
from headrace.connectors.s3.objectpart import ObjectPart
from headrace.connectors.s3.refusedparts import RefusedParts
from headrace.connectors.s3.storeoutage import StoreOutage

AT_ONCE = 4
"""Parts that are uploaded at a time, as long as nothing goes wrong. Beside them as many are tried again: a
store may take its time to refuse one."""
MOST_BYTES = 64 * 1024 * 1024
"""How much is read from the disk to be tried again, unless a single part has more."""
PAUSE_SECONDS = 0.25
"""Between a few parts that are refused again: however many there are, the store is not kept busy."""


@dataclass(order=True)
class Retry:
    """A part, and when it is tried next."""

    due: float
    number: int
    part: ObjectPart = field(compare=False)
    is_refused: bool = field(compare=False)
    backoff: Backoff = field(compare=False, default_factory=Backoff)


class RetryQueue:
    """Sends parts, a few at a time; one that is not taken waits on a backoff of its own."""

    def __init__(
        self,
        send: Callable[[ObjectPart], Awaitable[None]],
        outage: StoreOutage,
        refused: RefusedParts,
        ctx: Context,
    ) -> None:
        """Take what sends a part, and what is told that the store takes nothing, or not a part."""
        self._send, self._outage, self._refused, self._ctx = send, outage, refused, ctx
        self._waiting: list[Retry] = []
        self._trying: dict[asyncio.Task[None], int] = {}
        self._numbers = count()
        self._pauses = Backoff()
        self._resumes = 0.0
        self._is_out = self._is_ending = False
        self._called = asyncio.Event()
        self._work: asyncio.Task[None] | None = None

    def works(self) -> list[asyncio.Task[None]]:
        """Return what sends, as long as there is something to send."""
        return [*self._trying, *([] if self._work is None else [self._work])]

    def add(self, part: ObjectPart) -> None:
        """Have a part sent."""
        self._push(Retry(self._ctx.clock.monotonic(), next(self._numbers), part, False))

    async def refused(self, part: ObjectPart, cause: Exception) -> None:
        """Have a part sent again that was refused just now, after a while, unless it is given up."""
        await self._is_refused(Retry(0.0, next(self._numbers), part, True), cause)

    async def _is_refused(self, retry: Retry, cause: Exception) -> None:
        retry.is_refused = True
        pause = await self._refused.pause(retry.part, cause, retry.backoff.next)
        if pause is not None:
            self._postpone(retry, pause)

    def end(self) -> None:
        """Try everything once more, now; what is refused then is not tried again."""
        self._is_ending = True
        self._pauses.reset()
        self._resumes = 0.0
        self._called.set()

    def _postpone(self, retry: Retry, seconds: float) -> None:
        retry.due = self._ctx.clock.monotonic() + seconds
        if not (self._is_ending and retry.is_refused):
            self._push(retry)

    def _push(self, retry: Retry) -> None:
        heappush(self._waiting, retry)
        self._called.set()
        if self._work is None:
            self._work = asyncio.ensure_future(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._waiting or self._trying:
                if (seconds := self._seconds()) is None or seconds > 0:
                    self._called.clear()
                    await within(self._ctx.clock, seconds, self._called.wait())
                else:
                    retry = heappop(self._waiting)
                    task = asyncio.ensure_future(self._try(retry))
                    self._trying[task] = retry.part.length
                    task.add_done_callback(self._tried)
        finally:
            self._work = None

    def _seconds(self) -> float | None:
        """Return how long it is until the next try; None as long as those that go on are enough."""
        if not self._waiting or len(self._trying) >= (1 if self._is_out else AT_ONCE):
            return None
        retry = self._waiting[0]
        if self._trying and sum(self._trying.values()) + retry.part.length > MOST_BYTES:
            return None
        due = self._resumes if self._is_ending else max(self._resumes, retry.due)
        return due - self._ctx.clock.monotonic()

    def _tried(self, task: asyncio.Task[None]) -> None:
        del self._trying[task]
        self._called.set()

    async def _try(self, retry: Retry) -> None:
        if retry.part.is_over:  # it was given up meanwhile
            return
        if self._is_out or retry.is_refused:
            self._outage.tries_again()
        try:
            await self._send(retry.part)
        except Unreachable as cause:
            await self._takes_nothing(retry, cause)
        except Exception as cause:
            if retry.is_refused and not self._is_ending:  # nothing else is tried for a while
                resumes = self._ctx.clock.monotonic() + PAUSE_SECONDS
                self._resumes = max(self._resumes, resumes)
            await self._is_refused(retry, cause)
        else:
            was_refused = "a part that was set aside is uploaded now"
            if self._is_out:
                self._outage.over(was_refused if retry.is_refused else "written to again")
            elif retry.is_refused:
                self._ctx.note(was_refused)
            self._is_out = False
            self._pauses.reset()

    async def _takes_nothing(self, retry: Retry, cause: Unreachable) -> None:
        """Try nothing for a while; a part for which that has lasted too long is given up."""
        now = self._ctx.clock.monotonic()
        left = self._resumes - now
        self._is_out = True
        pause = self._outage.pause(cause, self._pauses.next if left <= 0 else lambda: left)
        if pause is None:
            await self._refused.give_up(retry.part, str(cause), cause.failure)
            return
        self._resumes = max(self._resumes, now + pause)
        self._postpone(retry, retry.backoff.next())


async def within(clock: Clock, seconds: float | None, waiting: Awaitable[object]) -> None:
    """Wait, but no longer than so long."""
    with suppress(TimeoutError):
        async with clock.timeout(seconds):
            await waiting
