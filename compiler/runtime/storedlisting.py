"""What is kept in a store, listed: each queue and bucket with who has it, and how much is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.compiler.durablebucket import BucketFill
from headrace.compiler.errors import StoredInUse, UnknownStored
from headrace.compiler.runtime.borrowed import BorrowedQueue, QueueName
from headrace.compiler.runtime.keptbuckets import KeptBuckets
from headrace.compiler.runtime.monitoring.storedfigures import (
    StoredPart,
    StoredPartKind,
    StoredState,
    StoreFigures,
)
from headrace.compiler.store.storedrows import BUCKET, ROW_BYTES
from headrace.compiler.store.storeerrors import StoreFailed, StoreInUse

if TYPE_CHECKING:
    from headrace.compiler.store.openstore import Store
    from headrace.compiler.store.storedrows import StoredQueue

log = logging.getLogger("headrace.store")

LISTED_SECONDS = 1.0
"""How long whoever asks for figures waits for the disk."""

_KINDS: dict[str, StoredPartKind] = {"queue": "queue", "parts": "parts"}


class StoredListing:
    """What is kept, as it was read last: again after each change of who has what."""

    def __init__(self, lent: Mapping[QueueName, BorrowedQueue], buckets: KeptBuckets) -> None:
        """Take who has which queue, and the buckets, which are asked for how much they have."""
        self._lent, self._buckets = lent, buckets
        self._listed: Sequence[StoredQueue] = ()
        """The queues that there were when they were read last."""
        self._left_in: Mapping[int, BucketFill] = {}
        """How much was in each bucket then that nobody has, by its id."""
        self._is_listed = False
        """Whether those are all that there are."""
        self._set_asides = 0
        """How often something had been set aside then."""
        self._listing: asyncio.Task[None] | None = None

    def changed(self) -> None:
        """Have all there is looked through again: somebody has given something back."""
        self._is_listed = False

    async def figures(self, store: Store) -> StoreFigures:
        """Return what is kept.

        Of what nobody has it is what could be read last: a disk that fails or hangs keeps nobody waiting.
        """
        if not self._is_listed or self._set_asides != store.condition.set_asides:
            if self._listing is None or self._listing.done():
                self._listing = asyncio.ensure_future(self._list(store))
            await asyncio.wait([self._listing], timeout=LISTED_SECONDS)
        parts = [self._part(store, each) for each in self._listed]
        parts = [each for each in parts if each.entries or each.aside or not each.left_over]
        seconds, commits = store.commit_seconds
        return StoreFigures(
            store.condition.state,
            store.free_bytes(),
            store.condition.failures,
            store.condition.damaged,
            seconds,
            commits,
            parts,
        )

    async def _list(self, store: Store) -> None:
        """Look through all there is: once for each change of who has what, for that takes long."""
        self._is_listed, self._set_asides = True, store.condition.set_asides
        try:
            listed = await store.queues.listed()
            self._left_in = await self._buckets.left_in(store, listed)
            self._listed = listed
        except StoreFailed:
            self._is_listed = False

    def _part(self, store: Store, queue: StoredQueue) -> StoredPart:
        if queue.kind == BUCKET:
            bucket = self._buckets.of(queue.id)
            kept = self._left_in.get(queue.id) if bucket is None else bucket.fill()
            return _bucket_part(queue, kept, store.condition.state, left_over=bucket is None)
        kind = _KINDS.get(queue.kind, "journal")
        name = (queue.pipeline, queue.target, kind)
        lent = None if queue.ended is not None else self._lent.get(name)
        entries, since = queue.entries, queue.oldest
        size = queue.bytes + ROW_BYTES * queue.rows  # as whoever has it counts
        state = store.condition.state
        if lent is not None:  # with what is being stored, and without what is about to go
            fill = lent.journal.fill()
            entries, size, since = lent.journal.entries, fill.used, lent.journal.oldest()
            if state == "open" and lent.is_full_now:
                state = "full"
        oldest = None if since is None or not entries else round(since * 1000)
        return StoredPart(
            queue.id,
            queue.pipeline,
            queue.target,
            kind,
            entries,
            size,
            oldest,
            state,
            lent is None,
            queue.ended is not None,
            queue.aside,
            queue.aside_bytes,
        )

    async def discard(self, store: Store, id: int) -> None:
        """Forget a part of what is kept.

        Raises:
            UnknownStored: there is none with that number.
            StoredInUse: a pipeline has it.
            StoreFailed: it cannot be written.
        """
        gone = await _found(store, id)
        try:
            await store.queues.discard(id)
        except StoreInUse as cause:
            bucket = self._buckets.of(id)
            used = gone.pipeline if bucket is None else bucket.name
            raise StoredInUse(id, used, is_bucket=bucket is not None) from cause
        finally:
            self._buckets.count_again(id)
        self._is_listed = False
        if gone.kind == BUCKET:
            log.info("discarded what was left over of bucket '%s'", gone.target)
            return
        log.info(
            "discarded what was left over of pipeline '%s' (%s): %s entries, %s bytes",
            gone.pipeline,
            gone.target,
            f"{gone.entries:,}",
            f"{gone.bytes + ROW_BYTES * gone.rows:,}",
        )

    async def discard_aside(self, store: Store, id: int) -> None:
        """Forget what was set aside of a part of what is kept, whoever has that.

        Raises:
            UnknownStored: there is none with that number, or nothing of it was set aside.
            StoreFailed: it cannot be written.
        """
        queue = await _found(store, id)
        if not queue.aside:
            raise UnknownStored(id, is_aside=True)
        await store.queues.discard_aside(id)
        self._is_listed = False
        log.info(
            "discarded what was set aside of pipeline '%s' (%s): %s entries, %s bytes",
            queue.pipeline,
            queue.target,
            f"{queue.aside:,}",
            f"{queue.aside_bytes:,}",
        )


async def _found(store: Store, id: int) -> StoredQueue:
    found = [each for each in await store.queues.listed() if each.id == id]
    if not found:
        raise UnknownStored(id)
    return found[0]


def _bucket_part(
    queue: StoredQueue, fill: BucketFill | None, state: StoredState, *, left_over: bool
) -> StoredPart:
    keys, size, oldest = fill or (0, 0, None)
    since = None if oldest is None else round(oldest * 1000)
    return StoredPart(
        queue.id,
        queue.pipeline,
        queue.target,
        "bucket",
        keys,
        size,
        since,
        state,
        left_over,
        queue.ended is not None,
        queue.aside,
        queue.aside_bytes,
    )
