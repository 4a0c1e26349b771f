"""The buckets over the API: what is declared, and the latest of what is held. Nothing is written here.

Reading a bucket lets go of what has expired, in slices: a million expired keys at once would take a
good part of a second, and messages wait.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import falcon.asgi
import msgspec
from msgspec import Meta

from headrace.compiler.buckets import Bucket, Buckets
from headrace.compiler.clock import Clock
from headrace.compiler.errors import HeadraceError
from headrace.compiler.jsontext import encode
from headrace.compiler.language.suggest import one_of
from headrace.web.auth.access import Access
from headrace.web.endpoint import Answer, Endpoint, refusals
from headrace.web.service import Service
from headrace.web.shapes import Count, DescribedAs, JsonObject

MOST_ENTRIES = 200
"""Entries on one page of a bucket."""
MOST_BYTES = 16 * 1024 * 1024
"""Bytes of text after which a page takes no further entry."""
_TURN_BYTES = 1024 * 1024
"""Bytes that are encoded before messages have a turn."""
_SLICE = 10_000
"""Expired keys that are let go of before messages have a turn."""


class BucketSummary(msgspec.Struct):
    """A declared bucket: what it holds and may hold."""

    name: str
    keys: Count
    max_keys: Count
    idle_timeout_secs: Count | None


class BucketEntry(msgspec.Struct):
    """What a bucket holds under one key."""

    key: Annotated[str, Meta(description="Empty for what concerns the bucket as a whole.")]
    values: JsonObject
    updated_at: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


class BucketContents(msgspec.Struct):
    """A bucket with the entries that were written last."""

    name: str
    keys: Annotated[Count, Meta(description="All that the bucket holds, not the entries listed.")]
    truncated: Annotated[bool, Meta(description="Whether some of them are not listed.")]
    entries: list[Annotated[msgspec.Raw, DescribedAs(BucketEntry)]]


class UnknownBucket(HeadraceError):
    """No bucket of that name is declared."""

    def __init__(self, name: str, declared: Collection[str]) -> None:
        expected = f"expected {one_of(declared)}" if declared else "the config declares none"
        super().__init__(f"no bucket named '{name}' is declared ({expected})")
        self.name, self.declared = name, declared


async def list_state_buckets(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer the declared buckets in the order of their names."""
    held = await keys_held(service.engine.buckets, service.clock)
    resp.data = encode([_summary(bucket, keys) for bucket, keys in held])


async def get_state_bucket(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, bucket: str
) -> None:
    """Answer the entries of one bucket that were written last."""
    found = service.engine.buckets.get(bucket)
    if found is None:
        raise UnknownBucket(bucket, service.engine.buckets.names())
    await _let_go(found, service.clock)
    resp.data = await _contents(found, service.clock)


async def keys_held(buckets: Buckets, clock: Clock) -> list[tuple[Bucket, int]]:
    """Return the declared buckets in the order of their names, each with the keys it holds."""
    for bucket in buckets:
        await _let_go(bucket, clock)
    return [(bucket, len(bucket)) for bucket in buckets]


def _summary(bucket: Bucket, keys: int) -> BucketSummary:
    return BucketSummary(bucket.name, keys, bucket.bounds.max_keys, bucket.bounds.idle_seconds)


async def _contents(bucket: Bucket, clock: Clock) -> bytes:
    """Return a bucket as it is at this moment; what is written on the way does not show."""
    keys, latest = len(bucket), bucket.newest(MOST_ENTRIES)
    entries, size, turn = list[msgspec.Raw](), 0, _TURN_BYTES
    for key, values, at in latest:
        updated_at = clock.at(at).isoformat(timespec="microseconds")
        text = encode(BucketEntry(key, values, updated_at))
        entries.append(msgspec.Raw(text))
        size += len(text)
        if size >= MOST_BYTES:
            break
        if size >= turn:
            turn = size + _TURN_BYTES
            await clock.sleep(0)
    is_cut = len(entries) < keys
    return encode(BucketContents(bucket.name, keys, is_cut, entries))


async def _let_go(bucket: Bucket, clock: Clock) -> None:
    """Have a bucket let go of all that has expired."""
    while not bucket.expire(_SLICE):
        await clock.sleep(0)


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/state",
        operation="listStateBuckets",
        tag="state",
        access=Access.READ,
        summary="List the buckets that the config declares, with what they hold and may hold.",
        responses={200: Answer("The buckets, by name.", list[BucketSummary])},
        respond=list_state_buckets,
    ),
    Endpoint(
        method="GET",
        path="/api/state/{bucket}",
        operation="getStateBucket",
        tag="state",
        access=Access.READ,
        summary="Read the entries of a bucket that were written last.",
        responses={
            200: Answer("At most 200 entries, and how many there are.", BucketContents),
            **refusals(_404="No bucket of that name is declared."),
        },
        respond=get_state_bucket,
    ),
)
