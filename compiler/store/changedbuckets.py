"""The durable buckets of a store that are open: each is asked for what has changed when that is written."""

from __future__ import annotations

from headrace.compiler.clock import Clock
from headrace.compiler.durablebucket import TOGETHER
from headrace.compiler.store.bucketrows import BucketChanges, ChangedBucket
from headrace.compiler.store.group import MOST_BYTES, MOST_ENTRIES
from headrace.compiler.store.storedrows import Changes


class ChangedBuckets:
    """Those that are open, and whether something has changed in them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[ChangedBucket, bool] = {}

    @property
    def have_changed(self) -> bool:
        """Whether something has changed in one of them."""
        return any(self._buckets.values())

    def join(self, bucket: ChangedBucket) -> None:
        """Have a bucket be asked for what has changed in it, when it says so, until it leaves."""
        self._buckets[bucket] = False

    def leave(self, bucket: ChangedBucket) -> None:
        """Have a bucket be asked no more."""
        self._buckets.pop(bucket, None)

    def has_changed(self, bucket: ChangedBucket) -> None:
        """Take note that something has changed in a bucket."""
        self._buckets[bucket] = True

    async def gather(self, changes: Changes) -> list[ChangedBucket]:
        """Take what has changed, of one after the other, as much as is written at once; return of which.

        Of much in one bucket some is taken at a time: others have their turn meanwhile.
        """
        gathered: list[ChangedBucket] = []
        keys = size = 0
        for bucket in [each for each, has_changed in self._buckets.items() if has_changed]:
            if keys >= MOST_ENTRIES or size >= MOST_BYTES:
                break
            del self._buckets[bucket]
            self._buckets[bucket] = False  # behind all others
            gathered.append(bucket)
            parts: list[BucketChanges] = []
            while bucket in self._buckets:
                self._buckets[bucket] = False
                taken = bucket.gather(min(TOGETHER, MOST_ENTRIES - keys))
                keys, size = keys + len(taken.keys), size + taken.bytes
                parts.append(taken)
                if len(taken.keys) < TOGETHER or keys >= MOST_ENTRIES or size >= MOST_BYTES:
                    break
                await self._clock.sleep(0)
            changes.remembered.append(BucketChanges.together(parts))
        return gathered

    def begin_anew(self) -> None:
        """Have all of them be written whole."""
        for each in self._buckets:
            each.begin_anew()

    def clear(self) -> None:
        """Ask none of them any more."""
        self._buckets.clear()
