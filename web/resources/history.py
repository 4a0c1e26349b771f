"""What pipelines did: counts by the minute or by five seconds, and how one failed.

An id that nobody knows has an empty past, which is no mistake of who asks.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from typing import Annotated, get_args

import falcon.asgi
import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count, DescribedAs
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.monitoring.pipelinerecord import (
    FINE_SECONDS,
    WIDTHS,
    CountColumns,
    Resolution,
)
from headrace.compiler.runtime.monitoring.signatures import ErrorSignature
from headrace.web.auth.access import Access
from headrace.web.endpoint import MALFORMED, Answer, Endpoint, Query
from headrace.web.parameters import WholeNumber, Word
from headrace.web.service import Service

MOST_BUCKETS = FINE_SECONDS // WIDTHS["fine"]
"""Of each pipeline, where all of them are told of."""


class HistoryBucket(msgspec.Struct, gc=False):
    """What was counted in one span of time."""

    # A week has ten thousand of them, and these encode quickly.
    start: Annotated[Count, Meta(description="Seconds since 1970, a multiple of the width.")]
    inbound: Annotated[Count, Meta(description="Messages that the inputs delivered.")]
    outbound: Annotated[Count, Meta(description="Messages that left the transforms.")]
    errors: Annotated[Count, Meta(description="Failures, repeated ones included.")]


HistoryResolution = Annotated[
    Resolution, Meta(title="HistoryResolution", extra_json_schema={"default": "coarse"})
]

BucketSeconds = Annotated[
    int, Meta(description="Seconds per bucket.", extra_json_schema={"enum": [*WIDTHS.values()]})
]


class PipelineHistory(msgspec.Struct):
    """What a pipeline counted when, and how it failed."""

    resolution: HistoryResolution
    bucket_secs: BucketSeconds
    buckets: Annotated[
        list[HistoryBucket],
        Meta(
            description="In a row, the oldest first, empty ones included; the last one still fills."
        ),
    ]
    errors: Annotated[Sequence[ErrorSignature], Meta(description="The last seen first.")]
    dropped_signatures: Annotated[
        Count, Meta(description="How many failures made room for newer ones.")
    ]


class RecentHistory(msgspec.Struct):
    """What all pipelines that run have counted lately."""

    resolution: HistoryResolution
    bucket_secs: BucketSeconds
    start: Annotated[
        Sequence[Count],
        Meta(
            description="When each bucket begins, the oldest first, in seconds since 1970; the last one"
            " still fills."
        ),
    ]
    pipelines: Annotated[
        Mapping[str, Annotated[msgspec.Raw, DescribedAs(CountColumns)]],
        Meta(description="By id, a number for each of these buckets."),
    ]


AFTER = WholeNumber(
    "after", "Only buckets that begin after this, in seconds since 1970; absent: all.", default=0
)
LIMIT = WholeNumber("limit", "How many buckets at most.", default=12, least=1, most=MOST_BUCKETS)
RESOLUTION: Word[Resolution] = Word(
    "resolution",
    "`coarse`: a minute per bucket. `fine`: five seconds.",
    get_args(Resolution),
    "coarse",
    HistoryResolution,
)


async def get_pipeline_history(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """Answer the past of a pipeline; a resolution that cannot be read is the coarse one."""
    after = AFTER.of(req)
    resolution: Resolution = "fine" if req.get_param("resolution") == "fine" else "coarse"
    past = await service.engine.past(pipeline_id, resolution)
    buckets, counts = past.buckets, past.buckets.counts
    starts = range(buckets.start, buckets.start + len(buckets) * buckets.width, buckets.width)
    listed = list(map(HistoryBucket, starts, counts[::3], counts[1::3], counts[2::3]))
    later = listed[bisect(starts, after) :]
    resp.data = encode(
        PipelineHistory(resolution, buckets.width, later, past.failures, past.dropped_signatures)
    )


async def get_recent_history(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer what all pipelines that run have counted lately, in the same buckets."""
    resolution, limit = RESOLUTION.of(req), LIMIT.of(req)
    told = await service.engine.recent(resolution, limit)
    resp.data = _around(RecentHistory(resolution, told.width, told.start, {}), told.pipelines)


def _around(empty: RecentHistory, pipelines: Mapping[str, msgspec.Raw]) -> bytes:
    """Return an answer with its pipelines, which may be megabytes of JSON: so they are copied once."""
    parts: list[bytes | msgspec.Raw] = [encode(empty).removesuffix(b"}}")]
    for number, (id, columns) in enumerate(pipelines.items()):
        parts += b"," if number else b"", encode(id), b":", columns
    return b"".join([*parts, b"}}"])


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/pipelines/{pipeline_id}/history",
        operation="getPipelineHistory",
        tag="pipelines",
        access=Access.READ,
        summary="Show what a pipeline counted when, and how it failed, deleted ones included.",
        query=(
            Query(
                "resolution",
                "`coarse`: a minute per bucket, as far as history goes back. `fine`: five seconds, the"
                " last half hour. Anything else is `coarse`.",
                HistoryResolution,
            ),
            AFTER.query,
        ),
        responses={
            200: Answer("Its past; empty where nothing is known of the id.", PipelineHistory),
            **MALFORMED,
        },
        respond=get_pipeline_history,
    ),
    Endpoint(
        method="GET",
        path="/api/history",
        operation="getRecentHistory",
        tag="pipelines",
        access=Access.READ,
        summary="Show what all pipelines that run have counted lately, side by side.",
        query=(RESOLUTION.query, LIMIT.query),
        responses={200: Answer("Columns of counts, by id.", RecentHistory), **MALFORMED},
        respond=get_recent_history,
    ),
)
