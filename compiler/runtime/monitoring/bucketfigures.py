"""What is told of buckets: figures, and a page of what one of them holds.

Reading one lets go of what has expired, in slices: a million expired keys at once would take a good part
of a second, and messages wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from heapq import nsmallest
from math import inf
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count, DescribedAs
from headrace.compiler.buckets import Bucket, Buckets
from headrace.compiler.clock import Clock
from headrace.compiler.jsontext import encode
from headrace.compiler.schema.structures import AnyObject

_TURN_BYTES = 1024 * 1024
"""Bytes that are encoded before messages have a turn."""
_EMPTY = msgspec.Raw(b"{}")
_TURN_ENTRIES = 500
"""Entries that are encoded before messages have a turn."""
_SLICE = 10_000
"""Keys that are looked at, or let go of, before messages have a turn."""


class BucketFigures(msgspec.Struct, frozen=True):
    """A declared bucket: what it holds and may hold, and how many keys had to go for others."""

    name: str
    keys: int
    max_keys: int
    idle_seconds: int | None
    evictions: int


class BucketEntry(msgspec.Struct, frozen=True):
    """What a bucket holds under one key."""

    key: Annotated[str, Meta(description="Empty for what concerns the bucket as a whole.")]
    values: Annotated[msgspec.Raw, DescribedAs(AnyObject.__name__)]
    """As JSON: written once, for whoever is told."""
    updated_at: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


class BucketContents(msgspec.Struct, frozen=True):
    """A bucket with the entries that were written last."""

    name: str
    keys: Annotated[Count, Meta(description="All that the bucket holds, not the entries listed.")]
    truncated: Annotated[bool, Meta(description="Whether some of them are not listed.")]
    entries: Sequence[BucketEntry]
    """The newest first."""


async def bucket_figures(buckets: Buckets, clock: Clock) -> list[BucketFigures]:
    """Return the figures of the declared buckets, in the order of their names."""
    for bucket in buckets:
        await _let_go(bucket, clock)
    return [
        BucketFigures(
            bucket.name,
            len(bucket),
            bucket.bounds.max_keys,
            bucket.bounds.idle_seconds,
            bucket.evictions,
        )
        for bucket in buckets
    ]


class BucketPage(msgspec.Struct, frozen=True):
    """Which entries of a bucket are wanted: so many, whose keys begin so, from behind one of them on."""

    most: int
    most_bytes: int
    """None follows the one whose text exceeds this with those before."""
    prefix: str = ""
    after: tuple[datetime, str] | None = None
    """When an entry was written, and its key: those that come before it and it are left out."""


async def page_of(bucket: Bucket, clock: Clock, page: BucketPage) -> BucketContents:
    """Return a bucket as it is at this moment; what is written on the way does not show.

    Where not all of its keys are wanted, that is the moment in which all of them have been looked at.
    """
    await _let_go(bucket, clock)
    if page.prefix or page.after:
        wanted, latest = await _wanted(bucket, clock, page)
        keys = len(bucket)
    else:
        keys, latest = len(bucket), bucket.newest(page.most)
        wanted = keys
    entries, size, turn = list[BucketEntry](), 0, _TURN_BYTES
    for key, values, at in latest:
        updated_at = clock.at(at).isoformat(timespec="microseconds")
        text = encode(values)
        entries.append(BucketEntry(key, msgspec.Raw(text), updated_at))
        # Of an entry without its values, which may be megabytes: they are not copied to be counted.
        size += len(encode(BucketEntry(key, _EMPTY, updated_at))) + len(text) - len(bytes(_EMPTY))
        if size >= page.most_bytes:
            break
        if size >= turn or len(entries) % _TURN_ENTRIES == 0:
            turn = size + _TURN_BYTES
            await clock.sleep(0)
    return BucketContents(bucket.name, keys, len(entries) < wanted, entries)


async def _wanted(
    bucket: Bucket, clock: Clock, page: BucketPage
) -> tuple[int, list[tuple[str, dict[str, Any], float]]]:
    """Return how many entries are wanted, and as many of them as fit: key, values and when."""
    after = (-inf, "")
    if page.after is not None:
        moment, key = page.after
        after = -_micros(clock.reading(moment)), key

    def found(keys: Iterable[str]) -> list[tuple[float, str]]:
        """Return the wanted ones of some keys, by what they are ordered by."""
        entries, cutoff = bucket.entries, bucket.cutoff()
        return [
            place
            for key in keys
            if (entry := entries.get(key)) is not None
            and entry.at > cutoff
            and (place := (-_micros(entry.at), key)) > after
        ]

    wanted, first = 0, list[tuple[float, str]]()
    keys = bucket.keys()
    for start in range(0, len(keys), _SLICE):
        some = found(key for key in keys[start : start + _SLICE] if key.startswith(page.prefix))
        wanted += len(some)
        first = nsmallest(page.most, [*first, *some])
        await clock.sleep(0)
    listed = [(key, bucket.entries[key]) for _, key in sorted(found(key for _, key in first))]
    return wanted, [(key, dict(entry.values), entry.at) for key, entry in listed]


def _micros(at: float) -> int:
    return round(at * 1e6)


async def _let_go(bucket: Bucket, clock: Clock) -> None:
    """Have a bucket let go of all that has expired."""
    while not bucket.expire(_SLICE):
        await clock.sleep(0)
