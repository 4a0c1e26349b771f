"""Batches in the queue of an output that keeps parts now: they are handed to it, and new ones never come.

Outputs that gather had such a queue before they kept what they have gathered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headrace.compiler.delivery import Acknowledgement, Batch, Delivery
from headrace.compiler.runtime.borrowed import EVERY_BYTE
from headrace.compiler.runtime.keptqueue import AGAIN_SECONDS, KeptQueue
from headrace.compiler.runtime.queuedbatch import batch_of_entry, count_of_entry
from headrace.compiler.runtime.settingaside import set_aside
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.store.storedrows import SET_ASIDE_FROM
from headrace.compiler.store.storeerrors import StoreFailed

if TYPE_CHECKING:
    from headrace.compiler.runtime.componentcontext import ComponentContext
    from headrace.compiler.store.journal import Journal, StoredEntry

READ_AT_ONCE = 16
"""Batches that are in memory and not in a part yet."""


class EarlierBatches:
    """Hands on what is there, in order, beside what comes; each is let go of when its part is."""

    def __init__(self, storage: Storage, place: ComponentContext) -> None:
        """Take where they are."""
        self._storage, self._place = storage, place
        self._kept = KeptQueue(storage, place, place.kept_as, "queue", EVERY_BYTE)
        self._handing: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._is_read = False
        self.in_hand: Batch | None = None
        """The batch that was handed on and is in no part yet: it is in the queue still."""

    def begin(self, take: Callable[[Delivery], None]) -> None:
        """Begin to hand them on, if there are any."""
        if self._handing is None:
            self._handing = asyncio.ensure_future(self._hand_on(take))

    async def stop(self) -> None:
        """Hand on no more: what is left comes again, at the next start."""
        if self._handing is not None:
            self._handing.cancel()
            await asyncio.wait([self._handing])

    async def _hand_on(self, take: Callable[[Delivery], None]) -> None:
        if not await self._are_there():
            return
        journal = (await self._kept.open(self._cannot)).journal
        self._place.note(f"batches of an earlier version are handed on now: {journal.entries:,}")
        journal.stop()
        while entries := await journal.read(READ_AT_ONCE):
            for entry in entries:
                await self._hand(entry, journal, take)
        self._is_read = True
        self._look(journal)

    async def _are_there(self) -> bool:
        while True:
            try:
                return await self._storage.has_entries(self._kept.name)
            except StoreFailed as cause:
                self._cannot(str(cause))
                await self._place.clock.sleep(AGAIN_SECONDS)

    def _cannot(self, why: str) -> None:
        self._place.warn_once(f"the queue of an earlier version cannot be read yet: {why}")

    async def _hand(
        self, entry: StoredEntry, journal: Journal, take: Callable[[Delivery], None]
    ) -> None:
        """Hand one on, and wait until it is in a part: that has not ended the process then."""
        if entry.deaths >= SET_ASIDE_FROM:
            set_aside(self._place, entry, journal, count_of_entry(entry.payload))
            return
        batch = await batch_of_entry(entry.payload, self._place.decoding)
        self.in_hand, taken = batch, asyncio.Event()
        custody = Acknowledgement(partial(self._let_go, entry.number, journal))
        take(Delivery(batch, Acknowledgement(taken.set), custody))
        await taken.wait()
        self.in_hand = None
        journal.have_survived([entry.number])

    def _let_go(self, number: int, journal: Journal) -> None:
        journal.let_go_of(number)
        self._look(journal)

    def _look(self, journal: Journal) -> None:
        """Have no queue any more when nothing is in it."""
        if self._is_read and not journal.entries and self._ending is None:
            self._ending = asyncio.ensure_future(self._kept.end())
