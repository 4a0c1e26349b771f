"""The buckets over the API: what is declared, and the latest of what is held. Nothing is written here."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from typing import Annotated

import falcon.asgi
import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count
from headrace.compiler.errors import HeadraceError
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.monitoring.bucketfigures import BucketContents, BucketPage
from headrace.compiler.text.suggest import one_of
from headrace.compiler.timestamps import rfc3339
from headrace.web.auth.access import Access
from headrace.web.endpoint import MALFORMED, Answer, Endpoint, Query, refusals
from headrace.web.parameters import WholeNumber, WrongParameter, text_of
from headrace.web.service import Service

MOST_ENTRIES = 1000
"""Entries on one page of a bucket."""
MOST_BYTES = 16 * 1024 * 1024
"""Bytes of text after which a page takes no further entry."""


ENTRY = "the 'updated_at' and the 'key' of an entry: 2026-03-01T08:00:00.123456+00:00,m1"

PREFIX = Query("prefix", "What the keys begin with; absent: anything.", str)
AFTER = Query(
    "after",
    "The last entry of the page before: its `updated_at` and its `key`, with a comma between. Absent: the"
    " page is the first.",
    Annotated[str, Meta(extra_json_schema={"examples": ["2026-03-01T08:00:00.123456+00:00,m1"]})],
)
LIMIT = WholeNumber("limit", "How many entries at most.", default=200, least=1, most=MOST_ENTRIES)


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
    page = BucketPage(LIMIT.of(req), MOST_BYTES, text_of(req, PREFIX.name) or "", _after(req))
    contents = await service.engine.bucket(bucket, page)
    if contents is None:
        raise UnknownBucket(bucket, sorted(service.engine.declarations))
    resp.data = encode(contents)


def _after(req: falcon.asgi.Request) -> tuple[datetime, str] | None:
    """Return the entry that a page is to begin behind.

    Raises:
        WrongParameter: it is not one.
    """
    text = text_of(req, AFTER.name)
    if text is None:
        return None
    # A + that is not encoded arrives as a space.
    moment, comma, key = text.partition(",")
    with suppress(ValueError):
        updated_at = datetime.fromisoformat(rfc3339(moment.replace(" ", "+")))
        if comma:
            return updated_at, key
    raise WrongParameter(AFTER.name, text, ENTRY)


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
        query=(PREFIX, AFTER, LIMIT.query),
        responses={
            200: Answer("As many entries as fit, and how many there are.", BucketContents),
            **MALFORMED,
            **refusals(_404="No bucket of that name is declared."),
        },
        respond=get_state_bucket,
    ),
)
