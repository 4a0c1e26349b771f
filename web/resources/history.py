"""What a pipeline did: counts by the minute or by five seconds, and how it failed.

An id that nobody knows has an empty past, which is no mistake of who asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import falcon.asgi
import msgspec
from msgspec import Meta

from headrace.compiler.jsontext import Count, encode
from headrace.compiler.runtime.monitoring.pipelinerecord import (
    WIDTHS,
    ErrorSignature,
    Resolution,
)
from headrace.web.auth.access import Access
from headrace.web.endpoint import Answer, Endpoint, Query
from headrace.web.service import Service


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


class PipelineHistory(msgspec.Struct):
    """What a pipeline counted when, and how it failed."""

    resolution: HistoryResolution
    bucket_secs: Annotated[
        int,
        Meta(description="Seconds per bucket.", extra_json_schema={"enum": [*WIDTHS.values()]}),
    ]
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


async def get_pipeline_history(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """Answer the past of a pipeline; a resolution that cannot be read is the coarse one."""
    resolution: Resolution = "fine" if req.get_param("resolution") == "fine" else "coarse"
    past = await service.engine.past(pipeline_id, resolution)
    buckets, counts = past.buckets, past.buckets.counts
    starts = range(buckets.start, buckets.start + len(buckets) * buckets.width, buckets.width)
    listed = list(map(HistoryBucket, starts, counts[::3], counts[1::3], counts[2::3]))
    resp.data = encode(
        PipelineHistory(resolution, buckets.width, listed, past.failures, past.dropped_signatures)
    )


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
        ),
        responses={
            200: Answer("Its past; empty where nothing is known of the id.", PipelineHistory)
        },
        respond=get_pipeline_history,
    ),
)
