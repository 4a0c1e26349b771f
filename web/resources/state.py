"""The buckets over the API: what is declared, and the latest of what is held. Nothing is written here."""

from __future__ import annotations

from collections.abc import Collection

import falcon.asgi
import msgspec

from headrace.compiler.errors import HeadraceError
from headrace.compiler.jsontext import Count, encode
from headrace.compiler.runtime.monitoring.figures import BucketContents
from headrace.compiler.text.suggest import one_of
from headrace.web.auth.access import Access
from headrace.web.endpoint import Answer, Endpoint, refusals
from headrace.web.service import Service

MOST_ENTRIES = 200
"""Entries on one page of a bucket."""
MOST_BYTES = 16 * 1024 * 1024
"""Bytes of text after which a page takes no further entry."""


class BucketSummary(msgspec.Struct):
    """A declared bucket: what it holds and may hold."""

    name: str
    keys: Count
    max_keys: Count
    idle_timeout_secs: Count | None


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
    resp.data = encode(
        [
            BucketSummary(each.name, each.keys, each.max_keys, each.idle_seconds)
            for each in await service.engine.buckets()
        ]
    )


async def get_state_bucket(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, bucket: str
) -> None:
    """Answer the entries of one bucket that were written last."""
    contents = await service.engine.bucket(bucket, MOST_ENTRIES, MOST_BYTES)
    if contents is None:
        raise UnknownBucket(bucket, sorted(service.engine.declarations))
    resp.data = encode(contents)


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
