"""The durable buckets of an engine: filled with what is in the store, which gets what changes in them.

A bucket is in memory, as any other, and the store follows. What the disk does not take now is written as
soon as it does; whoever has to wait for that waits (`DurableBucket.when_stored`), and nobody else.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from headrace.compiler.buckets import Buckets
from headrace.compiler.clock import Clock
from headrace.compiler.delivery import parts
from headrace.compiler.durablebucket import BucketFill, DurableBucket, KeptEntry, KeyChange
from headrace.compiler.runtime.bucketloading import (
    FIRST_KEYS,
    MOST_KEYS,
    LoadedKeys,
    in_order,
    pieces,
    read,
)
from headrace.compiler.store.storedrows import BUCKET
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull

if TYPE_CHECKING:
    import sqlite3

    from headrace.compiler.store.bucketrows import BucketChanges
    from headrace.compiler.store.openstore import Store
    from headrace.compiler.store.storedrows import StoredQueue

log = logging.getLogger("headrace.state")

AGAIN_SECONDS = 1.0
"""How often a store is tried that cannot be read, or has no room for a bucket that is new."""
TOLD_SECONDS = 5.0
"""How long is waited for a bucket until that is told."""


class KeptBucket:
    """A durable bucket with its place in the store."""

    def __init__(
        self, store: Store, bucket: DurableBucket, clock: Clock, warn: Callable[[str], None]
    ) -> None:
        self.bucket, self._warn = bucket, warn
        self.id: int | None = None
        """Its number among what is stored; None: the disk has had no room for that yet."""
        self._store, self._clock = store, clock
        self._taken: list[KeyChange] = []
        self._opening: asyncio.Task[None] | None = None
        self._is_given_up = False

    async def open(self) -> None:
        """Fill the bucket with what is in the store, as soon as that can be read, or it is given up."""
        telling = self._clock.call_later(TOLD_SECONDS, self._tell_waiting)
        try:
            while not self._is_given_up and not await self._opened():
                await self._clock.sleep(AGAIN_SECONDS)
        finally:
            telling.cancel()

    def _tell_waiting(self) -> None:
        """Say what a start, or a revert, waits for."""
        store, name = self._store, self.bucket.name
        fails = store.condition.state == "failing"
        why = f"the store fails ({store.condition.why})" if fails else "it is still being read"
        self._warn(f"bucket '{name}' is waited for, and what is started with it as well: {why}")

    async def _opened(self) -> bool:
        try:
            queue = await self._store.queues.open("", self.bucket.name, BUCKET)
        except StoreFull:  # so it has none, and begins empty
            if self._opening is None:
                self._opening = asyncio.ensure_future(self._open_later())
            return self._opening is not asyncio.current_task()
        except StoreFailed:
            return False
        self.id = queue.id
        while True:
            try:
                number = await self._load(queue.id)
                break
            except StoreFailed:
                if self._is_given_up:
                    return False
                await self._clock.sleep(AGAIN_SECONDS)
        self._store.buckets.join(self)
        self.bucket.keep(number, partial(self._store.bucket_changed, self))
        return True

    async def _open_later(self) -> None:
        while True:
            await self._clock.sleep(AGAIN_SECONDS)
            if await self._opened():
                return

    async def _load(self, id: int) -> int:
        """Take in what is in the store; return the number of its last change."""
        from headrace.compiler.store import buckettables

        loaded: list[LoadedKeys] = []
        after: bytes | None = None
        seen, most = 0, FIRST_KEYS
        began = self._clock.micros_of(0.0)
        while True:
            work = partial(read, bucket=id, after=after, most=most, began=began)
            page = await self._store.read(work)
            loaded.append(page.loaded)
            seen += len(page.loaded.keys) + len(page.damaged)
            if page.damaged:
                await self._set_aside(id, page.damaged)
                seen -= len(page.damaged)
            if page.is_last:
                break
            after, most = page.last, page.next_most
        if await self._store.read(partial(buckettables.count, bucket=id)) != seen:
            await self._store.read(_unreachable)  # it is made anew of what can be read
            return await self._load(id)
        await self._restore(loaded)
        return max((max(some.numbers, default=0) for some in loaded), default=0)

    async def _set_aside(self, id: int, keys: Sequence[bytes]) -> None:
        from headrace.compiler.store import buckettables

        self._store.condition.has_damaged(
            len(keys),
            f"{len(keys):,} keys of bucket '{self.bucket.name}' are damaged: they are set aside",
        )
        work = partial(buckettables.set_aside, bucket=id, keys=keys, now=self._clock.seconds())
        with suppress(StoreFailed):  # else it is found again at the next start
            await self._store.write(work)

    async def _restore(self, loaded: Sequence[LoadedKeys]) -> None:
        """Fill the bucket in the order in which it was written, with the newest that it may hold."""
        bucket, clock = self.bucket, self._clock
        most, count = bucket.bounds.max_keys, sum(len(some.keys) for some in loaded)
        over = max(0, count - most)
        expired = crowded = 0
        latest = -float("inf")
        gone: list[str] = []
        with clock.outside():
            ordered = await asyncio.to_thread(lambda: [*in_order(loaded)])
        now, cutoff = clock.monotonic(), bucket.cutoff()
        for keys, entries in chain.from_iterable(map(pieces, ordered)):
            ats = _in_time(entries, latest, now)
            latest = ats[-1]
            old = bisect(ats, cutoff)
            expired += old
            first = old + min(len(ats) - old, max(0, over - expired - crowded))
            crowded += first - old
            gone += keys[:first]
            bucket.restore(dict(zip(keys[first:], entries[first:], strict=True)))
            await clock.sleep(0)
        for some in parts(gone, MOST_KEYS):
            bucket.forget(some)
            await clock.sleep(0)
        if crowded:
            self._warn(
                f"bucket '{bucket.name}' has {count - expired:,} keys in the store and may hold"
                f" {most:,}: {crowded:,} that were written longest ago are gone"
            )

    def gather(self, most: int) -> BucketChanges:
        """Return what has changed, so many keys at most."""
        from headrace.compiler.store.bucketrows import BucketChanges

        assert self.id is not None
        taken = self.bucket.take(most)
        self._taken += taken
        return BucketChanges(self.id, taken, taken.bytes)

    def ended(self, cause: StoreFailed | None) -> None:
        """Hear that what was gathered is on the disk, or why it is not."""
        taken, self._taken = self._taken, []
        if cause is None:
            self.bucket.stored(taken)
        else:
            self.bucket.put_back(taken)

    def begin_anew(self) -> None:
        """Have all of it be written again."""
        self.bucket.change_all()

    def give_up(self) -> None:
        """Open it no more, if it is not."""
        self._is_given_up = True
        if self._opening is not None:
            self._opening.cancel()

    async def close(self, *, ends: bool) -> None:
        """Leave what is in it to the next that is declared under its name; if it ``ends``, to nobody."""
        self.give_up()
        if self.id is None:
            return
        done = asyncio.Event()
        self.bucket.when_stored(done.set)
        async with self._store.leaving():
            await done.wait()
        self._store.buckets.leave(self)
        self._store.queues.leave(self.id)
        if ends:
            self._store.queues.end(self.id)
            async with self._store.leaving():
                await self._store.written()


class KeptBuckets:
    """The durable buckets that are open."""

    def __init__(self, clock: Clock, warn: Callable[[str], None] = log.warning) -> None:
        """Take who is told what was not taken in."""
        self._clock, self._warn = clock, warn
        self._kept: dict[DurableBucket, KeptBucket] = {}
        self._counted: dict[int, BucketFill] = {}
        """How much was in each bucket that nobody had, when that was counted, by its id."""
        self._counted_at = 0, 0
        """What had failed, or was damaged, by then."""

    async def become(self, store: Store, buckets: Buckets) -> None:
        """Have exactly the durable ones of some buckets be open.

        One that is gone leaves what it has in the store, to be taken up when it is declared again. One
        that is declared in another way begins empty, and what the one before had is left over for good.
        """
        wanted = [each for each in buckets if isinstance(each, DurableBucket)]
        gone = [(each, self._kept.pop(each)) for each in [*self._kept] if each not in wanted]
        await asyncio.gather(
            *(
                kept.close(ends=isinstance(buckets.get(bucket.name), DurableBucket))
                for bucket, kept in gone
            )
        )
        for _, kept in gone:
            if kept.id is not None:
                self.count_again(kept.id)
        for bucket in wanted:
            if bucket not in self._kept:
                kept = self._kept[bucket] = KeptBucket(store, bucket, self._clock, self._warn)
                try:
                    await kept.open()
                except BaseException:
                    self._kept.pop(bucket, None)  # not there if the store is closed meanwhile
                    raise

    def close(self) -> None:
        """Have nothing more be opened: the store is about to be closed, with what has changed."""
        for each in self._kept.values():
            each.give_up()
        self._kept.clear()

    async def left_in(self, store: Store, listed: Sequence[StoredQueue]) -> dict[int, BucketFill]:
        """Return how much is in each bucket that nobody has, by its id.

        All of it is read for that, once: nobody writes it, until a database is made anew.

        Raises:
            StoreFailed: it cannot be read.
        """
        from headrace.compiler.store import buckettables

        troubles = store.condition.failures, store.condition.damaged
        before = self._counted if troubles == self._counted_at else {}
        self._counted, self._counted_at = {}, troubles
        for each in listed:
            if each.kind == BUCKET and self.of(each.id) is None:
                if (kept := before.get(each.id)) is None:
                    kept = await store.read(partial(buckettables.fill, bucket=each.id))
                self._counted[each.id] = kept
        return self._counted.copy()

    def count_again(self, id: int) -> None:
        """Have a bucket be counted anew that nobody has: it is not what it was."""
        self._counted.pop(id, None)

    def of(self, id: int) -> DurableBucket | None:
        """Return the bucket that has a place in the store; None: nobody has it."""
        return next((each.bucket for each in self._kept.values() if each.id == id), None)


class StoredFirst:
    """What one pipeline may say only when what it remembered before is on the disk."""

    def __init__(self, bucket: DurableBucket, *, is_waited_for: bool) -> None:
        """Take whether an input is told only then: else the end of the run does not wait for the disk."""
        self._bucket, self._is_waited_for = bucket, is_waited_for
        self._is_over = False

    def when_stored(self, action: Callable[[], None]) -> None:
        """Do something when all that was remembered until now is on the disk, if the run is not over."""
        if self._bucket.is_stored:
            action()
        else:
            self._bucket.when_stored(partial(self._do, action))

    def _do(self, action: Callable[[], None]) -> None:
        if not self._is_over:
            action()

    async def drained(self) -> None:
        """Wait until all is on the disk that was remembered until now, and what waited for it is done."""
        if not self._is_waited_for:
            return
        stored = asyncio.Event()
        self._bucket.when_stored(stored.set)
        await stored.wait()

    def abandon(self) -> None:
        """Say nothing any more: the time is over, and what is not on the disk comes again if it can."""
        self._is_over = True


def _in_time(entries: Sequence[KeptEntry], latest: float, now: float) -> list[float]:
    """Return when entries were written, in that order.

    No write is later than now, nor earlier than one before it, whatever the wall clock said.
    """
    ats = [entry.at for entry in entries]
    if ats[0] < latest or ats[-1] > now or sorted(ats) != ats:
        for place, entry in enumerate(entries):
            entry.at = ats[place] = latest = max(latest, min(entry.at, now))
    return ats


def _unreachable(_: sqlite3.Connection) -> None:
    import sqlite3

    cause = sqlite3.DatabaseError("keys of a bucket are not found that are there")
    cause.sqlite_errorname = "SQLITE_CORRUPT_INDEX"
    raise cause
