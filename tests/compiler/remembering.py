"""Durable buckets on a store of the test's own, for their tests."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace.compiler.buckets import Bounds, Buckets
from headrace.compiler.clock import Clock
from headrace.compiler.durablebucket import DurableBucket
from headrace.compiler.runtime.keptbuckets import KeptBuckets
from headrace.compiler.store.openstore import Store

NAME = "machines"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
log = logging.getLogger("headrace.store")


def clock_at(moment: datetime = BEGIN) -> Clock:
    return Clock(asyncio.get_running_loop(), started_at=moment)


async def opened(folder: Path, clock: Clock | None = None, told: list[str] | None = None) -> Store:
    """Open the store of a folder."""
    return await Store.open(
        clock or clock_at(),
        folder,
        sync="process",
        keep_free_bytes=0,
        reserve_bytes=0,
        tell=(told if told is not None else []).append,
    )


async def declared(
    store: Store,
    clock: Clock | None = None,
    *,
    max_keys: int = 1_000,
    idle: int | None = None,
    name: str = NAME,
    told: list[str] | None = None,
) -> DurableBucket:
    """Return a bucket of a store, as it is at the start of a server."""
    by = clock or clock_at()
    warn = (told if told is not None else []).append
    buckets = Buckets(by, warn).redeclared({name: Bounds(max_keys, idle, is_durable=True)})
    kept = KeptBuckets(by, warn)
    await kept.become(store, buckets)
    bucket = buckets.get(name)
    assert isinstance(bucket, DurableBucket)
    return bucket


async def stored(bucket: DurableBucket) -> None:
    """Wait until all that has changed is on the disk."""
    done = asyncio.Event()
    bucket.when_stored(done.set)
    await done.wait()


def contents(bucket: DurableBucket) -> list[tuple[str, dict[str, Any]]]:
    """Return what is in a bucket, in the order of the last write."""
    bucket.expire(len(bucket.entries))
    return [(key, dict(entry.values)) for key, entry in bucket.entries.items()]
