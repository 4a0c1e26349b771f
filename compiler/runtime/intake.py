"""Intake: what the source of a durable input reads is stored, and only then acknowledged.

In order: what came later is not stored before what came earlier is, unless the disk fails; then what came
with it, or after it, may be stored twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from headrace.compiler.delivery import Delivery
from headrace.compiler.edges import Arrival, Source
from headrace.compiler.largejson import TURN_SECONDS
from headrace.compiler.runtime.beingstored import BeingStored
from headrace.compiler.runtime.componentcontext import ComponentContext
from headrace.compiler.runtime.journalsource import JournalSource
from headrace.compiler.runtime.keptqueue import AGAIN_SECONDS
from headrace.compiler.runtime.monitoring.losses import LostMessages
from headrace.compiler.runtime.wayin import NoRoom, TooLargeToKeep

ROOM_SECONDS = 0.05
"""How often it is tried to store something where there is no room: what has left makes some."""
STILL_SECONDS = 0.5
"""How long nothing leaves a deleted pipeline until it makes no room any more."""


class StoringIntake:
    """Stores what a source reads, delivery after delivery; each is a batch of arrivals."""

    def __init__(
        self,
        source: Source,
        kept: JournalSource,
        place: ComponentContext,
        *,
        tells: bool,
        is_sent_again: bool,
    ) -> None:
        """Take what reads and what keeps.

        ``tells``: somebody wants to know where something came from. ``is_sent_again``: what is not
        acknowledged comes again, so that it is not lost.
        """
        self._source, self._kept, self._place = source, kept, place
        self._clock, self._tells = place.clock, tells
        self._is_sent_again = is_sent_again
        self._waiting: deque[Delivery] = deque()
        self._left: Sequence[Arrival] = ()
        """Arrivals of the delivery that is being stored which are not stored yet."""
        self._hurries = asyncio.Event()
        self._full_of = (-1, 0.0)
        """How many bytes there were as there was no room at the end, and since when."""
        self._is_over = False
        self._happened = asyncio.Event()
        self.why: str | None = None
        """Why nothing can be stored now."""

    def take(self, delivery: Delivery) -> None:
        """Have arrivals stored behind those that are."""
        self._waiting.append(delivery)
        self._happened.set()

    def hurry(self) -> None:
        """Try no longer to store what cannot be, unless what leaves its deleted pipeline makes room."""
        self._hurries.set()

    def end(self) -> None:
        """Have `run` return when all is stored that can be: nothing more is taken."""
        self._is_over = True
        self._hurries.set()
        self._happened.set()

    async def run(self) -> None:
        """Store what is taken until the end."""
        while self._waiting or not self._is_over:
            if self._waiting:
                delivery = self._waiting.popleft()
                await self._stored(delivery.batch)
                delivery.done()
            else:
                self._happened.clear()
                await self._happened.wait()

    def close(self) -> None:
        """Count what is not stored as lost, when nobody stores any more, unless it comes again."""
        left, self._left = [*self._left], ()
        for each in self._waiting:
            left += each.batch
        self._waiting.clear()
        self._lose(left)

    async def _stored(self, arrivals: Sequence[Arrival]) -> None:
        """Store some arrivals and acknowledge them; at the end, no more than there is room for."""
        self._left = arrivals
        while self._left:
            stored = await self._store(self._left)
            if stored:
                self._source.acknowledge([origin for _, origin in self._left[:stored]])
                self._left = self._left[stored:]
            if self._left and self._hurries.is_set() and not self._makes_room():
                left, self._left = self._left, ()
                self._lose(left)
            elif self._left:
                await self._pause(ROOM_SECONDS if self._kept.is_full else AGAIN_SECONDS)
        self.why = None

    def _makes_room(self) -> bool:
        """Return whether what leaves the pipeline, which is deleted, may make room for more."""
        fill = self._kept.queue()
        if not (self._place.is_deleted and self._kept.is_full and fill is not None):
            return False
        now = self._clock.monotonic()
        if self._place.release() or fill.used != self._full_of[0]:
            self._full_of = fill.used, now
        return now - self._full_of[1] < STILL_SECONDS

    async def _pause(self, seconds: float) -> None:
        """Wait until something is tried again; no longer than until the end."""
        if self._hurries.is_set():
            await self._clock.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with self._clock.timeout(seconds):
                await self._hurries.wait()

    async def _store(self, arrivals: Sequence[Arrival]) -> int:
        """Have arrivals stored together; return how many of the first are."""
        being_stored: list[BeingStored | None] = []
        turn_ends = self._clock.monotonic() + TURN_SECONDS
        try:
            for arrival in arrivals:
                being_stored.append(self._put(arrival))
                if self._clock.monotonic() > turn_ends:
                    await self._clock.sleep(0)
                    turn_ends = self._clock.monotonic() + TURN_SECONDS
        except NoRoom as cause:
            self.why = str(cause)
        for stored, each in enumerate(being_stored):
            try:
                if each is not None:
                    await each
            except NoRoom as cause:
                self.why = str(cause)
                return stored
        return len(being_stored)

    def _put(self, arrival: Arrival) -> BeingStored | None:
        """Begin to store an arrival; None: it is left out, as it could never be kept."""
        payload, origin = arrival
        try:
            return self._kept.put(payload, self._source.describe(origin) if self._tells else {})
        except TooLargeToKeep as cause:
            why = f"skipped a payload that is too large: {cause}"
            about = partial(self._source.describe, origin)
            if isinstance(payload, list):
                for each in payload:
                    self._place.leave_out(why, LostMessages([each], "error"), about)
            else:
                self._place.leave_out(why, payload, about)
            return None

    def _lose(self, arrivals: Sequence[Arrival]) -> None:
        """Count arrivals that are not stored, unless they come again."""
        if arrivals and not self._is_sent_again:
            self._place.report_unread(messages_in(arrivals))


def messages_in(arrivals: Sequence[Arrival]) -> int:
    """Return how many messages arrived; a payload that is not decoded counts as one."""
    return sum(len(each) if isinstance(each, list) else 1 for each, _ in arrivals)
