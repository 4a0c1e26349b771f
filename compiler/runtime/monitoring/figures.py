"""What is told of pipelines and buckets: values of one moment, which whoever has them may send anywhere.

Of a bucket those are figures, and a page of the latest that it holds. Reading one lets go of what has
expired, in slices: a million expired keys at once would take a good part of a second, and messages wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from headrace.compiler.buckets import Bucket, Buckets
from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Stage
from headrace.compiler.jsontext import Count, DescribedAs, encode
from headrace.compiler.runtime.lifecycle import Status
from headrace.compiler.runtime.pipeline import Pipeline
from headrace.compiler.schema.structures import AnyObject

_TURN_BYTES = 1024 * 1024
"""Bytes that are encoded before messages have a turn."""
_EMPTY = msgspec.Raw(b"{}")
_SLICE = 10_000
"""Expired keys that are let go of before messages have a turn."""


class PipelineFigures(msgspec.Struct, frozen=True):
    """A pipeline as others see it, and what it has counted so far."""

    id: str
    text: bytes
    """Id and config as JSON, secrets as templates."""
    status: Status
    inbound: int
    outbound: int
    skipped: int
    failures: Mapping[Stage, int]
    """Failures by stage, repeated ones included."""
    held: int
    """Messages held on purpose by buffers."""
    in_flight: int
    """Batches on their way."""


def figures_of(pipeline: Pipeline) -> PipelineFigures:
    """Return the figures of this moment."""
    counters = pipeline.counters
    return PipelineFigures(
        pipeline.id,
        pipeline.text(),
        pipeline.status,
        counters.inbound,
        counters.outbound,
        counters.skipped,
        dict(pipeline.failures.by_stage),
        pipeline.parts.held,
        pipeline.in_flight,
    )


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


async def page_of(bucket: Bucket, clock: Clock, most: int, most_bytes: int) -> BucketContents:
    """Return a bucket as it is at this moment; what is written on the way does not show.

    It has ``most`` entries at most, and none after the one whose text exceeds ``most_bytes`` with those
    before.
    """
    await _let_go(bucket, clock)
    keys, latest = len(bucket), bucket.newest(most)
    entries, size, turn = list[BucketEntry](), 0, _TURN_BYTES
    for key, values, at in latest:
        updated_at = clock.at(at).isoformat(timespec="microseconds")
        text = encode(values)
        entries.append(BucketEntry(key, msgspec.Raw(text), updated_at))
        # Of an entry without its values, which may be megabytes: they are not copied to be counted.
        size += len(encode(BucketEntry(key, _EMPTY, updated_at))) + len(text) - len(bytes(_EMPTY))
        if size >= most_bytes:
            break
        if size >= turn:
            turn = size + _TURN_BYTES
            await clock.sleep(0)
    return BucketContents(bucket.name, keys, len(entries) < keys, entries)


async def _let_go(bucket: Bucket, clock: Clock) -> None:
    """Have a bucket let go of all that has expired."""
    while not bucket.expire(_SLICE):
        await clock.sleep(0)
