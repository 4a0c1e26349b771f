"""What a durable input is read from: a journal, with all that arrived and has not left the outputs.

Who takes what arrives has it stored here before anybody is told that it was taken. It is handed on as soon
as it is stored, as it was decoded; what was stored before this run, or comes faster than its pipeline
works, is read from the disk and decoded then.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.compiler.component.buildcontext import KeepBounds, KeptSource
from headrace.compiler.delivery import Acknowledgement, Batch
from headrace.compiler.edges import Arrival, QueueFill
from headrace.compiler.errors import HeadraceError
from headrace.compiler.formats import FormatMisfit, Intake, PayloadFormat
from headrace.compiler.jsontext import NotJson
from headrace.compiler.largejson import (
    LARGE,
    SLICE,
    TURN_SECONDS,
    DecodedBatch,
    WritingTurn,
    decode_large,
    takes_long,
)
from headrace.compiler.runtime.beingstored import STORED_SECONDS, BeingStored, CommitWaiters
from headrace.compiler.runtime.storage import BorrowedJournal, Storage
from headrace.compiler.runtime.storedarrival import (
    StoredOrigin,
    origin_of_entry,
    packed,
    payload_of,
)
from headrace.compiler.runtime.wayin import NoRoom, PostBody, TooLargeToKeep, at_once
from headrace.compiler.store.storedrows import ALONE_FROM, ROW_BYTES, SET_ASIDE_FROM
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull
from headrace.compiler.store.storeformat import WIDTH

if TYPE_CHECKING:
    from headrace.compiler.runtime.componentcontext import ComponentContext
    from headrace.compiler.store.group import Group
    from headrace.compiler.store.journal import StoredEntry

log = logging.getLogger("headrace.store")

STUCK_SECONDS = 1.0
"""How long nothing moves where there is no room until buffers hand on what they hold."""
AGAIN_SECONDS = 1.0
"""How often a store is tried that cannot be read."""
AT_ONCE = 16
"""Entries that are handed on at once."""
LEAST_BYTES = ROW_BYTES + WIDTH
"""What an entry takes on the disk beside itself, where it comes alone."""
KEPT_MESSAGES = 8
"""More messages of an arrival are decoded again when they are stored. Those of all that is committed
together would have left the caches of the processor: making and freeing them took a tenth longer than
decoding twice (a hundred messages a post, 64 posts a commit), and they would all be in memory."""
SMALL = 4 * 1024
"""Bytes of an entry that may be held on to until it has left the outputs."""
DECODED_AT_ONCE = 32 * 1024
"""Bytes that are decoded before others may have their turn."""
SLOW = 8
"""How many times as long a text takes that takes long (`largejson.takes_long`)."""


class JournalSource(KeptSource):
    """Reads a journal, and has what arrives put into it. Its arrivals are batches."""

    is_raw: ClassVar[bool] = False
    connects: ClassVar[bool] = True

    def __init__(
        self,
        storage: Storage,
        place: ComponentContext,
        target: str,
        bounds: KeepBounds,
        format: PayloadFormat | None,
    ) -> None:
        """Take where it is kept, and what makes messages of payloads; None: they are JSON."""
        self._storage, self._place, self._target = storage, place, target
        self._bounds, self._format, self._clock = bounds, format, place.clock
        self._most_bytes = math.inf if bounds.most_bytes is None else bounds.most_bytes
        self._journal: BorrowedJournal | None = None
        self._opened = asyncio.Event()
        self._why = ""
        """Why it could not be opened, if it was tried."""
        self._is_stopped = self._drains = False
        self._storing = self._storing_bytes = 0
        """Arrivals that are being stored, and bytes of them."""
        self._large = 0
        """Bytes of the large ones that are in memory."""
        self._freed = asyncio.Event()
        self._group: Group | None = None
        self._waiters = CommitWaiters(place.clock)
        """Those who wait for the group that is being gathered."""
        self._commits: deque[CommitWaiters] = deque()
        """Those who wait for the groups that are not committed, in order."""
        self._turn_ends = 0.0
        """When others are to run, at the latest, while there is more to read."""
        self._full_of = (-1, 0.0)
        """How many bytes there were when it was full, and since when."""
        storage.expect(self._name, self)
        place.on_finish(self._give_back)
        place.expect_losses("error")

    @property
    def is_stopped(self) -> bool:
        """Whether its pipeline ends, so that nothing more is taken."""
        return self._is_stopped

    def has_room_for(self, size: int) -> bool:
        """Return whether so many bytes may be stored beside those that are; alone any may."""
        held = self._storing_bytes
        return not held or held + size <= self._most_bytes

    def store(
        self, payload: PostBody, about: dict[str, Any], batch: Batch, size: int, *, is_json: bool
    ) -> Awaitable[int]:
        """Have an arrival stored; what is returned is awaited until it is.

        Raises:
            NoRoom: it was not taken, and may be sent again.
            TooLargeToKeep: it is larger than all that may be kept.
        """
        if self._is_stopped:
            raise self._not_taken("it is being stopped")
        if self._storing >= self._bounds.most_arrivals:
            raise self._not_taken("too many posts wait to be stored")
        if not self.has_room_for(size):
            raise self._not_taken("too many bytes wait to be stored")
        entry = packed(payload, about, self._clock.micros(), is_json=is_json)
        if len(entry) + LEAST_BYTES > self._bounds.max_bytes:
            raise TooLargeToKeep(
                f"the body takes {len(entry) + LEAST_BYTES:,} bytes, and at most"
                f" {self._bounds.max_bytes:,} may be kept (max_bytes of 'durable')"
            )
        if self._journal is not None:
            return self._append(self._journal, entry, batch, size)
        if self._why:
            raise self._not_taken(self._why)
        return self._stored_later(entry, batch, size)

    async def _stored_later(self, entry: bytes, batch: Batch, size: int) -> int:
        """Store it as soon as the journal is open: the run before may have it yet."""
        self._count(1, size)
        try:
            async with self._clock.timeout(STORED_SECONDS):
                await self._opened.wait()
        except TimeoutError:
            raise self._not_taken("what it kept is not taken over yet") from None
        finally:
            self._count(-1, -size)
        if self._journal is None or self._is_stopped:
            raise self._not_taken(self._why or "it is being stopped")
        return await self._append(self._journal, entry, batch, size)

    def _append(
        self, journal: BorrowedJournal, entry: bytes, batch: Batch, size: int
    ) -> BeingStored:
        if self._commits and self._commits[0].is_late:  # it would be stored, and sent again
            raise self._not_taken(f"the disk has not answered for {STORED_SECONDS:g} s")
        made = batch if len(batch) <= KEPT_MESSAGES else None
        if isinstance(made, DecodedBatch):
            if self._large and self._large + size > self._most_bytes:
                made = None  # it is decoded again when there is room for it
            else:
                self._count_large(made, size)
        try:
            group = journal.journal.append(entry, made)
        except StoreFailed as cause:
            journal.is_full = isinstance(cause, StoreFull)
            if journal.is_full:
                self._release_if_stuck(journal)
            raise self._not_taken(str(cause)) from cause
        journal.is_full = False
        if group is not self._group:
            self._group, self._waiters = group, CommitWaiters(self._clock)
            self._commits.append(self._waiters)
            group.tell.append(partial(self._ended, group, self._waiters))
        waiters = self._waiters
        waiters.arrivals += 1
        waiters.bytes += size
        self._storing += 1
        self._storing_bytes += size
        return BeingStored(len(batch), waiters)

    def _release_if_stuck(self, journal: BorrowedJournal) -> None:
        """Have buffers hand on what they hold where it is full of that: they may wait for ever."""
        used, now = journal.journal.fill().used, self._clock.monotonic()
        if used != self._full_of[0]:
            self._full_of = used, now
        elif now - self._full_of[1] >= STUCK_SECONDS and self._place.release():
            self._place.warn_once(
                "buffers hand on what they hold: they wait for more than may be kept"
                " (max_bytes of 'durable')"
            )

    def _ended(self, group: Group, waiters: CommitWaiters) -> None:
        """Tell those who wait that it is stored, or why it is not."""
        self._count(-waiters.arrivals, -waiters.bytes)
        self._commits.remove(waiters)
        cause = group.cause
        waiters.end(None if cause is None else self._not_taken(f"it could not be stored: {cause}"))
        if group is self._group:
            self._group = None

    def _not_taken(self, why: str) -> HeadraceError:
        return NoRoom(f"pipeline '{self._place.pipeline}': {why}, nothing was taken")

    def _count(self, arrivals: int, size: int) -> None:
        self._storing += arrivals
        self._storing_bytes += size

    def _count_large(self, batch: DecodedBatch, size: int) -> None:
        """Count a large batch until nothing is left of it."""
        self._large += size
        batch.there.debt = Acknowledgement(partial(self._free, size))

    def _free(self, size: int) -> None:
        self._large -= size
        self._freed.set()

    @property
    def _is_gone(self) -> bool:
        """Whether its pipeline ends for good, and no other one goes on with what is kept."""
        place = self._place
        return place.is_disposed or (
            place.is_deleted and not self._storage.is_expected(self._name, self)
        )

    @property
    def _name(self) -> tuple[str, str]:
        return self._place.pipeline, self._target

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Open the journal, then yield what is in it and what is put into it, in order."""
        if self._journal is None:
            self._journal = await self._borrowed()
            self._why = ""
            self._opened.set()
        journal = self._journal
        yield ()
        while entries := deque(await journal.journal.read(AT_ONCE)):
            while entries:
                await self._give_way()
                yield await self._next(entries)

    async def _give_way(self) -> None:
        """Let others run, where what was read and worked on since they could has taken its time.

        Nothing else does: of what is in memory there is always more, and to decode it takes as long as a
        pump takes for a read that has waited.
        """
        if self._clock.monotonic() >= self._turn_ends:
            await self._clock.sleep(0)
            self._turn_ends = self._clock.monotonic() + TURN_SECONDS

    async def _borrowed(self) -> BorrowedJournal:
        """Return the journal, as soon as the store can be read."""
        while True:
            try:
                return await self._storage.borrow(*self._name, self._bounds.max_bytes)
            except StoreFailed as cause:
                self._why = str(cause)
                self._opened.set()
                self._place.disconnected(self._why, AGAIN_SECONDS)
            await self._clock.sleep(AGAIN_SECONDS)

    async def _next(self, entries: deque[StoredEntry]) -> list[Arrival]:
        """Return what some entries are; what is large alone, of which nothing is held on to here."""
        arrivals: list[Arrival] = []
        decoded = 0
        while entries and decoded <= DECODED_AT_ONCE:
            if arrivals and len(entries[0].payload) >= LARGE:
                break
            entry = entries.popleft()
            if entry.deaths >= SET_ASIDE_FROM:
                self._set_aside(entry)
                continue
            if entry.deaths >= ALONE_FROM:  # a buffer may wait for others, which wait for this one
                self._clock.call_later(STUCK_SECONDS, self._place.release)
            batch: Batch | None = entry.made
            if batch is None:
                payload, is_json = payload_of(entry.payload)
                is_slow = takes_long(payload, self._place.decoding)
                decoded += len(payload) * (SLOW if is_slow else 1)
                batch = await self._decoded(payload, None if is_json else self._format)
            # Where it came from is looked at where there is an envelope: a small one is kept for that.
            origin = entry if len(entry.payload) <= SMALL else origin_of_entry(*entry[:2])
            arrivals.append((batch, origin))
            if isinstance(batch, DecodedBatch):
                break
        return arrivals

    async def _decoded(self, payload: bytes, format: PayloadFormat | None) -> Batch:
        """Return the messages of a payload; one that is none any more for this config is skipped."""
        size, decoding = len(payload), self._place.decoding
        if size >= LARGE:
            await self._room_for(size)
        try:
            if format is None:
                if size >= SLICE:
                    batch: Batch = await decode_large(payload, decoding)
                else:
                    decoded = at_once(payload, decoding)
                    batch = decoded if isinstance(decoded, list) else [decoded]
            else:
                into, turn = Intake(size), WritingTurn(self._clock)
                for _ in format.slices(payload, into, decoding):
                    await turn.end()
                batch = into.batch
        except NotJson as cause:
            kind, _, _ = str(cause).partition(" (byte ")
            self._place.leave_out(f"skipped a payload that is not JSON: {kind}", payload)
            return []
        except FormatMisfit as cause:
            self._place.leave_out(f"skipped what does not fit the format: {cause.kind}", payload)
            return []
        if isinstance(batch, DecodedBatch):
            self._count_large(batch, size)
        return batch

    async def _room_for(self, size: int) -> None:
        """Wait until a large payload may be in memory beside those that are."""
        while self._large and self._large + size > self._most_bytes:
            if self._is_stopped and not self._drains:
                return
            self._freed.clear()
            await self._freed.wait()

    def _set_aside(self, entry: StoredEntry) -> None:
        """Keep out of the way what has ended the process again and again."""
        why = f"set aside: the process ended {entry.deaths} times while it was under way"
        self._place.lose_count(why, 1, "invalid", "error")
        log.error("pipeline '%s' %s: %s", self._place.pipeline, self._place.place, why)
        if self._journal is not None:
            self._journal.journal.set_aside(entry.number)

    def queue(self) -> QueueFill | None:
        """Return how many bytes are kept."""
        return None if self._journal is None else self._journal.journal.fill()

    def describe(self, origin: StoredOrigin | StoredEntry) -> dict[str, Any]:
        """Return what was told of it when it arrived."""
        if not isinstance(origin, StoredOrigin):
            origin = origin_of_entry(origin.number, origin.payload)
        return origin.describe()

    def acknowledge(self, origins: Sequence[StoredOrigin | StoredEntry]) -> None:
        """Keep what has left the outputs no longer."""
        if self._journal is not None:
            self._journal.journal.let_go([origin.number for origin in origins])

    def stop(self) -> bool:
        """Take nothing more. Where its pipeline is gone for good, what is kept is read to its end."""
        place = self._place
        self._is_stopped = True
        self._drains = self._is_gone
        self._opened.set()
        self._freed.set()
        if self._journal is not None:
            # What is kept comes again: nothing waits until what is alone has left a buffer.
            self._journal.journal.stop(at_once=not self._drains)
            self._journal.ends = place.is_disposed
        return self._drains and self._journal is not None

    def close(self) -> Sequence[int]:
        """Take nothing more. Nothing is lost: what is kept comes again."""
        self._is_stopped = True
        self._opened.set()
        return ()

    async def _give_back(self) -> None:
        """Leave what is kept to the next run, unless its pipeline was deleted."""
        place, name = self._place, self._name
        self._storage.expect_no_more(name, self)
        journal, self._journal = self._journal, None
        if journal is None:
            return
        is_gone = self._is_gone
        entries, size = journal.journal.entries, journal.journal.fill().used
        await journal.give_back(ends=is_gone and (place.is_disposed or not entries))
        if is_gone and entries:
            place.warn(f"left over in the store: entries: {entries:,} ({size:,} bytes)")
        if not is_gone:  # it may have failed, and be deleted later
            place.on_finish(self._end_what_is_left)

    async def _end_what_is_left(self) -> None:
        """Leave what is kept to nobody, where somebody has deleted the pipeline since."""
        if self._place.is_disposed:
            await self._storage.end(self._name)
