"""What a durable input is read from: a journal, with all that arrived and has not left the outputs.

Who takes what arrives has it stored here before anybody is told that it was taken. It is handed on as soon
as it is stored; what was stored before this run, or comes faster than its pipeline works, is read from the
disk. What is handed on differs: payloads as they came (`StoredPayloads`), or batches (`StoredBatches`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.compiler.edges import Arrival, QueueFill, Source
from headrace.compiler.errors import HeadraceError
from headrace.compiler.largejson import TURN_SECONDS
from headrace.compiler.runtime.beingstored import STORED_SECONDS, BeingStored, CommitWaiters
from headrace.compiler.runtime.borrowed import BorrowedJournal
from headrace.compiler.runtime.keptqueue import KeptQueue
from headrace.compiler.runtime.settingaside import set_aside
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.runtime.storedarrival import StoredOrigin, origin_of_entry
from headrace.compiler.runtime.wayin import NoRoom, TooLargeToKeep
from headrace.compiler.store.storedrows import ALONE_FROM, ROW_BYTES, SET_ASIDE_FROM
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull
from headrace.compiler.store.storeformat import WIDTH

if TYPE_CHECKING:
    from headrace.compiler.runtime.componentcontext import ComponentContext
    from headrace.compiler.store.group import Group
    from headrace.compiler.store.journal import StoredEntry

STUCK_SECONDS = 1.0
"""How long nothing moves where there is no room until buffers hand on what they hold."""
AT_ONCE = 64
"""Entries that are handed on at once, of an input that makes no larger batches."""
LEAST_BYTES = ROW_BYTES + WIDTH
"""What an entry takes on the disk beside itself, where it comes alone."""
SMALL = 4 * 1024
"""Bytes of an entry that may be held on to until it has left the outputs."""


class JournalSource(Source):
    """Reads a journal, and has what arrives put into it."""

    connects: ClassVar[bool] = True

    def __init__(
        self, storage: Storage, place: ComponentContext, target: str, max_bytes: int
    ) -> None:
        """Take where it is kept, and how much of it may be."""
        self._place, self._clock, self._max_bytes = place, place.clock, max_bytes
        self._largest = max_bytes - LEAST_BYTES
        """Bytes of an entry that can be kept at all."""
        self._kept = KeptQueue(storage, place, target, "journal", max_bytes)
        self._is_stopped = self._drains = False
        self._storing = self._storing_bytes = 0
        """Arrivals that are being stored, and bytes of them."""
        self._group: Group | None = None
        self._waiters = CommitWaiters(place.clock)
        """Those who wait for the group that is being gathered."""
        self._commits: deque[CommitWaiters] = deque()
        """Those who wait for the groups that are not committed, in order."""
        self._turn_ends = 0.0
        """When others are to run, at the latest, while there is more to read."""
        self._full_of = (-1, 0.0)
        """How many bytes there were when it was full, and since when."""
        place.expect_losses("error")

    @property
    def is_stopped(self) -> bool:
        """Whether its pipeline ends, so that nothing more is taken."""
        return self._is_stopped

    @property
    def is_full(self) -> bool:
        """Whether what came last was turned down for want of room."""
        borrowed = self._kept.borrowed
        return borrowed is not None and borrowed.is_full

    def _too_large(self, entry: bytes) -> TooLargeToKeep:
        return TooLargeToKeep(
            f"the body takes {len(entry) + LEAST_BYTES:,} bytes, and at most"
            f" {self._max_bytes:,} may be kept (max_bytes of 'durable')"
        )

    @abstractmethod
    def put(self, payload: Any, about: dict[str, Any]) -> BeingStored:
        """Have an arrival stored, with its metadata; what is returned tells when it is.

        Raises:
            NoRoom: it was not taken.
            TooLargeToKeep: it is larger than all that may be kept.
        """

    def _put(self, entry: bytes, made: Any, count: int) -> BeingStored:
        if len(entry) > self._largest:
            raise self._too_large(entry)
        if self._kept.borrowed is None:
            raise self._not_taken(self._kept.why or "what it kept is not taken over yet")
        return self._append(self._kept.borrowed, entry, made, count, len(entry))

    def _append(
        self, journal: BorrowedJournal, entry: bytes, made: Any, count: int, size: int
    ) -> BeingStored:
        """Have an entry stored of so many messages, which counts as ``size`` bytes until it is.

        ``made``: what comes back with it where it need not be read from the disk.

        Raises:
            NoRoom: it was not taken, and may be sent again.
        """
        if self._is_stopped:
            raise self._not_taken("it is being stopped")
        if self._commits and self._commits[0].is_late:  # it would be stored, and sent again
            raise self._not_taken(f"the disk has not answered for {STORED_SECONDS:g} s")
        try:
            group = journal.journal.append(entry, made)
        except StoreFailed as cause:
            journal.turned_down = len(entry) if isinstance(cause, StoreFull) else None
            if journal.is_full:
                self._release_if_stuck(journal)
            raise self._not_taken(str(cause)) from cause
        journal.turned_down = None
        waiters = self._waiters
        if group is not self._group:
            self._group = group
            waiters = self._waiters = CommitWaiters(self._clock)
            self._commits.append(waiters)
            group.tell.append(partial(self._ended, group, waiters))
        waiters.arrivals += 1
        waiters.bytes += size
        self._storing += 1
        self._storing_bytes += size
        return BeingStored(count, waiters)

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

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Open the journal, then yield what is in it and what is put into it, in order."""
        journal = await self._kept.open()
        yield ()
        at_once = max(AT_ONCE, self.max_batch)
        while entries := deque(await journal.journal.read(at_once)):
            while entries:
                await self._give_way()
                yield await self._next(entries)

    @abstractmethod
    async def _next(self, entries: deque[StoredEntry]) -> list[Arrival]:
        """Take some entries, one at least, and return what they are."""

    @abstractmethod
    async def _count_of(self, entry: StoredEntry) -> int:
        """Return how many messages are in an entry that has ended the process; 1: that cannot be told.

        None of them is made more of than that takes: it may have been what ended it.
        """

    async def _take(self, entries: deque[StoredEntry]) -> StoredEntry | None:
        """Take an entry; None: it has ended the process again and again, and is out of the way now."""
        entry = entries.popleft()
        if entry.deaths >= SET_ASIDE_FROM:
            await self._set_aside(entry)
            return None
        if entry.deaths >= ALONE_FROM:  # a buffer may wait for others, which wait for this one
            self._clock.call_later(STUCK_SECONDS, self._place.release)
        return entry

    async def _give_way(self) -> None:
        """Let others run, where what was read and worked on since they could has taken its time.

        Nothing else does: of what is in memory there is always more, and to decode it takes as long as a
        pump takes for a read that has waited.
        """
        if self._clock.monotonic() >= self._turn_ends:
            await self._clock.sleep(0)
            self._turn_ends = self._clock.monotonic() + TURN_SECONDS

    async def _set_aside(self, entry: StoredEntry) -> None:
        """Keep out of the way, as a dead letter if there are any, what has ended the process repeatedly."""
        messages = await self._count_of(entry)
        borrowed = self._kept.borrowed
        journal = None if borrowed is None else borrowed.journal
        set_aside(self._place, entry, journal, messages)

    def queue(self) -> QueueFill | None:
        """Return how many bytes are kept."""
        borrowed = self._kept.borrowed
        return None if borrowed is None else borrowed.journal.fill()

    @staticmethod
    def _origin(entry: StoredEntry) -> StoredOrigin | StoredEntry:
        """Return what is held on to of an entry until it has left the outputs.

        Where it came from is looked at where there is an envelope: a small one is kept for that.
        """
        return entry if len(entry.payload) <= SMALL else origin_of_entry(*entry[:2])

    def describe(self, origin: StoredOrigin | StoredEntry) -> dict[str, Any]:
        """Return what was told of it when it arrived."""
        if not isinstance(origin, StoredOrigin):
            origin = origin_of_entry(origin.number, origin.payload)
        return origin.describe()

    def acknowledge(self, origins: Sequence[StoredOrigin | StoredEntry]) -> None:
        """Keep what has left the outputs no longer."""
        borrowed = self._kept.borrowed
        if borrowed is None:
            return
        if len(origins) == 1:
            borrowed.journal.let_go_of(origins[0][0])
        else:
            borrowed.journal.let_go([origin[0] for origin in origins])

    def comes_again(self) -> bool:
        """Return True: it is kept."""
        return True

    def stop(self) -> bool:
        """Take nothing more. Where its pipeline is gone for good, what is kept is read to its end."""
        borrowed = self._kept.borrowed
        self._is_stopped = True
        self._drains = self._kept.is_gone
        self._kept.opened.set()
        if borrowed is not None:
            # What is kept comes again: nothing waits until what is alone has left a buffer.
            borrowed.journal.stop(at_once=not self._drains)
            borrowed.ends = self._place.is_disposed
        return self._drains and borrowed is not None

    def close(self) -> Sequence[int]:
        """Take nothing more. Nothing is lost: what is kept comes again."""
        self._is_stopped = True
        self._kept.opened.set()
        return ()
