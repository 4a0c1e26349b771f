"""One letter that is being replayed: what of it is on its way, and what has failed again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch
from headrace.compiler.runtime.letterreplay.reentry import FailedAgain
from headrace.compiler.runtime.queuedbatch import entry_of_batch, entry_of_large
from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.letterrows import Letter, LetterTry
from headrace.compiler.store.storeerrors import StoreFailed


class LetterInHand:
    """Is gone when all of it has left; else what has failed again stays, with one more try.

    ``ended`` is told whether all of it is gone. What it was ``edited`` to is gone as a whole or not at all.
    """

    def __init__(
        self,
        id: int,
        letter: Letter,
        records: Records,
        clock: Clock,
        ended: Callable[[LetterInHand, bool], None],
        *,
        is_edited: bool,
    ) -> None:
        self._id, self._letter, self._records, self._clock = id, letter, records, clock
        self._ended, self._is_edited = ended, is_edited
        self._under_way = self._messages = 0
        self._is_sent = False
        self._again: Batch = []
        self._failed: FailedAgain | None = None
        self._settling: asyncio.Task[None] | None = None

    def sending(self) -> None:
        """Take note that some of it is about to be sent: `through` is called once for that."""
        self._under_way += 1

    def through(self) -> None:
        """Take note that what was sent has left, or failed."""
        self._under_way -= 1
        self._look()

    def failed_again(self, failed: FailedAgain, batch: Batch) -> None:
        """Take note of messages that failed again; none: all of an arrival."""
        self._failed = failed
        self._again += batch

    def sent(self, messages: int) -> None:
        """Take note that all of it was sent, so many messages."""
        self._is_sent, self._messages = True, messages
        self._look()

    def _look(self) -> None:
        if self._is_sent and not self._under_way and self._settling is None:
            self._settling = asyncio.ensure_future(self._settle())

    async def _settle(self) -> None:
        """Have the letter go, or be what is left of it."""
        failed = self._failed
        if failed is None:
            self._records.let_go([self._id])
        else:
            with suppress(StoreFailed):
                await self._keep(failed)
        self._ended(self, failed is None)

    async def _keep(self, failed: FailedAgain) -> None:
        """Write that it was tried once more, and what of it is done."""
        now = self._clock.micros() / 1e6
        maybe_written = self._letter.maybe_written or failed.failure == "unclear"
        tries = self._letter.tries + 1
        if self._is_edited or not 0 < len(self._again) < self._messages:
            await self._records.update(self._id, tries, now, maybe_written=maybe_written)
            return
        tried = LetterTry(tries, now, maybe_written)
        body = entry_of_batch(self._again) or await entry_of_large(self._again, self._clock)
        await self._records.keep_rest(self._id, tried, len(self._again), body).ended()
